import { isShortcut } from "../shared/events.js";
import { cellAt, stepped } from "../shared/grid.js";
import { mounted, unmount } from "../shared/mounted.js";
import { unpack } from "../shared/packed.js";
import { leastType } from "../shared/picture.js";
import { say, written } from "../shared/say.js";
import { paintPanel } from "./paint.js";

const HINT = say("Point at a cell, or use the arrow keys, to read it in all pictures. Sums stand at the right and below.");
const WORDS = [
  say("blocked"),
  say("allowed"),
  say("leak: should be blocked"),
  say("blocked, should be allowed"),
  "NaN",
  say("padding query"),
];
const HOWS = ["", say("by -inf"), say("by a finite fill"), say("uniform row"), say("1 added to the score")];

/** A query or a key by its number from 1, and its token where that is known. */
export const named = (token, at) => 
  token?.trim() ? say("{number} “{token}”", { number: at + 1, token: token.trim() }) : at + 1;
/** What a cell of a picture is, and its number. */
export const told = (panel, at, words) => {
  const value = panel.values[at];
  const digits = Math.abs(value) < 0.0005 && value !== 0 ? value.toExponential(1) : String(+value.toFixed(3)).replace("Infinity", "∞");
  const number = Number.isNaN(value) ? "" : ` ${written(digits)}`;
  const [state, how] = [words[panel.states[at]], HOWS[panel.marks[at]]];
  const cell = how ? say("{state} {how}", { state, how }) : state;
  return say("{picture}: {cell}", { picture: panel.title, cell }) + number;
};

/** What a sign in the cells says, beside the sign. */
function signOf({ sign, said, colour, ink }) {
  const [made, swatch] = [document.createElement("span"), document.createElement("em")];
  swatch.textContent = sign;
  Object.assign(swatch, { className: "swatch", ariaHidden: "true" });
  Object.assign(swatch.style, { background: colour, color: ink });
  made.append(swatch, said);
  return made;
}

const LEFT = 30, TOP = 22, RIGHT = 40, BELOW = 22;
const LARGEST = 38, SMALLEST = 3;

function build(root, { panels }) {
  root.className = "masks";
  const grid = document.createElement("div");
  grid.className = "panels";
  const readout = document.createElement("p");
  readout.className = "readout";
  readout.setAttribute("aria-live", "polite");
  const views = panels.map(({ name, drawn }) => {
    const panel = document.createElement("section");
    const title = document.createElement("h4");
    const note = document.createElement("p");
    const plot = document.createElement("div");
    const canvas = document.createElement("canvas");
    const cursor = document.createElement("b");
    const [across, down] = [document.createElement("i"), document.createElement("i")];
    plot.className = "plot";
    plot.dataset.panel = name;
    plot.append(canvas, across, down, cursor);
    panel.append(title, note);
    if (drawn) panel.append(plot);
    grid.append(panel);
    return { panel, title, note, plot, canvas, cursor, across, down };
  });
  const legend = document.createElement("div");
  legend.className = "legend";
  root.append(grid, readout, legend);
  return { grid, readout, legend, views, at: null };
}

/** The arrays of every drawn panel, out of the bytes behind the header. */
function read({ panels, rows, columns }, body) {
  const count = rows * columns;
  let at = 0;
  return panels.map((panel) => {
    if (!panel.drawn) return panel;
    const values = new Float32Array(body.slice(at, at + 4 * count).buffer);
    const states = body.slice(at + 4 * count, at + 5 * count);
    const marks = body.slice(at + 5 * count, at + 6 * count);
    at += 6 * count;
    return { ...panel, values, states, marks };
  });
}

/** Cells as large as the room allows, the same in all panels. */
function fit(grid, { rows, columns }) {
  const width = grid.firstElementChild?.clientWidth || 280;
  const size = Math.max(SMALLEST, Math.min(LARGEST, (width - LEFT - RIGHT) / columns, 420 / rows));
  const whole = size > 6 ? Math.floor(size) : size;
  return { size: whole, left: LEFT, top: TOP, width: LEFT + RIGHT + columns * whole, height: TOP + BELOW + rows * whole };
}

