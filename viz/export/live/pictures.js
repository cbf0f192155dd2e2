import { element, shadowed } from "../browser/element.js";
import { mapOf } from "./attention_map.js";
import { playerData, tokensData } from "./decoding_views.js";
import { treeData } from "./tree_view.js";
import { KIND_NAMES, heatmapData, linksData, overviewData, textData } from "./head_views.js";

/** A component of the app in `host`: `draw(data, hear)` mounts it, or gives the one that is mounted other data. */
function placed(host, name, { components, styles }) {
  const parent = shadowed(host.appendChild(element("div", `part ${name}`)), styles[name]);
  return (data, hear) => components[name]({ data, parentElement: parent, setTriggerValue: hear });
}

const LINES = {
  heatmap: "One head: each row is a query, each column a key, each cell the weight between them. Grey and hatched is masked.",
  links: "A line from each query to the keys it attends to: the larger the weight, the stronger and thicker the line.",
  text: "Both texts as one reads them: hover over a token, and the other side is shaded by the weights between them.",
};
const HEAD_DATA = { heatmap: heatmapData, links: linksData, text: textData };

/** What versions.js reads: the translations that a search has found, best first. */
function versionsData({ best }, current) {
  const rows = best.map(({ ids, score, text }, at) => ({
    what: `best ${at + 1}`,
    words: [[text, "same"]],
    numbers: [(score * ids.length).toFixed(2).replace("-", "−"), String(ids.length), score.toFixed(3).replace("-", "−")],
  }));
  return { headings: ["log-prob.", "tokens", "÷ length"], versions: rows, current };
}

/**
 * The pictures of a run below its controls. `draw(state)` shows what the state says; components stay mounted while the
 * view is the same, so that the focus stays where it is. `act` hears what is told by them.
 */
export function pictures(parts, resources, act) {
  let mounted = { view: null };
  const translation = placed(parts.translation, "tokens", resources);
  const board = placed(parts.switches, "switchboard", resources);

  const build = (view) => {
    const host = element("div", view === "decode" ? "stage" : "columns");
    const make = (name, parent = host) => placed(parent.appendChild(element("div", "column")), name, resources);
    const drawers = view === "decode" ? { player: make("decode_player"), tree: make("beam_tree"), best: make("versions") } : { overview: make("overview"), head: make(view) };
    const line = host.lastChild.appendChild(element("p", "words caption"));
    parts.pictures.replaceChildren(host);
    return { view, line, ...drawers, search: [...host.children].slice(1) };
  };

  const drawHead = ({ run, view, kind, place, pins, off, palette, model, beside }) => {
    const map = mapOf(run, kind);
    const pinned = [pins[kind === "encoder" ? "source" : "target"] ?? null, pins[`${kind} key`] ?? null];
    mounted.overview(overviewData(map, place, palette, off), act.overview);
    mounted.head(HEAD_DATA[view](map, place, palette, pinned, view === "links" ? beside : model), act.head);
    mounted.line.textContent = LINES[view];
  };

  const drawDecoding = ({ run, number, step, aligning, palette, current }) => {
    mounted.player(playerData(run, { id: `${number}`, step, aligning }, palette), act.player);
    for (const column of mounted.search) column.hidden = !run.tree;
    if (!run.tree) return;
    mounted.tree(treeData(run.tree, run.ids), act.tree);
    mounted.best(versionsData(run.tree, current), act.best);
  };

  const draw = (state) => {
    const { run, view } = state;
    if (mounted.view !== view || mounted.theme !== state.palette) mounted = { ...build(view), theme: state.palette };
    translation(tokensData(run, state.pins.target ?? null), act.tokens);
    const boards = Object.entries(run.maps).map(([kind, { shape }]) => ({ kind, name: KIND_NAMES[kind], layers: shape[0], heads: shape[1] }));
    board({ boards, off: state.off }, act.switches);
    parts.controls.lastChild.hidden = view === "decode";
    (view === "decode" ? drawDecoding : drawHead)(state);
  };
  return { draw };
}
