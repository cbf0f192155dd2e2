import { bestAligning, mapOf } from "./attention_map.js";
import { tellingWord } from "./telling.js";

/** What a decoding is held to beyond the model's own choice: nothing. */
export const FREELY = { constraints: {}, target: null, current: 0 };

/**
 * What is shown at first. `place` is the open head, `pins` the pinned positions by what they are of, `off` the heads
 * switched off, `changes` what else is changed, as text; `number` counts the translations, `current` is the one of a
 * search that is looked at.
 */
export const begun = (fields) => ({
  ...{ at: 0, text: "", beam: 1, search: {}, view: "heatmap", kind: "cross", place: null, pins: {}, off: [], changes: "", beside: [] },
  ...{ step: 0, number: 0, run: null, aligning: null, chosen: {}, ...FREELY },
  ...fields,
});

/** All changes to the model, in the text form of model/interventions/changes.py. */
export const changesText = ({ off, changes }) =>
  [changes, ...off.map(([kind, layer, head]) => `${kind}.${layer + 1}.${head + 1}:off`)].filter(Boolean).join(",");

/** The name of the pin of a row or a column in an attention of one kind. */
export const pinName = (kind, side) => (side === "key" ? `${kind} key` : kind === "encoder" ? "source" : "target");

/** The pins of rows and columns that a run has. */
function pinsWithin(pins, { tokens, sourceTokens }) {
  const count = (name) => (name === "target" || name === pinName("decoder", "key") ? tokens.length : sourceTokens.length);
  return Object.fromEntries(Object.entries(pins).map(([name, at]) => [name, at < count(name) ? at : null]));
}

/** A new run is there: it begins with its telling word at the head that shows it, or where the last one was left. */
export function arrive(state, run, keep) {
  const cross = mapOf(run, "cross");
  const aligning = bestAligning(cross, state.off);
  Object.assign(state, { run, aligning, number: state.number + 1 });
  if (keep) {
    state.pins = pinsWithin(state.pins, run);
    return;
  }
  const telling = tellingWord(cross, state.off);
  const pins = telling?.row == null ? { "cross key": telling?.key ?? null } : { target: telling.row };
  Object.assign(state, { place: telling?.place ?? aligning, kind: "cross", pins, step: 0, beside: [] });
}

const toggled = (pins, name, at) => ({ ...pins, [name]: pins[name] === at ? null : at });

/** What the components tell, by the place where they stand: each `(name, value)` changes the state or asks the model. */
export function hearing(state, { change, translate }) {
  const again = (fields) => translate(fields, { keep: true });
  const pin = (side, at) => change({ pins: toggled(state.pins, pinName(state.kind, side), at) });
  const pinCell = ({ row, column }) => {
    const [query, key] = ["query", "key"].map((side) => pinName(state.kind, side));
    const same = state.pins[query] === row && state.pins[key] === column;
    change({ pins: { ...state.pins, [query]: same ? null : row, [key]: same ? null : column } });
  };
  const written = (step) => state.run.ids.slice(0, step);
  const forbidden = () => state.constraints.forbidden ?? [];
  // A candidate is gone on from greedily: a search would weigh other beginnings.
  const goOn = (step, id) => ({ ...FREELY, beam: 1, constraints: { prefix: [...written(step), id], forbidden: forbidden() } });
  /** The player at a step, and with it the card, if one is open. */
  const atStep = (step) => ({ step, ...(state.pins.target != null && { pins: { ...state.pins, target: step } }) });
  return {
    overview: (name, place) => name === "pick" && change({ place, beside: state.beside.filter((one) => one !== place.head) }),
    head(name, value) {
      if (name === "beside") change({ beside: value.heads });
      if (name === "pin") pin(value.side, value.index);
      if (name === "cell") pinCell(value);
    },
    tokens: (name, { position }) => change({ pins: toggled(state.pins, "target", position) }),
    card(name, value) {
      const at = state.pins.target;
      if (name === "close") change({ pins: { ...state.pins, target: null } });
      if (name === "head") {
        const [kind, layer, head] = value;
        change({ kind, place: { layer, head }, view: state.view === "decode" ? "heatmap" : state.view });
      }
      if (name === "open") change({ view: "decode", step: at });
      if (name === "candidate") again({ ...goOn(at, value), view: "decode", step: at });
    },
    switches: (name, off) => again({ off, target: null, current: 0 }),
    best: (name, { number }) => again({ target: state.run.tree.best[number].ids, current: number }),
    tree(name, { row, column }) {
      const { best, nodes } = state.run.tree;
      const { ids } = nodes.find(({ place, position }) => place === row && position === column);
      again({ target: ids, current: best.findIndex((one) => String(one.ids) === String(ids)), ...atStep(ids.length - 1) });
    },
    player(name, value) {
      if (name === "step") {
        state.step = value;
        if (state.pins.target != null) change(atStep(value));
      }
      if (name === "word") change({ pins: toggled(state.pins, "target", value), step: value });
      if (name === "view") state.chosen = { crossHead: value.cross, ownHead: value.own }; // The player shows them already.
      if (name === "pick") again({ ...goOn(value.step, value.id), ...atStep(value.step) });
      // From the start: a beginning that was gone on from may hold the token, and would have priority.
      if (name === "forbid") again({ ...FREELY, ...atStep(value.step), constraints: { forbidden: [...forbidden(), [value.id]] } });
    },
  };
}