export default function mask_editor({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const panels = read(header, body);
  const { rows, columns } = header;
  const identity = JSON.stringify(header.panels.map(({ name, drawn }) => [name, drawn]));
  const view = mounted(parentElement, identity, (root, made) => {
    const built = build(root, header);
    const observer = new ResizeObserver(() => made.draw?.());
    observer.observe(root);
    return { ...built, dispose: () => observer.disconnect() };
  });
  view.legend.replaceChildren(...header.legend.map(signOf));
  let place;
  view.draw = () => {
    place = fit(view.grid, header);
    panels.forEach((panel, i) => panel.drawn && paintPanel(view.views[i].canvas, panel, header, place));
  };
  const put = (mark, x, y, width, height) => {
    mark.hidden = false;
    Object.assign(mark.style, { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` });
  };
  const readCell = (row, column) => {
    view.at = [row, column];
    const { size, left, top } = place;
    for (const { across, down, cursor } of view.views) {
      put(across, left, top + row * size, columns * size, size);
      put(down, left + column * size, top, size, rows * size);
      put(cursor, left + column * size, top + row * size, size, size);
    }
    const facts = panels.filter(({ drawn }) => drawn).map((panel) => told(panel, row * columns + column, header.words.length ? header.words : WORDS));
    const [query, key] = [row, column].map((at, side) => named(header.tokens[side][at], at));
    view.readout.textContent = [say("query {query} → key {key}", { query, key }), ...facts].join(" · ");
  };
  const leave = () => {
    view.readout.textContent = HINT;
    for (const { across, down, cursor } of view.views) across.hidden = down.hidden = cursor.hidden = true;
  };
  const turn = (i, row, column) => {
    const [panel, at] = [panels[i], row * columns + column];
    if (!panel.editable) return;
    panel.states[at] = [1, 3].includes(panel.states[at]) ? 0 : panel.states[at] === 0 ? 1 : 0; // At once, before Python.
    panel.marks[at] = 0;
    paintPanel(view.views[i].canvas, panel, header, place);
    setTriggerValue("cell", { panel: panel.name, row, column });
  };
  panels.forEach((panel, i) => {
    const { title, note, plot } = view.views[i];
    title.textContent = panel.title;
    const isTold = panel.editable && !leastType(view.root); // Not for an audience.
    note.textContent = isTold ? say("{note}. Click a cell to turn it over", panel) : panel.note;
    if (!panel.drawn) return;
    plot.tabIndex = 0;
    plot.setAttribute("role", panel.editable ? "application" : "img");
    const size = say("{title}: {rows} queries by {columns} keys.", { title: panel.title, rows, columns });
    const help = panel.editable ? say("Arrow keys move, Enter or Space turns a cell over.") : "";
    plot.setAttribute("aria-label", `${size} ${help}`.trim());
    plot.classList.toggle("editable", panel.editable);
    const under = (event) => {
      const box = plot.getBoundingClientRect();
      const zoom = plot.currentCSSZoom ?? 1;
      const [x, y] = [(event.clientX - box.left) / zoom - place.left, (event.clientY - box.top) / zoom - place.top];
      return cellAt(x, y, { width: place.size, height: place.size }, rows, columns);
    };
    plot.onmousemove = (event) => (under(event) ? readCell(...under(event)) : leave());
    plot.onmouseleave = leave;
    plot.onblur = leave;
    plot.onclick = (event) => under(event) && turn(i, ...under(event));
    plot.onkeydown = (event) => {
      if (isShortcut(event)) return;
      const from = view.at ?? [0, 0];
      const to = stepped(event.key, from, rows, columns);
      if (event.key === "Enter" || event.key === " ") turn(i, Math.min(from[0], rows - 1), Math.min(from[1], columns - 1));
      else if (to) readCell(...to);
      else return;
      event.preventDefault();
    };
  });
  view.draw();
  leave();
  view.root.picture = { of: view.root, without: ".readout" };
  view.root.dataset.painted = `${rows}×${columns}`;
  return () => unmount(parentElement);
}
