import { isSpecial } from "./labels.js";

const START = "<s>";

/** The attention of one kind of a run, with the names of its rows (the tokens predicted) and columns. */
export function mapOf(run, kind) {
  const { shape: [layers, heads, queries, keys], data, mask } = run.maps[kind];
  const size = queries * keys;
  return {
    ...{ kind, layers, heads, queries, keys },
    rows: kind === "encoder" ? run.sourceTokens : run.tokens,
    columns: kind === "decoder" ? [START, ...run.tokens.slice(0, -1)] : run.sourceTokens,
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
export const specialPlaces = ({ rows, columns }) =>
  [rows, columns].map((tokens) => tokens.flatMap((token, at) => (isSpecial(token) ? [at] : [])));

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
