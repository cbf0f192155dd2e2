import { FINE_FULL, FINE_MASKED, FULL, MASKED } from "../../web/src/shared/packed.js";
import { listed, say, written } from "../../web/src/shared/say.js";

// As viz/figures/figure_style.py and text_alternatives.py, whose texts these are; tests/browser/test_live_data.py holds them together.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/u;
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18cff}\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
const LEAST_NAMED_WEIGHT = 0.005;
const SPECIAL = new Set(["</s>", "<pad>", "<s>"]);

/** Whether a token stands for no text; `special` are those of which the run's model says so. */
export const isSpecial = (token, special = []) => SPECIAL.has(token) || special.includes(token);

/** Whether a token is a word of its own, whatever stands around it. */
export const isApart = (token, special = []) => isSpecial(token, special) || token === "<unk>";

const visible = (character) =>
  HIDDEN.test(character) ? `\\u${character.codePointAt(0).toString(16).padStart(4, "0")}` : character;

/** A token as a person can see it: no leading space, and a visible sign for what has no shape of its own. */
export const readable = (token) => [...token.replaceAll("\n", "↵").trim()].map(visible).join("") || "␣";

/** Tokens as `readable` writes them; of two that read alike one inside a word begins with "…". */
export function namesApart(tokens) {
  const names = tokens.map(readable);
  return names.map((name, at) => (names.filter((one) => one === name).length > 1 && !/^\s/.test(tokens[at]) ? `…${name}` : name));
}

/** Tokens of a line of text: how each reads, whether a space stands before it, and whether it stands for no text. */
export const piecesOf = (tokens, special = []) =>
  tokens.map((token) => ({ text: readable(token), space: /^[ \u2581]/.test(token) || isApart(token, special), special: isSpecial(token, special) }));

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
  if (!named.length) return say("{query} may attend to nothing that is shown.", { query: quoted(query) });
  return say("{query} looks at {keys}.", { query: quoted(query), keys: listed(named) });
}

/** The mean over layers and heads, special source tokens left out: the source token each row is aligned to. */
function aligned(map) {
  const { layers, heads, queries, keys, columns, special } = map;
  const plain = columns.map((token) => !isSpecial(token, special));
  const counts = plain.some(Boolean) ? plain : plain.map(() => true);
  return Array.from({ length: queries }, (_, query) => {
    const sums = new Float64Array(keys);
    for (let layer = 0; layer < layers; layer += 1)
      for (let head = 0; head < heads; head += 1) map.row(layer, head, query).forEach((weight, key) => (sums[key] += counts[key] ? weight : 0));
    return sums.indexOf(Math.max(...sums));
  });
}

/**
 * The cross-attention head that agrees best with the average of all, read at the token predicted, as
 * model/analysis/heads.py ranks them; `off` are heads left out, as [kind, layer, head].
 */
export function bestAligning(map, off = []) {
  const expected = aligned(map);
  const text = map.rows.flatMap((token, row) => (isSpecial(token, map.special) ? [] : [row]));
  const rows = text.length ? text : map.rows.map((_, row) => row);
  let best = null;
  for (let layer = 0; layer < map.layers; layer += 1) {
    for (let head = 0; head < map.heads; head += 1) {
      if (off.some((one) => String(one) === `cross,${layer},${head}`)) continue;
      const mass = rows.reduce((sum, row) => sum + map.row(layer, head, row)[expected[row]], 0);
      if (!best || mass > best.mass) best = { layer, head, mass };
    }
  }
  return best ?? { layer: 0, head: 0 };
}

// As viz/web/component_scripts.py, where the arithmetic is explained.
const PARTS = 25400;

const nearestInteger = (value) => {
  const below = Math.floor(value);
  const rest = value - below;
  return rest === 0.5 ? below + (below % 2) : Math.round(value);
};

/** A value of 0..top as a whole number of 0..full, in the same half of the last of its decimals. */
function level(value, top, full, decimals) {
  const held = Math.min(Math.max(value, 0), top);
  const nearest = nearestInteger((held / top) * full);
  const cell = (one) => Math.floor(one * 2 * 10 ** decimals);
  return nearest + Math.sign(cell(held) - cell((top * nearest) / full));
}

const BYTES = Uint8Array.from({ length: PARTS + 1 }, (_, i) => level((i + 0.5) / PARTS, 1, FULL, 2));

/** Weights and where they are allowed -> a byte each. */
export function quantised(weights, allowed) {
  const bytes = new Uint8Array(weights.length);
  for (let i = 0; i < weights.length; i += 1) {
    bytes[i] = allowed(i) ? BYTES[Math.min(Math.max(Math.trunc(weights[i] * PARTS), 0), PARTS)] : MASKED;
  }
  return bytes;
}

/** The same in two bytes each. */
export function fine(weights, allowed) {
  const numbers = Uint16Array.from(weights, (weight, i) => (allowed(i) ? level(weight, 1, FINE_FULL, 3) : FINE_MASKED));
  return new Uint8Array(numbers.buffer);
}

/** The attention of one kind of a run, with the names of its rows (the tokens predicted) and columns, and which are special. */
export function mapOf(run, kind) {
  const { shape: [layers, heads, queries, keys], data, mask } = run.maps[kind];
  const size = queries * keys;
  return {
    ...{ kind, layers, heads, queries, keys, special: run.special },
    rows: kind === "encoder" ? run.sourceTokens : run.tokens,
    columns: kind === "decoder" ? [run.start, ...run.tokens.slice(0, -1)] : run.sourceTokens,
    weights: (layer, head, count = 1) => data.subarray((layer * heads + head) * size, (layer * heads + head + count) * size),
    row: (layer, head, query) => data.subarray(((layer * heads + head) * queries + query) * keys, ((layer * heads + head) * queries + query + 1) * keys),
    allowed: (layer) => (at) => mask[layer * size + (at % size)] === 1,
    anywhere: (at) => { // In any layer, as a trace's mask says it.
      for (let layer = 0; layer < layers; layer += 1) if (mask[layer * size + at]) return true;
      return false;
    },
  };
}

/** The rows and the columns that are special tokens. */
export const specialPlaces = ({ rows, columns, special }) =>
  [rows, columns].map((tokens) => tokens.flatMap((token, at) => (isSpecial(token, special) ? [at] : [])));

const SHARPEST = 128;
const POINTS = 64;

/** The maps of all heads, small enough for tiles (viz/figures/heatmap.py): a point is the largest weight of its block. */
export function pooled(map) {
  const { layers, heads, queries, keys } = map;
  const longest = Math.max(queries, keys);
  const block = longest <= SHARPEST ? 1 : Math.ceil(longest / POINTS);
  const all = map.weights(0, 0, layers * heads);
  if (block === 1) return { queries, keys, weights: all, allowed: (at) => map.anywhere(at % (queries * keys)) };
  const [rows, columns] = [Math.ceil(queries / block), Math.ceil(keys / block)];
  const weights = new Float32Array(layers * heads * rows * columns);
  const open = new Uint8Array(rows * columns);
  all.forEach((weight, i) => {
    const at = i % (queries * keys);
    const point = Math.floor(Math.floor(at / keys) / block) * columns + Math.floor((at % keys) / block);
    if (!map.anywhere(at)) return;
    open[point] = 1;
    const to = Math.floor(i / (queries * keys)) * rows * columns + point;
    weights[to] = Math.max(weights[to], weight);
  });
  return { queries: rows, keys: columns, weights, allowed: (at) => open[at % (rows * columns)] === 1 };
}
