/** The weights of one query over `count` keys, for all heads: -> (heads, count), a row of zeros where no key is allowed. */
function weightsOf(query, keys, count, allowed, { heads, scale, width }, changes) {
  const weights = new Float32Array(heads * count);
  const size = width / heads;
  for (let head = 0; head < heads; head += 1) {
    const own = weights.subarray(head * count, (head + 1) * count);
    const level = changes.get(head)?.change === "uniform";
    let most = -Infinity;
    for (let key = 0; key < count; key += 1) {
      let score = 0;
      for (let i = head * size, to = (head + 1) * size, at = key * width; i < to; i += 1) score += query[i] * keys[at + i];
      own[key] = !allowed(key) ? -Infinity : level ? 0 : score * scale;
      most = Math.max(most, own[key]);
    }
    if (most === -Infinity) own.fill(0);
    else softmax(own, most);
  }
  for (const [head, { change, source }] of changes) {
    if (change === "copy") weights.copyWithin(head * count, source * count, (source + 1) * count);
  }
  return weights;
}

function softmax(row, most) {
  let sum = 0;
  for (let i = 0; i < row.length; i += 1) sum += row[i] = Math.exp(row[i] - most);
  for (let i = 0; i < row.length; i += 1) row[i] /= sum;
}

/** What one query takes from the values, equation (1): the heads' parts behind each other, written to `context`. */
function mix(weights, values, count, { heads, width }, changes, context) {
  const size = width / heads;
  for (let head = 0; head < heads; head += 1) {
    if (changes.get(head)?.change === "off") continue;
    for (let key = 0; key < count; key += 1) {
      const weight = weights[head * count + key];
      for (let i = head * size, to = (head + 1) * size, at = key * width; i < to; i += 1) context[i] += weight * values[at + i];
    }
  }
}

/**
 * Attention of one kind in one layer, section 3.2.2. `queries` are (rows, D); `rows` say of each what it looks at and how
 * its attention is changed, { position, keys, values, count, changes }: -> { context (rows, D), weights, one (heads, count)
 * a row }.
 */
export function attend(queries, rows, shape) {
  const { width } = shape;
  const context = new Float32Array(rows.length * width);
  const weights = rows.map(({ position, keys, values, count, changes: { heads, allowed } }, r) => {
    const query = queries.subarray(r * width, (r + 1) * width);
    const found = weightsOf(query, keys, count, (key) => allowed(position, key, true), shape, heads);
    mix(found, values, count, shape, heads, context.subarray(r * width, (r + 1) * width));
    return found;
  });
  return { context, weights };
}
