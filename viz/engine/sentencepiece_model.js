const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export const toBytes = (text) => encoder.encode(text);
export const toText = (bytes) => decoder.decode(bytes);

/** How many bytes a character has, by its first. */
export const lengthOfCharacter = (first) => (first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4);

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Bytes as text; null for what is no UTF-8. */
export function toStrictText(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}

/** Bytes as text; what is no UTF-8 becomes one replacement character a byte. */
export function toTextByByte(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const own = toStrictText(bytes.subarray(at, at + lengthOfCharacter(bytes[at])));
    text += own ?? "\ufffd";
    at += own === null ? 1 : lengthOfCharacter(bytes[at]);
  }
  return text;
}

/** The fields of one protocol buffers message, in order: { number, value }, a value being a number or bytes. */
export function* fields(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * shift;
      if (byte < 128) return value;
    }
  };
  const take = (length) => bytes.subarray(at, (at += length));
  const read = {
    0: varint,
    1: () => (take(8), null),
    2: () => take(varint()),
    5: () => view.getFloat32((at += 4) - 4, true),
  };
  while (at < bytes.length) {
    const key = varint();
    const value = read[key & 7]?.();
    if (value === undefined || at > bytes.length) throw new Error("not a protocol buffers message");
    yield { number: Math.floor(key / 8), value };
  }
}

export const SPACE_MARK = "\u2581"; // What SentencePiece writes for a space.
export const KIND = { normal: 1, unknown: 2, control: 3, byte: 6 };

function pieceOf(bytes) {
  const piece = { text: "", score: 0, kind: KIND.normal };
  for (const { number, value } of fields(bytes)) {
    if (number === 1) piece.text = toText(value);
    if (number === 2) piece.score = value;
    if (number === 3) piece.kind = value;
  }
  return piece;
}

/** What is needed of a NormalizerSpec; its booleans are true unless they are written. */
function normalizerOf(bytes) {
  const found = { charsmap: new Uint8Array(), dummyPrefix: true, fewerSpaces: true };
  for (const { number, value } of fields(bytes)) {
    if (number === 2) found.charsmap = value;
    if (number === 3) found.dummyPrefix = Boolean(value);
    if (number === 4) found.fewerSpaces = Boolean(value);
  }
  return found;
}

/**
 * A SentencePiece model file (sentencepiece_model.proto): { pieces, normalizer }. What it may hold, a byte-pair
 * vocabulary without symbols of its own, is checked where it is put into a file (engine/package.py).
 */
export function readModel(bytes) {
  const model = { pieces: [], normalizer: null };
  for (const { number, value } of fields(bytes)) {
    if (number === 1) model.pieces.push(pieceOf(value));
    if (number === 3) model.normalizer = normalizerOf(value);
  }
  return model;
}
