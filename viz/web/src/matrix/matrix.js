import { isShortcut } from "../shared/events.js";
import { lookup, pictureHeight } from "../shared/picture.js";
import { cellUnder, coloured, paintCells, paintPixels, stepped } from "../shared/grid.js";
import { mounted, unmount } from "../shared/mounted.js";
import { FULL, unpack } from "../shared/packed.js";
import { written } from "../shared/say.js";

/** At most `most` evenly spaced names, at round steps. */
function ticks(names, most) {
  const step = [1, 2, 4, 8, 16, 32, 64, 128, 256].find((one) => names.length / one <= most) ?? 512;
  return names.map((name, at) => ({ name, at })).filter(({ at }) => at % step === 0);
}

/** The names along one side, as many as have room, under what they are names of. */
function label(parent, names, most, side, title) {
  const heading = document.createElement("em");
  heading.textContent = title;
  const texts = ticks(names, most).map(({ name, at }) => {
    const text = document.createElement("span");
    text.textContent = name;
    text.style[side] = `${((at + 0.5) / names.length) * 100}%`;
    return text;
  });
  parent.replaceChildren(heading, ...texts);
}

const fixed = (value, decimals) => written(value.toFixed(decimals).replace(/^-(?=[0.]*$)/, "")); // No minus before zero.
const power = (size) => written(size.toExponential(1));

/** Numbers between the two ends of the colours: how level `n` is printed, and where it lies from 0 to 1. */
function even({ low, high, full, decimals }) {
  const text = (n) => fixed(low + ((high - low) * n) / full, decimals);
  return { text, share: (n) => n / full, lowest: fixed(low, decimals), highest: fixed(high, decimals) };
}

/** Sizes of two significant digits each, coloured by their logarithm; what lies outside has the colours of the ends. */
function significant({ low, high, least }) {
  const parts = (n) => [10 + ((n - 1) % 90), least + Math.floor((n - 1) / 90)];
  const text = (n) => (n ? power(Number(parts(n).join("e"))) : "0");
  const share = (n) => {
    if (!n) return 0;
    const [digits, exponent] = parts(n);
    return Math.min(1, Math.max(0, (Math.log10(digits) + exponent - low) / (high - low)));
  };
  return { text, share, lowest: `≤ ${power(10 ** low)}`, highest: `≥ ${power(10 ** high)}` };
}

/** The cells as components/matrix packs them: the text of each, its byte on the ramp of colours, and the ramp's ends. */
export function readCells(header, body) {
  const numbers = header.full === FULL ? body : new Uint16Array(body.slice().buffer); // A copy: it may begin at an odd address.
  const { text, share, lowest, highest } = (header.exponent ? significant : even)(header);
  const ramp = Uint8Array.from({ length: 256 ** numbers.BYTES_PER_ELEMENT }, (_, n) => Math.round(FULL * share(n)));
  return { text: (at) => text(numbers[at]), bytes: numbers.map((n) => ramp[n]), lowest, highest };
}

const PARTS = ["title", "readout", "rows", "plot", "columns", "bar"];

/** The ramp of colours between its two ends. */
function scaleBar(bar) {
  const [lowest, ramp, highest] = ["span", "canvas", "span"].map((tag) => document.createElement(tag));
  bar.append(lowest, ramp, highest);
  return { lowest, ramp, highest };
}

function build(root, view) {
  root.className = "matrix";
  const parts = {};
  for (const name of PARTS) {
    parts[name] = document.createElement("div");
    parts[name].className = name;
    root.append(parts[name]);
  }
  parts.canvas = document.createElement("canvas");
  parts.across = document.createElement("i");
  parts.down = document.createElement("i");
  parts.cell = document.createElement("b");
  parts.plot.append(parts.canvas, parts.across, parts.down, parts.cell);
  parts.plot.tabIndex = 0;
  parts.plot.setAttribute("role", "img");
  const sized = new ResizeObserver(() => view.name?.());
  sized.observe(parts.plot);
  return { ...parts, ...scaleBar(parts.bar), dispose: () => sized.disconnect() };
}

