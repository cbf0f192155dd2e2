import { written } from "../../web/src/shared/number.js";
import { listed, say } from "../../web/src/shared/say.js";

// As viz/figures/look.py and words.py, whose texts these are; tests/browser/test_live_data.py holds them together.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/u;
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18cff}\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
const LEAST_NAMED_WEIGHT = 0.005;
const SPECIAL = new Set(["</s>", "<pad>", "<s>"]);

export const isSpecial = (token) => SPECIAL.has(token);

/** Whether a token is a word of its own, whatever stands around it. */
export const isApart = (token) => isSpecial(token) || token === "<unk>";

const visible = (character) =>
  HIDDEN.test(character) ? `\\u${character.codePointAt(0).toString(16).padStart(4, "0")}` : character;

/** A token as a person can see it: no leading space, and a visible sign for what has no shape of its own. */
export const readable = (token) => [...token.trim()].map(visible).join("") || "␣";

/** Tokens of a line of text: how each reads, whether a space stands before it, and whether it stands for no text. */
export const piecesOf = (tokens) =>
  tokens.map((token) => ({ text: readable(token), space: /^[ \u2581]/.test(token) || isApart(token), special: isSpecial(token) }));

/** A token inside a sentence, isolated so that right-to-left text does not reorder the words around it. */
export const quoted = (token) => say("“{token}”", { token: `\u2068${readable(token)}\u2069` });

/** A readable token, cut to the width of so many letters. */
export function labelText(token, longest = 18) {
  let width = 0;
  const ends = [...readable(token)].map((character) => ({ character, end: (width += WIDE.test(character) ? 2 : 1) }));
  if (width <= longest) return readable(token);
  return `${ends.filter(({ end }) => end <= longest - 1).map(({ character }) => character).join("")}…`;
}

export function percentOf(share) {
  if (share === 0) return written("0%");
  return written(share < 0.0005 ? "<0.1%" : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`);
}

/** A number as it is printed, with a minus sign as wide as its digits; `plus` writes the other sign too. */
export const signed = (value, digits = 2, plus = false) => written(`${plus && !(value < 0) ? "+" : ""}${value.toFixed(digits)}`);

/** Where a row of weights looks: its three strongest keys. */
export function rowInWords(query, keys, weights) {
  const best = keys.map((_, at) => at).sort((a, b) => weights[b] - weights[a]).slice(0, 3);
  const least = weights[best[0]] >= LEAST_NAMED_WEIGHT ? LEAST_NAMED_WEIGHT : Number.MIN_VALUE;
  const named = best.filter((key) => weights[key] >= least).map((key) => `${quoted(keys[key])} ${written(weights[key].toFixed(2))}`);
  if (!named.length) return say("{query} may attend to nothing.", { query: quoted(query) });
  return say("{query} looks at {keys}.", { query: quoted(query), keys: listed(named) });
}
