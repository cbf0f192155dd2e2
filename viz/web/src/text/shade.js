import { FULL, MASKED } from "../shared/packed.js";
import { say } from "../shared/say.js";

/** What shades the tokens of `side`, a byte each: its row or column at the spot on the other side. */
export function shades(side, spot, bytes, queries, keys) {
  if (side === "key") return bytes.subarray(spot * keys, (spot + 1) * keys);
  return Array.from({ length: queries }, (_, query) => bytes[query * keys + spot]);
}

/** The mean byte of each key over the queries that may attend to it: near the mean weight, but not to be read. */
export function nearMeans(bytes, queries, keys) {
  return Array.from({ length: keys }, (_, key) => {
    const allowed = shades("query", key, bytes, queries, keys).filter((byte) => byte !== MASKED);
    return allowed.length ? Math.round(allowed.reduce((sum, byte) => sum + byte) / allowed.length) : MASKED;
  });
}

/** A byte in words, for the tooltip and for screen readers. */
export const inWords = (byte) => (byte === MASKED ? say("masked") : `${Math.round((byte / FULL) * 100)}%`);
