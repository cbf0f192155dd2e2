import { isSpecial } from "./attention_map.js";
import { mergedWords } from "./word_view.js";

// As model/analysis/telling_word.py; tests/browser/test_live_data.py holds them together.
const TELLING_KINDS = ["back", "two", "ahead", "copied", "unread", "clear", "weak", "rest"];
const [SHOWN_FROM, SHARED_FROM, READ_FROM, NEARLY, LONG_JUMP, COUNTED_SIZE] = [0.5, 0.3, 0.25, 0.05, 2, 3];
const [SHORTER, ARTICLE_LETTERS, MIN_AHEAD_LETTERS, MIN_UNREAD_LETTERS, LEAST_MATCH, MATCH_MARGIN] = [1, 3, 4, 4, 0.25, 1.5];
const CJK_LETTER = /[\u2e80-\u9fff\uf900-\ufaff\uff66-\uff9d\u{20000}-\u{3ffff}]/u;
const MARKS_ONLY = /^[\p{P}\p{S}]*$/u;

const textWords = (tokens, special) =>
  mergedWords(tokens, special).filter(({ from }) => !isSpecial(tokens[from], special)).map((word) => ({ ...word, text: word.text.trim() }));
const sumOf = (numbers) => numbers.reduce((sum, one) => sum + one, 0);
const placesWhere = (values, holds) => [...values.keys()].filter((at) => holds(values[at], at));
const largestOf = (values) => values.indexOf(Math.max(...values));
const isMark = ({ text }) => MARKS_ONLY.test(text);
const lengthOf = ({ text }) => [...text].length;

/** Cross-attention between words: `weights[head][row][key]`, heads counted over all layers; `matches` are of all heads. */
function wordWeights(map) {
  const [rows, keys] = [map.rows, map.columns].map((tokens) => textWords(tokens, map.special));
  if (!rows.length || !keys.length) return null;
  const special = placesWhere(map.columns, (token) => isSpecial(token, map.special));
  const heads = Array.from({ length: map.layers * map.heads }, (_, at) => at);
  const pieces = (head, row) => map.row(Math.floor(head / map.heads), head % map.heads, row);
  const mean = ({ from, to }, head, sum) => sumOf(Array.from({ length: to - from }, (_, at) => sum(pieces(head, from + at)))) / (to - from);
  const weights = heads.map((head) => rows.map((row) => keys.map(({ from, to }) => mean(row, head, (line) => sumOf(line.subarray(from, to))))));
  const rest = heads.map((head) => rows.map((row) => mean(row, head, (line) => sumOf(special.map((at) => line[at])))));
  const shared = rows.map((_, row) => keys.map((_, key) => sumOf(heads.map((head) => weights[head][row][key])) / heads.length));
  const matches = shared.map(largestOf);
  const shares = heads.map((head) => matches.map((key, row) => weights[head][row][key]));
  return { map, rows, keys, heads, weights, rest, shared, matches, shares, pieces, agreement: shares.map((of) => sumOf(of) / rows.length) };
}

const showsWord = ({ shares, rows, keys, matches }, row, head) => shares[head][row] >= SHOWN_FROM && !isMark(rows[row]) && !isMark(keys[matches[row]]);

/** The pieces of a word that is the same in both texts, each of which looks most at itself; 0 for any other. */
function copiedPieces({ map, rows, keys, pieces }, row, key, head) {
  const [own, other] = [rows[row], keys[key]];
  const named = (tokens, { from, to }) => tokens.slice(from, to).map((token) => token.trim());
  if (own.to - own.from < 2 || String(named(map.rows, own)) !== String(named(map.columns, other))) return 0;
  if (!named(map.rows, own).every((_, at) => largestOf(pieces(head, own.from + at)) === other.from + at)) return 0;
  const written = named(map.rows, own).filter(Boolean).length;
  return written > 1 ? written : 0;
}

/** What is remarkable about a word that a head shows. */
function remarkable(words, row, head) {
  const { rows, keys, matches, shares } = words;
  const key = matches[row];
  const size = copiedPieces(words, row, key, head);
  if (size) return { kind: "copied", key, size };
  if (isMark(rows[row]) || isMark(keys[key])) return null;
  const before = placesWhere(rows, (one, at) => at < row && !isMark(one)).at(-1);
  if (before !== undefined && shares[head][before] >= SHOWN_FROM) {
    const left = matches[before];
    if (key < left && !matches.includes(left, row + 1) && !isMark(keys[left])) return { kind: "back", key, size: left - key };
    const over = placesWhere(rows, (_, later) => later > row && showsWord(words, later, head) && left < matches[later] && matches[later] < key);
    if (over.length && lengthOf(keys[key]) >= MIN_AHEAD_LETTERS) return { kind: "ahead", key, size: key - left };
  }
  const other = placesWhere(rows, (_, at) => at < row - 1 && matches[at] === key && showsWord(words, at, head)).at(-1);
  if (other === undefined || rows[other].text.toLowerCase() === rows[row].text.toLowerCase()) return null;
  return { kind: "twice", key, size: row - other };
}

