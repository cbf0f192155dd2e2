/** An element with a class and a text; a token is data, so it is only ever set as text. */
export function piece(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

/** A pixel as ImageData holds it (ABGR) -> a CSS colour. */
export const css = (pixel) => `rgb(${pixel & 255} ${(pixel >> 8) & 255} ${(pixel >> 16) & 255})`;

/** Whether text in the ink of a page with this background is hard to read on `pixel`. */
export function isFar(pixel, background) {
  const light = (one) => 0.3 * (one & 255) + 0.59 * ((one >> 8) & 255) + 0.11 * ((one >> 16) & 255);
  return Math.abs(light(pixel) - light(background)) > 110;
}

export const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;

/** A number as it is printed, with a minus sign as wide as its digits. */
export const signed = (value) => value.toFixed(2).replace("-", "−");
