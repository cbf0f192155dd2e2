import { FULL, MASKED } from "./packed.js";

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const pixel = (/** @type {number[]} */ [r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
/** A colour as `#rrggbb`, as ImageData holds it. */
export const pixelOf = (hex) => pixel(channels(hex));

const DECADES = 3; // As in figures/palette.py.

/** Where a weight lies on the ramp, 0 to 1. */
export function position(weight, scale) {
  if (scale === "log") return weight > 0 ? Math.max(0, 1 + Math.log10(weight) / DECADES) : 0;
  return scale === "sqrt" ? Math.sqrt(weight) : weight;
}

/** 256 pixels (ABGR, as ImageData holds them): bytes 0..FULL on the ramp, MASKED its own colour. */
export function lookup(stops, masked, scale) {
  const table = new Uint32Array(256);
  const ramp = stops.map(channels);
  for (let byte = 0; byte <= FULL; byte += 1) {
    const weight = byte / FULL;
    const at = position(weight, scale) * (ramp.length - 1);
    const low = Math.min(Math.floor(at), ramp.length - 2);
    table[byte] = pixel(ramp[low].map((start, i) => Math.round(start + (ramp[low + 1][i] - start) * (at - low))));
  }
  table[MASKED] = pixel(channels(masked));
  return table;
}

const LUMINANCE = [0.2126, 0.7152, 0.0722]; // Of red, green and blue.
const bright = (rgb) => rgb.reduce((sum, value, i) => sum + LUMINANCE[i] * (value / 255) ** 2.2, 0.05);

/** An entry of the table as CSS, and which of two inks is read better on it: the one of more contrast (WCAG 2.2). */
export function inked(pixel, inks) {
  const rgb = [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
  const contrast = (ink) => Math.abs(Math.log(bright(channels(ink)) / bright(rgb)));
  const [one, other] = inks;
  return { background: `rgb(${rgb.join(" ")})`, color: contrast(one) > contrast(other) ? one : other };
}

const GROWN_FROM = 200; // Pixels.

/** Pixels of the smallest type where a view is to be read from the back row; 0 anywhere else. */
export const leastType = (element) => parseFloat(getComputedStyle(element).getPropertyValue("--least")) || 0;

/** The CSS height of a picture of `height` pixels: on a stage a high one takes what the scene has room for. */
export const pictureHeight = (height) => (height < GROWN_FROM ? `${height}px` : `var(--picture, ${height}px)`);

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element; a text in it is never read as markup. */
export function drawn(tag, attributes, text = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

let pen = null;

/** A colour as every drawing program reads it: color-mix() and color() as rgb(). */
export function plain(colour) {
  if (!colour.startsWith("color")) return colour;
  pen ??= document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
  return `rgba(${red}, ${green}, ${blue}, ${(alpha / 255).toFixed(3)})`;
}
