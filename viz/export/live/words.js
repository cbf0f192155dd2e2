import { toStrictText } from "../../engine/utf8.js";
import { isApart } from "./labels.js";

// As model/text/words.py, for the tokens of this project: a leading space says that a word begins.
const CJK = /[\u2e80-\u9fff\uf900-\ufaff\uff66-\uff9d\u{20000}-\u{3ffff}]/u;
const BYTE_TOKEN = /^<0x[0-9A-F]{2}>$/;
const PUNCTUATION = /^[\p{P}\p{S}]+$/u;

const isPunctuation = (token) => PUNCTUATION.test(token.replace(/^ +/, ""));
const startsWithCjk = (token) => CJK.test([...token][0] ?? "");
const endsWithCjk = (token) => CJK.test([...token].at(-1) ?? "");

/** Whether letters follow the punctuation at `place` without a space: don't, U-Bahn, 3.5. */
function wordGoesOn(tokens, place) {
  for (const token of tokens.slice(place + 1)) {
    if (token.startsWith(" ") || isApart(token) || startsWithCjk(token)) return false;
    if (!isPunctuation(token)) return true;
  }
  return false;
}

function begins(tokens, place, start) {
  const [token, before] = [tokens[place], tokens[place - 1]];
  if (token.startsWith(" ") || isApart(token) || isApart(before)) return true;
  if (before === " ") return false; // A space that is a piece by itself belongs to what follows.
  if (startsWithCjk(token) || endsWithCjk(before)) return true;
  const inside = tokens.slice(start, place).some((one) => !isPunctuation(one));
  if (!isPunctuation(token)) return !inside; // After an opening bracket or quote.
  return !(inside && wordGoesOn(tokens, place));
}

/** The characters of byte tokens; their names where they are no UTF-8 or control characters. */
function decodeByteTokens(names) {
  const text = toStrictText(Uint8Array.from(names, (name) => parseInt(name.slice(3, 5), 16)));
  return text === null || /\p{Cc}/u.test(text) ? names.join("") : text;
}

/** Tokens joined; those that are bytes, such as <0xC3><0xA9>, as UTF-8 where they are characters. */
function joinWord(tokens) {
  let [text, bytes] = ["", []];
  for (const token of [...tokens, ""]) {
    if (BYTE_TOKEN.test(token)) bytes.push(token);
    else [text, bytes] = [text + decodeByteTokens(bytes) + token, []];
  }
  return text;
}

/** The words of some tokens, each { text, from, to }; together they are all of them. */
export function mergedWords(tokens) {
  const marked = tokens.some((token) => token.startsWith(" "));
  const starts = tokens.length ? [0] : [];
  for (let place = 1; place < tokens.length; place += 1) if (!marked || begins(tokens, place, starts.at(-1))) starts.push(place);
  return starts.map((from, at) => {
    const to = starts[at + 1] ?? tokens.length;
    return { text: joinWord(tokens.slice(from, to)), from, to };
  });
}
