import { FINE_FULL, FINE_MASKED, FULL, MASKED } from "../../web/src/shared/packed.js";

// As viz/web/bundle.py, where the arithmetic is explained.
const PARTS = 25400;

const nearestInteger = (value) => {
  const below = Math.floor(value);
  const rest = value - below;
  return rest === 0.5 ? below + (below % 2) : Math.round(value);
};

/** A value of 0..top as a whole number of 0..full, in the same half of the last of its decimals. */
function level(value, top, full, decimals) {
  const held = Math.min(Math.max(value, 0), top);
  const nearest = nearestInteger((held / top) * full);
  const cell = (one) => Math.floor(one * 2 * 10 ** decimals);
  return nearest + Math.sign(cell(held) - cell((top * nearest) / full));
}

const BYTES = Uint8Array.from({ length: PARTS + 1 }, (_, i) => level((i + 0.5) / PARTS, 1, FULL, 2));

/** Weights and where they are allowed -> a byte each. */
export function quantised(weights, allowed) {
  const bytes = new Uint8Array(weights.length);
  for (let i = 0; i < weights.length; i += 1) {
    bytes[i] = allowed(i) ? BYTES[Math.min(Math.max(Math.trunc(weights[i] * PARTS), 0), PARTS)] : MASKED;
  }
  return bytes;
}

/** The same in two bytes each. */
export function fine(weights, allowed) {
  const numbers = Uint16Array.from(weights, (weight, i) => (allowed(i) ? level(weight, 1, FINE_FULL, 3) : FINE_MASKED));
  return new Uint8Array(numbers.buffer);
}
