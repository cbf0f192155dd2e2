import { fields } from "./protobuf.js";
import { toText } from "./utf8.js";

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
