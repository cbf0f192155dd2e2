import { KIND_NAMES } from "./head_views.js";
import { placed } from "./placed.js";

/** The board of all heads in `host`, to switch them off: what draws it of a state. */
export function switches(host, resources, act) {
  const board = placed(host, "switchboard", resources);
  return ({ run, off }) => {
    const boards = Object.entries(run.maps).map(([kind, { shape }]) => ({ kind, name: KIND_NAMES[kind], layers: shape[0], heads: shape[1] }));
    board({ boards, off }, act.switches);
  };
}
