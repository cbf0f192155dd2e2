import { toStrictText } from "../../engine/sentencepiece_model.js";
import { grouped, say } from "../../web/src/shared/say.js";
import { isApart, namesApart, percentOf, quoted, readable, signed } from "./attention_map.js";

// As model/text/words.py, for the tokens of this project: a leading space says that a word begins.
const CJK = /[\u2e80-\u9fff\uf900-\ufaff\uff66-\uff9d\u{20000}-\u{3ffff}]/u;
const BYTE_TOKEN = /^<0x[0-9A-F]{2}>$/;
const PUNCTUATION = /^[\p{P}\p{S}]+$/u;

const isPunctuation = (token) => PUNCTUATION.test(token.replace(/^ +/, ""));
const startsWithCjk = (token) => CJK.test([...token][0] ?? "");
const endsWithCjk = (token) => CJK.test([...token].at(-1) ?? "");

/** Whether letters follow the punctuation at `place` without a space: don't, U-Bahn, 3.5. */
function wordGoesOn(tokens, place, special) {
  for (const token of tokens.slice(place + 1)) {
    if (token.startsWith(" ") || isApart(token, special) || startsWithCjk(token)) return false;
    if (!isPunctuation(token)) return true;
  }
  return false;
}

function begins(tokens, place, start, special) {
  const [token, before] = [tokens[place], tokens[place - 1]];
  if (token.startsWith(" ") || isApart(token, special) || isApart(before, special)) return true;
  if (before === " ") return false; // A space that is a piece by itself belongs to what follows.
  if (startsWithCjk(token) || endsWithCjk(before)) return true;
  const inside = tokens.slice(start, place).some((one) => !isPunctuation(one));
  if (!isPunctuation(token)) return !inside; // After an opening bracket or quote.
  return !(inside && wordGoesOn(tokens, place, special));
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

/** The words of some tokens, each { text, from, to }; together they are all of them. `special` as `isSpecial` has it. */
export function mergedWords(tokens, special = []) {
  const marked = tokens.some((token) => token.startsWith(" "));
  const starts = tokens.length ? [0] : [];
  for (let place = 1; place < tokens.length; place += 1) if (!marked || begins(tokens, place, starts.at(-1), special)) starts.push(place);
  return starts.map((from, at) => {
    const to = starts[at + 1] ?? tokens.length;
    return { text: joinWord(tokens.slice(from, to)), from, to };
  });
}

const ROWS = 4;

/** The words of the source by their share of what a token looked at, the largest first. */
function sourceShares({ sourceTokens, looked, special }, position) {
  const row = looked.subarray(position * sourceTokens.length, (position + 1) * sourceTokens.length);
  const shares = mergedWords(sourceTokens, special).map(({ text, from, to }) => ({ text, share: row.subarray(from, to).reduce((sum, one) => sum + one, 0) }));
  return shares.sort((one, other) => other.share - one.share);
}

/** The heads whose absence changes the log-probability of a token most. */
function strongest({ effects }, position) {
  const found = effects.map((one) => ({ ...one, change: one.changes[position] })).sort((one, other) => Math.abs(other.change) - Math.abs(one.change));
  const largest = Math.max(1, Math.abs(found[0].change)); // Of less than a nat, a bar is not to look like much.
  return found.slice(0, ROWS).map(({ kind, layer, head, change }) => {
    const [text, value] = [`${kind} ${layer + 1}.${head + 1}`, signed(change, 2, true)];
    return { place: [kind, layer, head], text, value, share: Math.abs(change) / largest, label: say("Show {head}: {value} nats without it", { head: text, value }) };
  });
}

/** From which layer on the token written is the one that the model would write. */
function decided({ ranks }, token, position) {
  const first = ranks.findLastIndex((row) => row[position] > 1) + 1;
  if (first === ranks.length) return say("After the last layer another token than {token} is the most probable.", { token: quoted(token) });
  if (!first) return say("{token} is the most probable token from the embedding on, before any layer.", { token: quoted(token) });
  return say("{token} is the most probable token from layer {layer} of {count} on.", { token: quoted(token), layer: first, count: ranks.length - 1 });
}

/** That the heads are still to come; what the engine explains comes later than the run. */
function waiting({ maps }) {
  const heads = Object.values(maps).reduce((sum, { shape: [layers, each] }) => sum + layers * each, 0);
  return say("Switching off each of {count} heads …", { count: heads });
}

/**
 * What word_card.js reads, as viz/web/src/word_card makes it, of the token at `position`. `open` is the text of its
 * button, if it has one.
 */
export function wordData(run, position, open) {
  const { id, token, logProb, rank, candidates } = run.steps[position];
  const { explained } = run;
  const others = candidates.filter((one) => one.id !== id && !one.forbidden).slice(0, ROWS);
  const names = namesApart(others.map((one) => one.token));
  const rowOf = (text, share) => ({ text: readable(text), value: percentOf(share), share });
  return {
    step: position,
    label: say("The word {word}", { word: readable(token) }),
    word: readable(token),
    fact: `${percentOf(Math.exp(logProb))} · ${rank === 1 ? say("the most probable token") : say("rank {rank}", { rank: grouped(rank) })}`,
    others: others.map((one, at) => ({ id: one.id, ...rowOf(names[at], Math.exp(one.logProb)) })),
    sources: sourceShares(run, position).slice(0, ROWS).map(({ text, share }) => rowOf(text, share)),
    heads: explained ? strongest(explained, position) : [],
    chooses: true,
    headsNote: say("change of log-prob. when off"),
    decided: explained ? decided(explained, token, position) : waiting(run),
    why: false,
    open,
  };
}
