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
  const copies = [...changes].filter(([, { change }]) => change === "copy");
  const before = copies.length ? weights.slice() : weights; // One that is copied may itself copy another.
  for (const [head, { source }] of copies) weights.set(before.subarray(source * count, (source + 1) * count), head * count);
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

/** Row `position` of the table of section 3.5; Marian has all its sines before all its cosines. */
function sinusoidal(position, width, inHalves) {
  const row = new Float32Array(width);
  const sines = Math.ceil(width / 2);
  for (let i = 0; i < width; i += 1) {
    const angle = position / 10000 ** ((i - (i % 2)) / width);
    row[inHalves ? (i >> 1) + (i % 2) * sines : i] = i % 2 ? Math.cos(angle) : Math.sin(angle);
  }
  return row;
}

/** Token embedding and positions of one side, without padding: (ids, offset) -> (ids, D). */
export function embedding({ tensors, row }, side, config) {
  const { d_model: width, positions } = config;
  const shared = side === "target" && config.shared_embedding;
  const table = tensors.get(`${shared ? "source" : side}_embedding.table.weight`);
  const learned = tensors.get(`${side}_embedding.positional_encoding.table`);
  const scale = config.scale_embedding ? Math.fround(Math.sqrt(width)) : 1;
  const sines = new Map();
  const encoding = (id, position) => {
    if (positions === "learned") return row(learned, position);
    // The table with a row for PAD has it before all others: those of real tokens are the same.
    if (positions === "sinusoidal_pad_row" && id === config.ids.pad) return new Float32Array(width);
    if (!sines.has(position)) sines.set(position, sinusoidal(position, width, positions === "sinusoidal_halves"));
    return sines.get(position);
  };
  const rows = (ids, offset) => {
    const out = new Float32Array(ids.length * width);
    ids.forEach((id, at) => {
      out.set(row(table, id), at * width);
      const own = encoding(id, offset + at);
      for (let i = 0; i < width; i += 1) out[at * width + i] = Math.fround(out[at * width + i] * scale) + own[i];
    });
    return out;
  };
  return { table, rows };
}

const TINY = 2 ** -126; // The smallest normal float32, as model/network/layers.py keeps a variance above zero.

/** Layer norm of every row of `width` numbers, in the form and with the epsilon of the configuration. */
function norm(tensors, name, { d_model: width, norm_form: form, norm_eps: eps }) {
  const [gain, bias] = [tensors.get(`${name}.weight`), tensors.get(`${name}.bias`)];
  return (x) => {
    const out = new Float32Array(x.length);
    for (let from = 0; from < x.length; from += width) {
      let [mean, squares] = [0, 0];
      for (let i = 0; i < width; i += 1) mean += x[from + i] / width;
      for (let i = 0; i < width; i += 1) squares += (x[from + i] - mean) ** 2;
      const divisor = form === "std_eps" ? Math.sqrt(Math.max(squares / (width - 1), TINY)) + eps : Math.sqrt(squares / width + eps);
      for (let i = 0; i < width; i += 1) out[from + i] = ((x[from + i] - mean) / divisor) * gain[i] + bias[i];
    }
    return out;
  };
}

function linear({ tensors, times }, name) {
  const [matrix, bias] = [tensors.get(`${name}.weight`), tensors.get(`${name}.bias`)];
  return (x) => {
    const out = times(x, matrix);
    if (bias) for (let at = 0; at < out.length; at += bias.length) for (let i = 0; i < bias.length; i += 1) out[at + i] += bias[i];
    return out;
  };
}

/** A sublayer with its residual connection and norm, before or after: model/network/layers.py, Residual. */
function residual({ tensors }, name, config) {
  const normed = norm(tensors, `${name}.norm`, config);
  const sum = (x, y) => x.map((value, i) => value + y[i]);
  return config.norm_order === "pre" ? (x, sublayer) => sum(x, sublayer(normed(x))) : (x, sublayer) => normed(sum(x, sublayer(x)));
}

/** The error function within 1.5e-7, Abramowitz and Stegun (1964), 7.1.26: single precision rounds as coarsely. */
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const sum = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592].reduce((all, factor) => (all + factor) * t, 0);
  return Math.sign(x) * (1 - sum * Math.exp(-x * x));
}

const ACTIVATIONS = {
  gelu: (value) => (value / 2) * (1 + erf(value / Math.SQRT2)),
  relu: (value) => (value > 0 ? value : 0),
  silu: (value) => value / (1 + Math.exp(-value)),
};

function feedForward(weights, name, { activation }) {
  const [inner, outer] = [linear(weights, `${name}.inner`), linear(weights, `${name}.outer`)];
  return (x) => outer(inner(x).map(ACTIVATIONS[activation]));
}

/** The four projections of an attention. */
function projections(weights, name) {
  const [q, k, v, out] = ["q", "k", "v", "out"].map((one) => linear(weights, `${name}.${one}_proj`));
  return { q, k, v, out };
}

/** The pieces of one layer of a stack, by name. */
export function layerParts(weights, name, config) {
  const crossing = name.startsWith("decoder");
  return {
    own: projections(weights, `${name}.self_attention`),
    cross: crossing ? projections(weights, `${name}.cross_attention`) : null,
    feedForward: feedForward(weights, `${name}.feed_forward`, config),
    afterOwn: residual(weights, `${name}.after_self_attention`, config),
    afterCross: crossing ? residual(weights, `${name}.after_cross_attention`, config) : null,
    afterFeedForward: residual(weights, `${name}.after_feed_forward`, config),
  };
}

export const finalNorm = ({ tensors }, stack, config) => (config.final_norm ? norm(tensors, `${stack}.final_norm`, config) : (x) => x);

/** The generator; tied to the target embedding where it has no matrix of its own. */
export function generator({ tensors, times }, target) {
  const matrix = tensors.get("generator.weight") ?? target;
  const named = new Map([["own.weight", matrix], ["own.bias", tensors.get("generator.bias")]]);
  return linear({ tensors: named, times }, "own");
}
