import { hearChoices, hearHeads, isShortcut } from "../shared/events.js";
import { cellUnder, stepped } from "../shared/grid.js";
import { mounted, unmount } from "../shared/mounted.js";
import { unpack } from "../shared/packed.js";
import { drawn, leastType } from "../shared/picture.js";
import { say } from "../shared/say.js";
import { coarse, drawFrame, exact, paintMap, placed, told } from "./frame.js";

/** The rows and the columns of a map that are no special tokens. */
const plainPlaces = ({ rows, columns, special }) =>
  [rows, columns].map((tokens, side) => tokens.map((_, at) => at).filter((at) => !special[side].includes(at)));

/** The two-byte levels of those rows and columns. */
function selectCells(levels, width, rows, columns) {
  return new Uint8Array(Uint16Array.from(rows.flatMap((row) => columns.map((column) => levels[row * width + column]))).buffer);
}

/**
 * What Python sends once the special tokens are hidden. Null where nothing would be left, or nothing would go. Until
 * Python has answered no cell can be pinned: it still knows the others.
 */
export function withoutSpecial({ header, body }) {
  const [rows, columns] = plainPlaces(header);
  const goes = rows.length < header.rows.length || columns.length < header.columns.length;
  if (!goes || !rows.length || !columns.length) return null;
  const only = (places, list) => places.map((at) => list[at]);
  const [row, column] = [rows, columns].map((places, side) => places.indexOf(header.pinned[side]));
  const shown = {
    ...header,
    rows: only(rows, header.rows),
    columns: only(columns, header.columns),
    rowLabels: only(rows, header.rowLabels),
    columnLabels: only(columns, header.columnLabels),
    roles: [rows, columns].map((places, side) => (header.roles[side].length ? only(places, header.roles[side]) : [])),
    pinned: [row < 0 ? null : row, column < 0 ? null : column],
    special: [[], []],
    pins: false,
    alt: header.title,
  };
  const levels = new Uint16Array(body.slice().buffer); // A copy: the body may begin at an odd address.
  return { header: shown, body: selectCells(levels, header.columns.length, rows, columns) };
}

const identity = ({ title, model, rows, columns }) => JSON.stringify([title, model, rows, columns]);

/** The map `whole` with what has been chosen since its special tokens were hidden; null where `header` is of another. */
export function withSpecial(whole, header) {
  const hidden = whole && withoutSpecial(whole);
  if (!hidden || identity(hidden.header) !== identity(header)) return null;
  const { scale, pinned } = header;
  const places = plainPlaces(whole.header);
  const back = pinned.map((at, side) => (at === null ? null : places[side][at]));
  return { header: { ...whole.header, scale, pinned: back, pins: false }, body: whole.body };
}

function build(root, view) {
  root.className = "heatmap";
  const [canvas, plot, across, down, tip] = ["canvas", "div", "i", "i", "div"].map((tag) => document.createElement(tag));
  const svg = drawn("svg", {});
  svg.setAttribute("aria-hidden", "true"); // The plot's label says what there is to see.
  plot.className = "plot";
  plot.tabIndex = 0;
  plot.setAttribute("role", "img");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  plot.append(across, down);
  root.append(canvas, svg, plot, tip);
  root.picture = { of: root, without: ".tip, i" };
  const sized = new ResizeObserver(() => view.header && isResized(view) && draw(view));
  sized.observe(root);
  const deaf = [
    hearHeads(root, (head) => preview(view, head)),
    hearChoices({
      scale: (scale) => show(view, { ...view.data, header: { ...view.data.header, scale } }),
      hide: (on) => hide(view, on),
    }),
  ];
  const dispose = () => [sized.disconnect(), ...deaf.map((end) => end())];
  return { canvas, svg, plot, across, down, tip, dispose };
}

const isResized = ({ root, place, height }) => root.clientWidth !== place?.whole || root.clientHeight !== height;

/** Put everything where the present size has it; out of sight there is none, and it waits. */
function draw(view) {
  const { root, header, map } = view;
  if (!root.clientWidth) return;
  const height = root.clientHeight;
  const place = placed(header, root.clientWidth, height, leastType(root));
  Object.assign(view, { place, height });
  for (const part of [view.canvas, view.plot]) {
    Object.assign(part.style, { left: `${place.left}px`, top: `${place.top}px`, width: `${place.width}px`, height: `${place.height}px` });
  }
  paintMap(view.canvas, map, header, place.width, place.height);
  drawFrame(view.svg, header, map, place, height);
  view.plot.setAttribute("aria-label", header.alt);
  root.dataset.painted = `${header.title}${header.sketch ? " …" : ""}`;
}

