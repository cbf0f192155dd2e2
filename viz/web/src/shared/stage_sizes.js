const GROWN_FROM = 200; // Pixels.

/** Pixels of the smallest type where a view is to be read from the back row; 0 anywhere else. */
export const leastType = (element) => parseFloat(getComputedStyle(element).getPropertyValue("--least")) || 0;

/** The CSS height of a picture of `height` pixels: on a stage a high one takes what the scene has room for. */
export const pictureHeight = (height) => (height < GROWN_FROM ? `${height}px` : `var(--picture, ${height}px)`);
