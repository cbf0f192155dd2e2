/** Pixels of the smallest type where a view is to be read from the back row; 0 anywhere else. */
export const leastType = (element) => parseFloat(getComputedStyle(element).getPropertyValue("--least")) || 0;
