import { isSpecial } from "./labels.js";

/** The mean over layers and heads, special source tokens left out: the source token each row is aligned to. */
function aligned(map) {
  const { layers, heads, queries, keys, columns } = map;
  const plain = columns.map((token) => !isSpecial(token));
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
  const text = map.rows.flatMap((token, row) => (isSpecial(token) ? [] : [row]));
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
