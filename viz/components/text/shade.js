import { FULL, MASKED } from "../shared/packed.js";

/**
 * What shades the tokens of `side`, a byte each: its row or column at the spot on the other side, or, with no spot, the
 * mean over all of them that may attend.
 */
export function shades(side, spot, bytes, queries, keys) {
  const count = side === "key" ? keys : queries;
  const others = side === "key" ? queries : keys;
  const at = (own, other) => bytes[side === "key" ? other * keys + own : own * keys + other];
  if (spot !== null) return Array.from({ length: count }, (_, own) => at(own, spot));
  return Array.from({ length: count }, (_, own) => {
    let sum = 0;
    let allowed = 0;
    for (let other = 0; other < others; other += 1) {
      const byte = at(own, other);
      if (byte === MASKED) continue;
      sum += byte;
      allowed += 1;
    }
    return allowed ? Math.round(sum / allowed) : MASKED;
  });
}

/** A byte in words, for the tooltip and for screen readers. */
export const inWords = (byte) => (byte === MASKED ? "masked" : `${Math.round((byte / FULL) * 100)}%`);