/** What a head shows of a word of the translation. */
function readWord(words, row, head) {
  const { rows, keys, matches, rest } = words;
  const weights = words.weights[head][row];
  const own = largestOf(weights);
  const reading = (found) => ({ row, head, size: 0, share: weights[found.key], ...found });
  if (keys.length === 1) return reading({ kind: "only", key: own });
  if (rest[head][row] >= SHOWN_FROM) return reading({ kind: "rest", key: null, share: rest[head][row] });
  if (weights[matches[row]] >= SHOWN_FROM) return reading(remarkable(words, row, head) ?? { kind: "clear", key: matches[row] });
  const [first, second] = [...weights.keys()].sort((a, b) => weights[b] - weights[a]);
  const plain = ![rows[row], keys[first], keys[second]].some(isMark);
  if (weights[second] >= SHARED_FROM && [first, second].includes(matches[row]) && plain) return reading({ kind: "two", key: Math.min(first, second) });
  return reading({ kind: weights[own] >= SHOWN_FROM ? "other" : "weak", key: own });
}

/** Of the heads nearly as good as the best for a word, the one that shows all words best. */
function bestHead({ heads, shares, agreement }, row, off) {
  const allowed = heads.filter((head) => !off.has(head));
  const most = Math.max(...allowed.map((head) => shares[head][row]));
  const near = heads.map((head) => (!off.has(head) && shares[head][row] >= most - NEARLY ? agreement[head] : -1));
  return largestOf(near);
}

function* tellingReadings(words, off) {
  const { rows, keys, heads, weights, shares, agreement } = words;
  const all = rows.every(isMark);
  for (const row of rows.keys()) {
    if (isMark(rows[row]) && !all) continue;
    const best = bestHead(words, row, off);
    yield readWord(words, row, best);
    for (const head of heads) if (!off.has(head) && shares[head][row] >= Math.max(SHOWN_FROM, shares[best][row] - NEARLY)) yield readWord(words, row, head);
  }
  for (const key of keys.keys()) {
    const worth = CJK_LETTER.test(keys[key].text) || (keys[key].text.match(/\p{L}/gu) ?? []).length >= MIN_UNREAD_LETTERS;
    const share = Math.max(...weights.flatMap((of) => of.map((row) => row[key])));
    if (share < READ_FROM && worth) yield { kind: "unread", row: null, key, head: largestOf(agreement.map((value, head) => (off.has(head) ? -1 : value))), size: 0, share };
  }
}

/** Whether a later word that is no shorter, or a longer one before, has the same match: the word is not written for it. */
function hasOtherWord({ rows, matches }, row) {
  const own = lengthOf(rows[row]);
  return rows.some((other, at) => matches[at] === matches[row] && (at > row ? lengthOf(other) >= own - SHORTER : lengthOf(other) > own));
}

/** Whether all heads together give the match of a word little, or another word nearly as much. */
function isContested({ shared }, row) {
  const [most, next = 0] = [...shared[row]].sort((a, b) => b - a);
  return most < LEAST_MATCH || most < MATCH_MARGIN * next;
}

/** Whether it is an article or as short, and so is its match, and the next word looks at the word after that. */
function jumpsWithNextWord({ rows, keys, matches }, row, key) {
  const short = (word) => lengthOf(word) <= ARTICLE_LETTERS && !CJK_LETTER.test(word.text);
  return key !== null && short(rows[row]) && short(keys[key]) && matches[row + 1] === key + 1;
}

/** The letters of a word, as far as its match has as many: "meinem" at "my" is no long word. */
function tellingLetters({ rows, keys, matches }, row) {
  const [own, match] = [rows[row], keys[matches[row]]];
  return CJK_LETTER.test(own.text + match.text) ? lengthOf(own) : Math.min(lengthOf(own), lengthOf(match) + 1);
}

/** What a reading is sorted by, the most telling first. */
function tellingOrder(words, { kind, row, key, head, size, share }) {
  const { keys, agreement } = words;
  const short = ["back", "ahead"].includes(kind) && size < LONG_JUMP;
  const plain = short ? "clear" : kind;
  const onMark = plain === "clear" && key !== null && isMark(keys[key]);
  const pair = ["clear", "back", "ahead"].includes(plain) && row !== null;
  const jumps = plain !== "clear";
  const doubtful = pair && (hasOtherWord(words, row) || isContested(words, row) || (jumps && jumpsWithNextWord(words, row, key)));
  const rank = TELLING_KINDS.indexOf(onMark || doubtful ? "weak" : plain);
  const letters = row === null ? 0 : tellingLetters(words, row);
  return [rank < 0 ? TELLING_KINDS.length : rank, -(Math.min(size, COUNTED_SIZE) + letters), -Math.round(share / NEARLY), -agreement[head], row ?? 0];
}

function isBefore(one, other) {
  const at = one.findIndex((value, i) => value !== other[i]);
  return at >= 0 && one[at] < other[at];
}

/**
 * The word that tells most and the head that shows it best, those switched off left out, as [kind, layer, head]:
 * { kind, place, row, key }, `row` and `key` the first piece of a word or null; null without words.
 */
export function tellingWord(map, off = []) {
  const words = wordWeights(map);
  if (!words) return null;
  const left = new Set(off.filter(([kind]) => kind === "cross").map(([, layer, head]) => layer * map.heads + head));
  let best = null;
  for (const reading of left.size < words.heads.length ? tellingReadings(words, left) : []) {
    const order = tellingOrder(words, reading);
    if (!best || isBefore(order, best.order)) best = { reading, order };
  }
  if (!best) return null;
  const { kind, head, row, key } = best.reading;
  const place = { layer: Math.floor(head / map.heads), head: head % map.heads };
  return { kind, place, row: row === null ? null : words.rows[row].from, key: key === null ? null : words.keys[key].from };
}
