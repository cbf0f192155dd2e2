import { pack } from "../../web/src/shared/packed.js";
import { listed, say, written } from "../../web/src/shared/say.js";
import { labelText, mapOf, namesApart, percentOf, piecesOf, quantised, readable } from "./attention_map.js";

const SURE = 0.6;
const CANDIDATES = 8;

function noteOf({ id, token, logProb, candidates }) {
  const others = candidates.filter((one) => one.id !== id).slice(0, 3);
  const names = namesApart(others.map((one) => one.token));
  const after = others.map((one, at) => `${names[at]} ${percentOf(Math.exp(one.logProb))}`);
  const piece = `${readable(token)} ${percentOf(Math.exp(logProb))}`;
  return after.length ? say("{piece}; next best: {others}", { piece, others: listed(after) }) : piece;
}

/** What tokens.js reads: the translation, with the pieces of which the model was unsure. */
export function tokensData(run, pinned) {
  const pieces = run.steps.map((step, at) => ({
    text: step.token,
    doubt: Math.round((1 - Math.exp(step.logProb)) * 1000) / 1000,
    unsure: Math.exp(step.logProb) < SURE,
    special: at === run.steps.length - 1 && run.stopped === "eos",
    note: noteOf(step),
  }));
  return { pieces, pinned, keep: false, word: [] };
}

function stepsOf(steps) {
  let total = 0;
  return steps.map(({ id, token, logProb, rank, candidates }) => {
    total += logProb;
    const first = candidates.slice(0, CANDIDATES);
    const names = namesApart(first.map((one) => one.token));
    const shown = first.map((one, at) => {
      const row = { id: one.id, text: names[at], p: Math.exp(one.logProb) };
      return one.forbidden ? { ...row, forbidden: true } : row;
    });
    return { total, chosen: { id, text: readable(token), p: Math.exp(logProb), rank }, candidates: shown };
  });
}

/** The bytes of a map's heads, each layer's followed by those of their mean. */
function withMeans(map) {
  const { layers, heads, queries, keys } = map;
  const size = queries * keys;
  const all = new Uint8Array(layers * (heads + 1) * size);
  for (let layer = 0; layer < layers; layer += 1) {
    const weights = map.weights(layer, 0, heads);
    const mean = Float64Array.from({ length: size }, (_, at) => {
      let sum = 0;
      for (let head = 0; head < heads; head += 1) sum += weights[head * size + at];
      return sum / heads;
    });
    all.set(quantised(weights, (at) => map.anywhere(at % size)), layer * (heads + 1) * size);
    all.set(quantised(mean, map.anywhere), (layer * (heads + 1) + heads) * size);
  }
  return all;
}

/** Whether an attention has a head of this name, "3.1" or "3.mean": one may have been chosen for another model. */
function hasHead({ layers, heads }, name) {
  const [layer, head] = name.split(".");
  return layer >= 1 && layer <= layers && (head === "mean" || (head >= 1 && head <= heads));
}

/** What decode_player.js reads; `aligning` is the best aligning head, `crossHead` and `ownHead` name those it begins with. */
export function playerData(run, { id, step, aligning, crossHead = "", ownHead = "" }, palette) {
  const [cross, own] = ["cross", "decoder"].map((kind) => mapOf(run, kind));
  const shape = ({ layers, heads, queries, keys }) => [layers, heads, queries, keys];
  const header = {
    id,
    start: Math.min(step, run.steps.length - 1),
    source: piecesOf(run.sourceTokens, run.special),
    target: piecesOf([own.columns[0], ...run.tokens], run.special),
    steps: stepsOf(run.steps),
    cross: { shape: shape(cross), chosen: hasHead(cross, crossHead) ? crossHead : "aligning", name: say("cross-attention") },
    own: { shape: shape(own), chosen: hasHead(own, ownHead) ? ownHead : `${own.layers}.mean` },
    aligning: [aligning.layer, aligning.head],
    stops: palette.stops,
    scale: palette.scale,
    masked: palette.masked,
    background: palette.background,
    inks: [palette.ink, palette.background],
    line: palette.line,
    accent: palette.accent,
  };
  const parts = [cross, own].map(withMeans);
  const body = new Uint8Array(parts[0].length + parts[1].length);
  body.set(parts[0]);
  body.set(parts[1], parts[0].length);
  return pack(header, body);
}

const FATES = { alive: say("searched on from"), finished: say("finished"), pruned: say("pruned: given up here") };
const LONGEST_NAME = 11;

/** What beam_tree.js reads, as viz/web/src/beam_tree makes it; `chosen` are the ids to the node that is looked at. */
export function treeData({ best, nodes }, chosen) {
  const isBest = (ids) => ids.every((id, at) => best[0]?.ids[at] === id);
  const drawn = nodes.map(({ position, place, parent, ids, score, token, fate }) => {
    const far = say("log-probability so far {score}", { score: written(score.toFixed(2)) });
    return {
      row: place,
      column: position,
      parent,
      text: labelText(token, LONGEST_NAME),
      name: say("Step {step}, place {place}: {token}, {far}, {fate}", { step: position + 1, place: place + 1, token: readable(token), far, fate: FATES[fate] }),
      note: `${readable(token)}\n${far}\n${FATES[fate]}`,
      fate,
      best: isBest(ids),
    };
  });
  const way = String(chosen);
  return { label: say("The beam search as a tree"), fates: FATES, nodes: drawn, chosen: nodes.findIndex(({ ids }) => String(ids) === way) };
}
