import { FULL, MASKED } from "./packed.js";

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const pixel = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

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
