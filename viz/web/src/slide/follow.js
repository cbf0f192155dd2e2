import { relabelled } from "../shared/events.js";
import { pack, unpack } from "../shared/packed.js";
import { say } from "../shared/say.js";

const SIDES = ["query", "key"];

const bytesOf = ({ at: [start, length] }, file) => file.body.subarray(start, start + length);
/** All parts but the columns they stand in, in reading order. */
export const leaves = (parts) => parts.flatMap((part) => (part.is === "columns" ? part.columns.flatMap(leaves) : [part]));

/**
 * What can be changed in a file: the head that is open, and what each component was told. Kept on the slide, so that
 * who comes back to it finds it as it was left. `tiles` are the overview's bytes of all heads.
 */
export function stateOf(slide, file) {
  const overview = leaves(slide.parts).find((part) => part.name === "overview" && part.follows);
  slide.state ??= { tiles: overview ? unpack(bytesOf(overview, file)) : null, chosen: null, changes: new Map() };
  return slide.state;
}

/** The overview's bytes of the chosen head, or of its whole layer. */
function chosenBytes({ tiles: { header, body }, chosen }, layer) {
  const size = header.queries * header.keys;
  const first = chosen.layer * header.heads + (layer ? 0 : chosen.head);
  return body.subarray(first * size, (first + (layer ? header.heads : 1)) * size);
}

/** How each component that follows the overview shows another head: what changes in its header, and its bytes. */
const ANOTHER = {
  overview: (state, header, body) => body,
  links: (state) => chosenBytes(state, true),
  text: (state) => chosenBytes(state, false),
  heatmap(state, header) {
    header.title = header.alt = say("{kind} · layer {layer}, head {head}", {
      kind: header.follows,
      layer: state.chosen.layer + 1,
      head: state.chosen.head + 1,
    });
    header.sketch = { rows: header.rows.length, columns: header.columns.length };
    return chosenBytes(state, false);
  },
};

/** What a component is to be drawn from now. */
export function followed(part, { state, file }) {
  const changed = state.changes.get(part);
  if (part.data) return { ...part.data, ...changed };
  const packed = bytesOf(part, file);
  const chosen = part.follows ? state.chosen : null;
  if (!changed && !chosen) return packed;
  const { header, body } = unpack(packed);
  Object.assign(header, changed);
  if (!chosen) return pack(header, body);
  Object.assign(header, chosen);
  header.alt = ""; // It described the head before.
  if (header.pattern) header.label = relabelled(header.pattern, chosen);
  return pack(header, ANOTHER[part.name](state, header, body));
}

const toggled = (at, to) => (at === to ? null : to);

/** What a component says of itself changes its header as Python would. */
const ANSWERS = {
  step: (value) => (typeof value === "number" ? { start: value } : value),
  beside: ({ heads }) => ({ beside: heads }),
  view: ({ cross, own }, now) => ({ cross: { ...now.cross, chosen: cross }, own: { ...now.own, chosen: own } }),
  cell: ({ row, column }, { pinned }) => ({ chosen: [row, column], pinned: String(pinned) === `${row},${column}` ? [null, null] : [row, column] }),
  pin({ side, index, position }, { pinned }) {
    if (position !== undefined) return { pinned: toggled(pinned, position) };
    if (!Array.isArray(pinned)) return { pinned: { ...pinned, [side]: toggled(pinned[side], index) } };
    return { pinned: pinned.map((at, i) => (SIDES[i] === side ? toggled(at, index) : at)) };
  },
};

/** Take over what a component tells. Whether the view is to be drawn again. */
export function hears(part, { state, file }, name, value) {
  if (name === "pick" && part.follows) {
    state.chosen = value;
    return true;
  }
  if (!ANSWERS[name]) return false;
  const own = state.changes.get(part);
  const now = { ...(part.data ?? unpack(bytesOf(part, file)).header), ...own };
  state.changes.set(part, { ...own, ...ANSWERS[name](value, now) });
  return name === "pin" || name === "beside";
}