/** Draw what Python has sent, or what it is about to send: weights in two bytes, or a `sketch` in the overview's. */
function show(view, data) {
  const { header, body } = data;
  Object.assign(view, { data, header, map: header.sketch ? coarse({ ...header.sketch, bytes: body }, header) : exact(header, body) });
  view.place = null;
  draw(view);
  if (view.at && view.place && view.map.value) read(view, Math.min(view.at[0], header.rows.length - 1), Math.min(view.at[1], header.columns.length - 1));
  else leave(view);
}

/** A head chosen in the overview, from its bytes: drawn now, before Python has answered. */
function preview(view, { layer, head, rows, columns, bytes, isSent }) {
  if (!view.header?.follows) return;
  if (isSent) return show(view, view.sent);
  const title = say("{kind} · layer {layer}, head {head}", { kind: view.header.follows, layer: layer + 1, head: head + 1 });
  show(view, { header: { ...view.header, title, alt: title, sketch: { rows, columns } }, body: bytes });
}

/** Special tokens hidden or shown again, from the weights that are here. */
function hide(view, on) {
  const data = !view.header.sketch && (on ? withoutSpecial(view.data) : withSpecial(view.whole, view.header));
  if (data) show(view, data);
}

function read(view, row, column) {
  const { header, map, place, tip } = view;
  if (!map.value) return;
  view.at = [row, column];
  const weight = document.createElement("b");
  weight.textContent = told(map, row * map.columns + column);
  tip.replaceChildren(`${header.rows[row]} → ${header.columns[column]}`, weight);
  tip.hidden = view.across.hidden = view.down.hidden = false;
  const [x, y] = [(column + 0.5) * place.w, (row + 0.5) * place.h];
  view.across.style.top = `${y}px`;
  view.down.style.left = `${x}px`;
  const left = x > place.width / 2;
  const offset = 10 + place.w / 2;
  const [before, behind] = [place.left + x - offset, place.left + x + offset];
  tip.style.left = left ? "auto" : `${behind}px`;
  tip.style.right = left ? `${place.whole - before}px` : "auto";
  tip.style.maxWidth = `${left ? before : place.whole - behind}px`; // A token may be as long as a sentence.
  tip.style.top = `${place.top + y}px`;
}

function leave(view) {
  view.at = null;
  view.tip.hidden = view.across.hidden = view.down.hidden = true;
}

/** The cell under the mouse. */
const under = ({ plot, header }, event) => cellUnder(event, plot, header.rows.length, header.columns.length);

/** The arrow keys go from cell to cell, Enter chooses one. */
function pressed(view, event) {
  if (isShortcut(event)) return;
  const { header, at } = view;
  const from = at ?? [header.pinned[0] ?? 0, header.pinned[1] ?? 0];
  const to = stepped(event.key, from, header.rows.length, header.columns.length);
  if (event.key === "Enter") view.choose(...from);
  else if (event.key === "Escape") leave(view);
  else if (to) read(view, ...(at ? to : from));
  else return;
  event.preventDefault();
}

export default function heatmap({ data, parentElement, setTriggerValue }) {
  const view = mounted(parentElement, "heatmap", build);
  const sent = unpack(data);
  view.sent = sent;
  if (sent.header.special.flat().length) view.whole = sent;
  view.choose = (row, column) => {
    const { header } = view;
    if (!header.pins) return;
    const again = header.pinned[0] === row && header.pinned[1] === column;
    header.pinned = again ? [null, null] : [row, column]; // At once, before Python has answered.
    draw(view);
    setTriggerValue("cell", { row, column });
  };
  show(view, sent);
  view.plot.onmousemove = (event) => read(view, ...under(view, event));
  view.plot.onmouseleave = view.plot.onblur = () => leave(view);
  view.plot.onclick = (event) => view.choose(...under(view, event));
  view.plot.onkeydown = (event) => pressed(view, event);
  return () => unmount(parentElement);
}
