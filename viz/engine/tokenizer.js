import { normalizer } from "./normalizer.js";
import { KIND, SPACE_MARK, readModel, toBytes, toTextByByte } from "./sentencepiece_model.js";

/** A binary heap; `before(a, b)` says which of two comes out first. */
function heap(before) {
  const items = [];
  const swap = (a, b) => ([items[a], items[b]] = [items[b], items[a]]);
  const push = (item) => {
    let at = items.push(item) - 1;
    for (let up = (at - 1) >> 1; at && before(items[at], items[up]); at = up, up = (at - 1) >> 1) swap(at, up);
  };
  const pop = () => {
    swap(0, items.length - 1);
    const top = items.pop();
    for (let at = 0, best; ; at = best) {
      best = at;
      for (const down of [2 * at + 1, 2 * at + 2]) if (down < items.length && before(items[down], items[best])) best = down;
      if (best === at) return top;
      swap(at, best);
    }
  };
  return { push, pop, items };
}

/**
 * Byte-pair merges as SentencePiece does them: always the pair whose piece has the highest score, of equal ones the
 * leftmost. `scores` is a Map of piece -> score. Characters -> [{ text, start, end }], ends exclusive.
 */
export function merged(characters, scores) {
  const symbols = characters.map(({ text }, i) => ({ text, start: i, end: i + 1, before: i - 1, after: i + 1 }));
  const pairs = heap((a, b) => a.score > b.score || (a.score === b.score && a.left < b.left));
  const offer = (left, right) => {
    if (left < 0 || right >= symbols.length) return;
    const text = symbols[left].text + symbols[right].text;
    const score = scores.get(text);
    if (score !== undefined) pairs.push({ left, right, text, score });
  };
  for (let i = 1; i < symbols.length; i += 1) offer(i - 1, i);
  while (pairs.items.length) {
    const { left, right, text } = pairs.pop();
    const [one, other] = [symbols[left], symbols[right]];
    // Pieces only grow or vanish: where the length is no longer the same, one of the two has been merged since.
    if (!one.text || !other.text || one.text.length + other.text.length !== text.length) continue;
    Object.assign(one, { text, end: other.end, after: other.after });
    if (other.after < symbols.length) symbols[other.after].before = left;
    other.text = "";
    offer(one.before, left);
    offer(left, one.after);
  }
  return symbols.filter(({ text }) => text);
}

export const [PAD, UNKNOWN, START, END] = [0, 1, 2, 3]; // As in model/network/config.py.
const UNKNOWN_WRITTEN = " \u2047 ";

const hexadecimal = (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;

/** Without the spaces at both ends, by Python's idea of a space. */
export const stripped = (text) => text.replace(/^[\p{Z}\t-\r\x1c-\x1f\x85]+|[\p{Z}\t-\r\x1c-\x1f\x85]+$/gu, "");

/** The tokenizer of a checkpoint, from the bytes of its SentencePiece model; equal to model/text/tokenizer.py. */
export function tokenizer(bytes) {
  const { pieces, normalizer: spec } = readModel(bytes);
  const normalize = normalizer(spec);
  const scores = new Map();
  const ids = new Map();
  pieces.forEach(({ text, score, kind }, id) => {
    ids.set(text, id);
    if (kind === KIND.normal) scores.set(text, score);
  });
  const spellsBytes = pieces.some(({ kind }) => kind === KIND.byte);
  const token = (id) => pieces[id].text.replaceAll(SPACE_MARK, " ");
  /** The tokens that stand for no text. */
  const special = new Set([PAD, START, END].map(token));

  /** Text -> { ids, tokens, unknown }, </s> last, as Tokenizer.encode. */
  const encode = (text) => {
    const characters = normalize(text);
    const found = [];
    const unknown = [];
    const add = (id, written) => found.push({ id, written });
    for (const { text: piece, start, end } of merged(characters, scores)) {
      const id = ids.get(piece) ?? UNKNOWN;
      if (id !== UNKNOWN) {
        add(id, piece);
        continue;
      }
      const surface = characters.surface(start, end);
      const before = found.at(-1);
      if (spellsBytes) {
        for (const byte of toBytes(piece)) add(ids.get(hexadecimal(byte)), hexadecimal(byte));
        if (surface) unknown.push(surface);
      } else if (before?.id === UNKNOWN) {
        before.written += piece; // All in a row are one piece.
        unknown.push(unknown.pop() + surface);
      } else {
        add(UNKNOWN, piece);
        unknown.push(surface);
      }
    }
    const tokens = found.map(({ written }) => written.replaceAll(SPACE_MARK, " "));
    return { ids: [...found.map(({ id }) => id), END], tokens: [...tokens, token(END)], unknown: unknown.map(stripped) };
  };

  /** Ids -> text; special ones are left out. */
  const decode = (given) => {
    let text = "";
    let spelled = [];
    let started = false; // Of the spaces before the first word nothing is written.
    for (const id of [...given.filter((one) => one > END || one === UNKNOWN), null]) {
      const piece = pieces[id];
      if (piece?.kind === KIND.byte) {
        spelled.push(parseInt(piece.text.slice(3, 5), 16));
        continue;
      }
      text += toTextByByte(Uint8Array.from(spelled));
      spelled = [];
      if (!piece) break;
      started ||= text !== "";
      const own = piece.kind === KIND.unknown ? UNKNOWN_WRITTEN : piece.text.replaceAll(SPACE_MARK, " ");
      const cut = !started && piece.kind !== KIND.unknown && (spec.dummyPrefix || spec.fewerSpaces) && own.startsWith(" ");
      text += cut ? own.slice(1) : own;
      if (cut && !spec.fewerSpaces) started = true;
    }
    return text;
  };

  return { encode, decode, token, special, size: pieces.length };
}
