import { begun, rankOf } from "./search.js";

const HEAD = /^(encoder|decoder|cross)\.([1-9]\d{0,5})\.([1-9]\d{0,5}):(off|uniform|head\.([1-9]\d{0,5}))$/;
const MASK = /^mask\.(encoder|decoder|cross)\.([1-9]\d{0,5}|\*)\.([1-9]\d{0,5}|\*)\.([1-9]\d{0,5}|\*):(allow|block)$/;
const from0 = (text) => (text === "*" ? null : Number(text) - 1);

function changeOf(text) {
  const head = HEAD.exec(text);
  if (head) {
    const [, kind, layer, own, change, source] = head;
    return { kind, layer: from0(layer), head: from0(own), change: source ? "copy" : change, source: source ? from0(source) : null };
  }
  const mask = MASK.exec(text);
  if (!mask) throw new RangeError(`“${text}” is no change to a model.`);
  const [, kind, layer, query, key, change] = mask;
  return { kind, layer: from0(layer), query: from0(query), key: from0(key), change };
}

/**
 * Changes to heads and masks, in the text form of model/interventions/changes.py, for one translation: what they do to
 * the attention of `kind` in `layer` (from 0), as { head(h) -> change or undefined, allowed(query, key, own) }.
 */
export function changesOf(text) {
  const every = text.split(",").map((part) => part.trim()).filter(Boolean).map(changeOf);
  return (kind, layer) => {
    const own = every.filter((one) => one.kind === kind && (one.layer === null || one.layer === layer));
    const heads = new Map(own.filter(({ head }) => head !== undefined).map((one) => [one.head, one]));
    const masks = own.filter(({ head }) => head === undefined);
    const touches = (place, at) => place === null || place === at;
    const allowed = (query, key, before) =>
      masks.reduce((now, one) => (touches(one.query, query) && touches(one.key, key) ? one.change === "allow" : now), before);
    return { heads, allowed };
  };
}

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

/** Every head of a model, a list for each kind and layer. */
function headsByLayer({ encoder_layers: encoder, decoder_layers: decoder, heads }) {
  const of = (kind, layer) => Array.from({ length: heads }, (_, head) => ({ kind, layer, head }));
  const stack = (kind, count) => Array.from({ length: count }, (_, layer) => of(kind, layer));
  return [...stack("encoder", encoder), ...stack("decoder", decoder), ...stack("cross", decoder)];
}

/** The log-probabilities of `ids`, read by teacher forcing in every hypothesis: [hypothesis][position]; `look` sees each step. */
function read(model, hypotheses, ids, look = (_step, _id) => {}) {
  const found = hypotheses.map(() => []);
  ids.forEach((id, position) => {
    const step = model.step(hypotheses, position);
    step.logProbs.forEach((row, i) => found[i].push(row[id]));
    look(step, id);
    for (const one of hypotheses) one.token = id;
  });
  return found;
}

/**
 * What the tokens written, `ids`, rest on, with the changes to the model in the text `changes`. Returns
 * - `ranks`, [place][token]: the rank of each token after the embedding and after each layer, read as if it were the last
 *   (model/experiments/lens.py);
 * - `effects`, { kind, layer, head, changes } of each head: by how much each token's log-probability changes once the head
 *   is switched off (model/experiments/ablation.py).
 * A generator: it yields after each layer of heads, so that something else can have its turn.
 */
export function* explained(model, { sourceIds, ids, changes }) {
  const task = (text) => {
    const own = changesOf(text);
    return { changes: own, crossing: model.crossOf(model.encode(sourceIds, own).memory), limit: ids.length };
  };
  const whole = task(changes);
  const ranks = [];
  const look = ({ stream }, id) => ranks.push(stream.map((x) => rankOf(model.predict(x)[0], id)));
  const [before] = read(model, [begun(model, whole)], ids, look);
  const effects = [];
  for (const heads of headsByLayer(model.config)) {
    yield;
    const hypotheses = heads.map(({ kind, layer, head }) => {
      const text = [changes, `${kind}.${layer + 1}.${head + 1}:off`].filter(Boolean).join(",");
      return begun(model, kind === "encoder" ? task(text) : { ...whole, changes: changesOf(text) });
    });
    const found = read(model, hypotheses, ids);
    heads.forEach((one, i) => effects.push({ ...one, changes: found[i].map((logProb, at) => logProb - before[at]) }));
  }
  return { ranks: ranks[0].map((_, place) => ranks.map((row) => row[place])), effects };
}
