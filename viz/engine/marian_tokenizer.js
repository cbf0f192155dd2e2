import { normalizer } from "./normalizer.js";
import { KIND, SPACE_MARK, readModel } from "./sentencepiece_model.js";
import { merged, stripped } from "./tokenizer.js";

const UNKNOWN_PENALTY = 10; // As SentencePiece has it: below the least probable piece.
const LANGUAGE = /^>>.*?<</s; // The language to be written, before a source.
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/**
 * The most probable cut into the pieces of a unigram model, as SentencePiece finds it. `scores` is a Map of piece ->
 * log-probability, a single precision number as all sums here are; a character that is no piece is one by itself.
 * Returns a function of characters -> [{ text }].
 */
export function mostProbable(scores) {
  let [least, longest] = [Infinity, 0];
  for (const [piece, score] of scores) {
    least = Math.min(least, score);
    longest = Math.max(longest, [...piece].length);
  }
  const unknown = Math.fround(least - UNKNOWN_PENALTY);
  return (characters) => {
    const best = Array.from({ length: characters.length + 1 }, (_, at) => ({ score: at ? -Infinity : 0, from: -1, text: "" }));
    const offer = (from, to, text, score) => {
      const sum = Math.fround(score + best[from].score);
      if (best[to].from === -1 || sum > best[to].score) best[to] = { score: sum, from, text };
    };
    for (let from = 0; from < characters.length; from += 1) {
      let text = "";
      for (let to = from + 1; to <= Math.min(characters.length, from + longest); to += 1) {
        text += characters[to - 1].text;
        const score = scores.get(text);
        if (score !== undefined) offer(from, to, text, score);
      }
      if (!scores.has(characters[from].text)) offer(from, from + 1, characters[from].text, unknown);
    }
    const found = [];
    for (let at = characters.length; at > 0; at = best[at].from) found.push({ text: best[at].text });
    return found.reverse();
  };
}

/**
 * The tokenizer of a Marian folder, from the bytes of the SentencePiece model of its sources; equal to that of transformers.
 * `pieces` are those of its vocabulary by id, `special` the ids of those that no text is written with, `unknown` and `end`
 * two of these, `special_tokens` the tokens that stand for no text, with those that name a language, `prefix` what stands
 * before every source, `merges` whether the pieces are made by merges of pairs.
 */
export function marianTokenizer(bytes, { pieces, special, special_tokens: apart = [], unknown, end, prefix, merges }) {
  const { pieces: own, normalizer: spec } = readModel(bytes);
  const [normalize, names] = [normalizer(spec), special.map((id) => pieces[id])];
  const scores = new Map(own.filter(({ kind }) => kind === KIND.normal).map(({ text, score }) => [text, score]));
  const ids = new Map(pieces.map((piece, id) => [piece, id]));
  const cut = merges ? (characters) => merged(characters, scores) : mostProbable(scores);
  const token = (id) => (special.includes(id) ? pieces[id] : pieces[id].replaceAll(SPACE_MARK, " "));
  const marks = new RegExp(`(${names.map(escaped).join("|")})`);

  /** Text without special tokens -> pieces; neighbours that are none of the model's are one. */
  const cutPlain = (text) => {
    const code = LANGUAGE.exec(text)?.[0];
    const found = code ? [code] : [];
    let afterUnknown = false;
    for (const { text: piece } of cut(normalize(code ? text.slice(code.length) : text))) {
      const isUnknown = !scores.has(piece);
      if (isUnknown && afterUnknown) found.push(found.pop() + piece);
      else found.push(piece);
      afterUnknown = isUnknown;
    }
    return found;
  };
  const idsOf = (text) =>
    text.split(marks).flatMap((part) => (names.includes(part) ? [part] : cutPlain(part))).map((piece) => ids.get(piece) ?? unknown);

  /** Text -> { ids, tokens, unknown }, the end last. */
  const encode = (text) => {
    const found = [...idsOf(`${prefix}${text}`), end];
    const words = found.includes(unknown) ? `${prefix}${text}`.split(/[\p{Z}\t-\r\x1c-\x1f\x85]+/u).filter(Boolean) : [];
    return { ids: found, tokens: found.map(token), unknown: words.filter((word) => idsOf(word).includes(unknown)) };
  };

  /** Ids -> text; special ones are left out, and so are the controls of the SentencePiece model. */
  const controls = new Set(own.filter(({ kind }) => kind === KIND.control).map(({ text }) => text));
  const decode = (given) => {
    const written = given.filter((id) => !special.includes(id) && !controls.has(pieces[id]));
    return stripped(written.map((id) => pieces[id]).join("").replaceAll(SPACE_MARK, " "));
  };

  return { encode, decode, token, special: new Set(apart), size: pieces.length };
}
