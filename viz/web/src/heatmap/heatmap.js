import { unpack } from "../shared/packed.js";
import { cellUnder, stepped } from "../shared/grid.js";
import { hearHeads } from "../shared/heads.js";
import { hearChoices } from "../shared/choices.js";
import { leastType } from "../shared/stage_sizes.js";
import { mounted, unmount } from "../shared/mounted.js";
import { drawn } from "../shared/picture.js";
import { say } from "../shared/say.js";
import { coarse, exact, paintMap, told } from "./cells.js";
import { drawFrame, placed } from "./frame.js";
import { withoutSpecial, withSpecial } from "./special.js";

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
function preview(view, { layer, head, rows, columns, bytes }) {
  if (!view.header?.follows) return;
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
  tip.style.left = left ? "auto" : `${place.left + x + offset}px`;
  tip.style.right = left ? `${place.whole - place.left - x + offset}px` : "auto";
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
