import { bestAligning } from "./alignment.js";
import { mapOf } from "./attention_map.js";
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

/** A new run is there: it begins with its telling word at the head that shows it, or where the last one was left. */
export function arrive(state, run, keep) {
  const cross = mapOf(run, "cross");
  const aligning = bestAligning(cross, state.off);
  Object.assign(state, { run, aligning, number: state.number + 1 });
  if (keep) {
    if (state.pins.target >= run.tokens.length) state.pins = { ...state.pins, target: null };
    return;
  }
  const telling = tellingWord(cross, state.off);
  const pins = telling?.row == null ? { "cross key": telling?.key ?? null } : { target: telling.row };
  Object.assign(state, { place: telling?.place ?? aligning, kind: "cross", pins, step: 0, beside: [] });
}
