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

function feedForward(weights, name) {
  const [inner, outer] = [linear(weights, `${name}.inner`), linear(weights, `${name}.outer`)];
  return (x) => outer(inner(x).map((value) => (value > 0 ? value : 0)));
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
    feedForward: feedForward(weights, `${name}.feed_forward`),
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
