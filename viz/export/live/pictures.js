import { element, shadowed } from "../../web/src/shared/element.js";
import { say } from "../../web/src/shared/say.js";
import { mapOf, signed } from "./attention_map.js";
import { playerData, tokensData, treeData } from "./decoding_views.js";
import { heatmapData, linksData, overviewData, textData } from "./head_views.js";
import { wordData } from "./word_view.js";

/** Which part of a scene (viz/talk/scenes.py) each component is. */
const ROLES = {
  ...{ overview: "heads", heatmap: "picture", links: "picture", text: "picture", tokens: "translation" },
  ...{ decode_player: "decoding", beam_tree: "tree", versions: "best" },
};

/** A component of the app in `host`: `draw(data, hear)` mounts it, or gives the one that is mounted other data. */
export function placed(host, name, { components, styles }) {
  const own = host.appendChild(element("div", `part ${name}`));
  if (ROLES[name]) own.dataset.role = ROLES[name];
  const parent = shadowed(own, styles[name]);
  return (data, hear) => components[name]({ data, parentElement: parent, setTriggerValue: hear });
}

const LINES = {
  heatmap: say("One head: each row is a query, each column a key, each cell the weight between them. Grey and hatched is masked."),
  links: say("A line from each query to the keys it attends to: the larger the weight, the stronger and thicker the line."),
  text: say("Both texts as one reads them: hover over a token, and the other side is shaded by the weights between them."),
};
const HEAD_DATA = { heatmap: heatmapData, links: linksData, text: textData };

/** What versions.js reads: the translations that a search has found, best first. */
function versionsData({ best }, current) {
  const rows = best.map(({ ids, score, text }, at) => ({
    what: say("best {rank}", { rank: at + 1 }),
    words: [[text, "same"]],
    numbers: [signed(score * ids.length), String(ids.length), signed(score, 3)],
  }));
  return { headings: [say("log-prob."), say("tokens"), say("÷ length")], versions: rows, current };
}

/**
 * The pictures of a run. `parts` are the places for the translation, if it is shown, and for what is below it;
 * `omit` names parts of a scene that are left out. `draw(state)` shows what the state says; components stay mounted
 * while the view is the same, so that the focus stays where it is. `act` hears what is told by them.
 */
export function pictures(parts, resources, act, omit = []) {
  let mounted = { view: null };
  const translation = parts.translation && placed(parts.translation, "tokens", resources);
  const shown = (role) => !omit.includes(role);

  const build = (view) => {
    const beside = view !== "decode" && shown("heads") && shown("picture");
    const host = element("div", beside ? "columns" : "stage");
    const make = (name, role) => shown(role) && placed(host.appendChild(element("div", "column")), name, resources);
    const drawers =
      view === "decode"
        ? { player: make("decode_player", "decoding"), tree: make("beam_tree", "tree"), best: make("versions", "best") }
        : { overview: make("overview", "heads"), head: make(view, "picture") };
    const search = [...host.children].slice(drawers.player ? 1 : 0);
    const card = shown("card") && placed(host.firstChild, "word_card", resources);
    const line = shown("remarks") && host.lastChild ? host.lastChild.appendChild(element("p", "words caption")) : {};
    parts.pictures.replaceChildren(host);
    return { view, line, ...drawers, search, card, cardHost: card && host.firstChild.lastChild };
  };

  const drawHead = ({ run, view, kind, place, pins, off, palette, model, beside }) => {
    const map = mapOf(run, kind);
    const pinned = [pins[kind === "encoder" ? "source" : "target"] ?? null, pins[`${kind} key`] ?? null];
    if (mounted.overview) mounted.overview(overviewData(map, place, palette, off), act.overview);
    if (mounted.head) mounted.head(HEAD_DATA[view](map, place, palette, pinned, view === "links" ? beside : model), act.head);
    mounted.line.textContent = LINES[view];
  };

  const drawDecoding = ({ run, number, step, aligning, palette, current, chosen }) => {
    if (mounted.player) mounted.player(playerData(run, { id: `${number}`, step, aligning, ...chosen }, palette), act.player);
    for (const column of mounted.search) column.hidden = !run.tree;
    if (run.tree && mounted.tree) mounted.tree(treeData(run.tree, run.ids), act.tree);
    if (run.tree && mounted.best) mounted.best(versionsData(run.tree, current), act.best);
  };

  const drawCard = ({ run, view, pins }) => {
    const position = pins.target ?? null;
    mounted.cardHost.hidden = position === null;
    if (position !== null) mounted.card(wordData(run, position, view === "decode" ? "" : say("Step by step")), act.card);
  };

  const draw = (state) => {
    const { run, view } = state;
    if (mounted.view !== view || mounted.theme !== state.palette) mounted = { ...build(view), theme: state.palette };
    if (translation) translation(tokensData(run, state.pins.target ?? null), act.tokens);
    (view === "decode" ? drawDecoding : drawHead)(state);
    if (mounted.card) drawCard(state);
  };
  return { draw };
}
