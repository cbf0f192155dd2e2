/** Gram matrices of every head's slice of W_O, (heads, d, d): what the norm of a vector behind it takes. */
function gramsOf({ tensors, row }, name, { d_model: width, heads }) {
  const [matrix, size] = [tensors.get(`${name}.out_proj.weight`), width / heads];
  const grams = new Float64Array(heads * size * size);
  for (let out = 0; out < matrix.outer; out += 1) {
    const own = row(matrix, out);
    for (let head = 0, at = 0; head < heads; head += 1)
      for (let i = 0; i < size; i += 1)
        for (let j = 0; j < size; j += 1, at += 1) grams[at] += own[head * size + i] * own[head * size + j];
  }
  return grams;
}

/** ||v W_O|| of every head and key: values (S, D) -> (heads, S). */
function normsOf(values, grams, { d_model: width, heads }) {
  const [size, keys] = [width / heads, values.length / width];
  const norms = new Float64Array(heads * keys);
  for (let head = 0; head < heads; head += 1) {
    for (let key = 0; key < keys; key += 1) {
      const [from, at] = [key * width + head * size, head * size * size];
      let square = 0;
      for (let i = 0; i < size; i += 1) for (let j = 0; j < size; j += 1) square += values[from + i] * values[from + j] * grams[at + i * size + j];
      norms[head * keys + key] = Math.sqrt(Math.max(square, 0));
    }
  }
  return norms;
}

/**
 * What a translation looked at, over all heads of all layers, each weight times the norm of what its key adds to the
 * residual stream (Kobayashi et al. 2020), as model/experiments/ablation.py says it: of the `steps` and the decoder's
 * keys and values of the source, (T, S), each row summing to 1.
 */
export function lookedAt(weights, config) {
  let grams = null;
  return (steps, crossing) => {
    grams ??= crossing.map((_, layer) => gramsOf(weights, `decoder.layers.${layer}.cross_attention`, config));
    const norms = crossing.map(({ values }, layer) => normsOf(values, grams[layer], config));
    const keys = crossing[0].count;
    const shares = new Float32Array(steps.length * keys);
    const each = 1 / (crossing.length * config.heads);
    steps.forEach(({ cross }, step) =>
      cross.forEach((rows, layer) => {
        for (let head = 0; head < config.heads; head += 1) {
          const own = Float64Array.from({ length: keys }, (_, key) => rows[head * keys + key] * norms[layer][head * keys + key]);
          const total = own.reduce((sum, one) => sum + one, 0);
          if (total) own.forEach((one, key) => (shares[step * keys + key] += (each * one) / total));
        }
      }),
    );
    return shares;
  };
}
