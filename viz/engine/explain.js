import { changesOf } from "./changes.js";
import { begun, rankOf } from "./search.js";

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