function paintRamp(canvas, stops) {
  paintPixels(canvas, lookup(stops, stops[0], "linear").slice(0, FULL + 1), FULL + 1);
}

/** Painted in whole multiples of a cell, at least as large as shown: shrunk smoothly then, all cells look as wide. */
function paint(canvas, { rows, columns, stops }, bytes) {
  const larger = (cells, shown) => cells * Math.max(1, Math.ceil((shown * devicePixelRatio) / cells));
  canvas.width = larger(columns, canvas.clientWidth);
  canvas.height = larger(rows, canvas.clientHeight);
  const pixels = coloured(bytes, lookup(stops, stops[0], "linear"));
  paintCells(canvas.getContext("2d"), pixels, columns, canvas.width, canvas.height);
}

function marks(view, header) {
  view.plot.querySelectorAll("u").forEach((line) => line.remove());
  for (const row of header.marks) {
    const line = document.createElement("u");
    line.style.top = `${((row + 1) / header.rows) * 100}%`;
    view.plot.append(line);
  }
}

export default function matrix({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const { rows, columns, rowNames, columnNames } = header;
  const { text, bytes, lowest, highest } = readCells(header, body);
  const view = mounted(parentElement, "matrix", build);
  view.root.style.setProperty("--height", pictureHeight(header.height));
  view.root.style.setProperty("--ratio", header.square ? columns / rows : "auto");
  view.title.textContent = header.title;
  view.plot.setAttribute("aria-label", header.title);
  paint(view.canvas, header, bytes);
  view.name = () => {
    label(view.rows, rowNames, view.plot.clientHeight / 22, "top", header.rowTitle && `${header.rowTitle} ↓`);
    label(view.columns, columnNames, view.plot.clientWidth / 42, "left", `${header.columnTitle} →`);
  };
  view.name();
  paintRamp(view.ramp, header.stops);
  view.lowest.textContent = lowest;
  view.highest.textContent = highest;
  marks(view, header);

  const place = (mark, row, column) => {
    mark.hidden = false;
    mark.style.top = `${(row / rows) * 100}%`;
    mark.style.left = `${(column / columns) * 100}%`;
    mark.style.width = `${100 / columns}%`;
    mark.style.height = `${100 / rows}%`;
  };
  const read = (row, column) => {
    view.at = [row, column];
    view.readout.textContent = `${header.rowTitle} ${rowNames[row]} · ${header.columnTitle} ${columnNames[column]} · ${text(row * columns + column)}`;
    place(view.across, row, 0);
    view.across.style.width = "100%";
    place(view.down, 0, column);
    view.down.style.height = "100%";
  };
  const leave = () => {
    view.readout.textContent = "";
    view.across.hidden = view.down.hidden = true;
  };
  const under = (event) => cellUnder(event, view.plot, rows, columns);
  const choose = (row, column) => {
    place(view.cell, row, column); // At once, before Python has answered.
    setTriggerValue("cell", { row, column });
  };
  view.cell.hidden = !header.chosen;
  if (header.chosen) place(view.cell, ...header.chosen);
  leave();
  view.plot.onmousemove = (event) => read(...under(event));
  view.plot.onmouseleave = leave;
  view.plot.onblur = leave;
  view.plot.onclick = (event) => choose(...under(event));
  view.plot.onkeydown = (event) => {
    if (isShortcut(event)) return;
    const from = view.at ?? header.chosen ?? [0, 0];
    const to = stepped(event.key, from, rows, columns);
    if (event.key === "Enter") choose(...from);
    else if (to) read(...to);
    else return;
    event.preventDefault();
  };
  view.root.picture = { of: view.root, without: ".readout, i" };
  view.root.dataset.painted = `${header.title} ${rows}×${columns}`;
  return () => unmount(parentElement);
}
