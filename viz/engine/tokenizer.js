import { merged } from "./bpe.js";
import { normalizer } from "./normalizer.js";
import { KIND, SPACE_MARK, readModel } from "./sentencepiece_model.js";
import { toBytes, toTextByByte } from "./utf8.js";

export const [PAD, UNKNOWN, START, END] = [0, 1, 2, 3]; // As in model/network/config.py.
const UNKNOWN_WRITTEN = " \u2047 ";

const hexadecimal = (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;

/** Without the spaces at both ends, by Python's idea of a space. */
const stripped = (text) => text.replace(/^[\p{Z}\t-\r\x1c-\x1f\x85]+|[\p{Z}\t-\r\x1c-\x1f\x85]+$/gu, "");

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

  return { encode, decode, token, size: pieces.length };
}
