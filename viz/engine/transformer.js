import { attend, embedding, finalNorm, generator, layerParts } from "./layers.js";

function logSoftmax(scores) {
  let [most, sum] = [-Infinity, 0];
  for (const score of scores) if (score > most) most = score;
  for (const score of scores) sum += Math.exp(score - most);
  const whole = most + Math.log(sum);
  return scores.map((score) => score - whole);
}

/** Keys and values that grow by a row a step. */
export class Cache {
  constructor(width, room) {
    this.width = width;
    this.count = 0;
    this.keys = new Float32Array(width * room);
    this.values = new Float32Array(width * room);
  }

  append(keys, values) {
    this.keys.set(keys, this.count * this.width);
    this.values.set(values, this.count * this.width);
    this.count += keys.length / this.width;
  }

  copy() {
    const made = new Cache(this.width, this.keys.length / this.width);
    made.append(this.keys.subarray(0, this.count * this.width), this.values.subarray(0, this.count * this.width));
    return made;
  }
}

/**
 * The encoder-decoder Transformer of model/network, in every variant its configuration describes, for one sentence.
 * `weights` is what readWeights returns.
 */
export function transformer(config, weights) {
  const { d_model: width, heads } = config;
  const shape = { width, heads, scale: config.scale_scores ? 1 / Math.sqrt(width / heads) : 1 };
  const layers = (stack, count) => Array.from({ length: count }, (_, i) => layerParts(weights, `${stack}.layers.${i}`, config));
  const [encoder, decoder] = [layers("encoder", config.encoder_layers), layers("decoder", config.decoder_layers)];
  const [source, target] = ["source", "target"].map((side) => embedding(weights, side, config));
  const [encoderNorm, decoderNorm] = ["encoder", "decoder"].map((stack) => finalNorm(weights, stack, config));
  const generate = generator(weights, target.table);

  /** Source ids -> { memory (S, D), weights[layer][query] (H, S) }. */
  const encode = (ids, changes) => {
    let x = source.rows(ids, 0);
    const seen = encoder.map(({ own, feedForward, afterOwn, afterFeedForward }, layer) => {
      /** @type {ReturnType<typeof attend>} */
      let found;
      x = afterOwn(x, (y) => {
        const [keys, values] = [own.k(y), own.v(y)];
        const changed = changes("encoder", layer);
        const rows = ids.map((_, position) => ({ position, keys, values, count: ids.length, changes: changed }));
        found = attend(own.q(y), rows, shape);
        return own.out(found.context);
      });
      x = afterFeedForward(x, feedForward);
      return found.weights;
    });
    return { memory: encoderNorm(x), weights: seen };
  };

  /** The keys and values of the encoder's output for every layer of the decoder. */
  const crossOf = (memory) => decoder.map(({ cross }) => ({ keys: cross.k(memory), values: cross.v(memory), count: memory.length / width }));

  /** The caches of a hypothesis of which nothing is written. */
  const caches = (room) => decoder.map(() => new Cache(width, room));

  /** The decoder's residual stream (rows, D) -> the log-probabilities of what comes next, one (V,) a row. */
  const predict = (x) => {
    const scores = generate(decoderNorm(x));
    const rows = x.length / width;
    const size = scores.length / rows;
    return Array.from({ length: rows }, (_, i) => logSoftmax(scores.subarray(i * size, (i + 1) * size)));
  };

  /**
   * One step for hypotheses at one position: each { token, caches, crossing, changes }, `token` the one written last,
   * `crossing` what crossOf gave for its source. -> { logProbs, one (V,) each, own and cross: [layer][hypothesis] (H, keys),
   * stream: the residual stream (hypotheses, D) after the embedding and after each layer }.
   */
  const step = (hypotheses, position) => {
    const one = target.rows([0], position).length;
    let x = new Float32Array(hypotheses.length * one);
    hypotheses.forEach(({ token }, i) => x.set(target.rows([token], position), i * one));
    const seen = { own: [], cross: [], stream: [x] };
    decoder.forEach((parts, layer) => {
      x = parts.afterOwn(x, (y) => {
        const [keys, values] = [parts.own.k(y), parts.own.v(y)];
        const rows = hypotheses.map(({ caches: own, changes }, i) => {
          own[layer].append(keys.subarray(i * one, (i + 1) * one), values.subarray(i * one, (i + 1) * one));
          return { position, ...own[layer], changes: changes("decoder", layer) };
        });
        const found = attend(parts.own.q(y), rows, shape);
        seen.own.push(found.weights);
        return parts.own.out(found.context);
      });
      x = parts.afterCross(x, (y) => {
        const rows = hypotheses.map(({ crossing, changes }) => ({ position, ...crossing[layer], changes: changes("cross", layer) }));
        const found = attend(parts.cross.q(y), rows, shape);
        seen.cross.push(found.weights);
        return parts.cross.out(found.context);
      });
      x = parts.afterFeedForward(x, parts.feedForward);
      seen.stream.push(x);
    });
    return { ...seen, logProbs: predict(x) };
  };

  return { config, encode, crossOf, caches, predict, step };
}
