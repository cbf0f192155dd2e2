import { written } from "../../web/src/shared/number.js";
import { say } from "../../web/src/shared/say.js";
import { labelText, readable } from "./labels.js";

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
