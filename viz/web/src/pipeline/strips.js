import { paintPixels } from "../shared/grid.js";

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** Rows of signed numbers as rows of coloured cells: the middle colour is 0, the ends the largest size in sight. */
export function strips(numbers, width, colours) {
  const canvas = document.createElement("canvas");
  const [negative, zero, positive] = colours.map(rgb);
  const largest = numbers.reduce((most, number) => Math.max(most, Math.abs(number)), 1e-12);
  const channels = new Uint8ClampedArray(4 * numbers.length);
  numbers.forEach((number, i) => {
    const end = number < 0 ? negative : positive;
    const share = Math.sqrt(Math.abs(number) / largest);
    const colour = zero.map((from, channel) => from + (end[channel] - from) * share);
    channels.set([...colour, 255], 4 * i);
  });
  paintPixels(canvas, new Uint32Array(channels.buffer), width);
  return canvas;
}
