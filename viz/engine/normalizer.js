import { SPACE_MARK, lengthOfCharacter, toBytes, toText } from "./sentencepiece_model.js";

const SPACE = 32;

/** A double-array trie as Darts-clone writes it: the longest of its keys that `bytes` has at `from`. */
function longestKey(units, bytes, from) {
  const offset = (unit) => (unit >>> 10) << ((unit & 0x200) >>> 6);
  let found = null;
  let node = offset(units[0]);
  for (let at = from; at < bytes.length; at += 1) {
    node ^= bytes[at];
    const unit = units[node];
    if ((unit & 0x800000ff) >>> 0 !== bytes[at]) break;
    node ^= offset(unit);
    if ((unit >>> 8) & 1) found = { length: at + 1 - from, value: units[node] & 0x7fffffff };
  }
  return found;
}

/** What replaces the longest known sequence at `from`, or the character there, and how many bytes it stands for. */
function prefix({ units, replacements }, bytes, from) {
  const found = units && longestKey(units, bytes, from);
  if (!found) {
    const length = lengthOfCharacter(bytes[from]);
    return { length, written: bytes.subarray(from, from + length) };
  }
  return { length: found.length, written: replacements.subarray(found.value, replacements.indexOf(0, found.value)) };
}

/** A precompiled charsmap: the length of the trie, the trie, then the replacements, each closed by a zero. */
function parsed(charsmap) {
  if (!charsmap.length) return { units: null };
  const size = new DataView(charsmap.buffer, charsmap.byteOffset).getUint32(0, true);
  return { units: new Uint32Array(charsmap.slice(4, 4 + size).buffer), replacements: charsmap.subarray(4 + size) };
}

/** What is written for `bytes`, and for each byte of it and for the end the place of what it stands for. */
function replaced(map, bytes, fewerSpaces) {
  const written = [];
  const origin = [];
  let from = 0;
  let afterSpace = fewerSpaces; // Leading spaces go.
  while (from < bytes.length) {
    const { length, written: own } = prefix(map, bytes, from);
    let start = 0;
    while (afterSpace && own[start] === SPACE) start += 1;
    for (let at = start; at < own.length; at += 1) {
      written.push(own[at]);
      origin.push(from);
    }
    if (start < own.length) afterSpace = fewerSpaces && own.at(-1) === SPACE;
    from += length;
  }
  origin.push(bytes.length);
  if (fewerSpaces) while (written.at(-1) === SPACE) written.pop();
  return { written, origin }; // At the end, where a space that was dropped there had stood.
}

/** SentencePiece's normalizer: `normalize(text)` -> its characters, each with the text that it stands for. */
export function normalizer({ charsmap, dummyPrefix, fewerSpaces }) {
  const map = parsed(charsmap);
  return (text) => {
    const bytes = toBytes(text);
    const { written, origin } = replaced(map, bytes, fewerSpaces);
    const characters = dummyPrefix && written.length ? [{ text: SPACE_MARK, from: 0 }] : [];
    for (let at = 0; at < written.length; ) {
      const length = lengthOfCharacter(written[at]);
      const own = toText(new Uint8Array(written.slice(at, at + length)));
      characters.push({ text: own === " " ? SPACE_MARK : own, from: origin[at] });
      at += length;
    }
    const surface = (from, to) => toText(bytes.subarray(characters[from].from, characters[to]?.from ?? origin[written.length]));
    return Object.assign(characters, { surface });
  };
}
