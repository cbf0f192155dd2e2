import { drawn, inked, leastType } from "../shared/picture.js";
import { coloured, fitCanvas, paintCells, penOn, strokeLines } from "../shared/grid.js";
import { FULL, MASKED } from "../shared/packed.js";
import { say, written } from "../shared/say.js";
import { piece } from "./player.js";

/** A token less probable than this is underlined by a wave. */
export const SURPRISING = 0.05;
const LINES = 12;
const LABELS = 3;
const FAINTEST = 0.04 * FULL;

/** One line of text: each token a span, a space before those that begin a word. */
function tokenLine(className, tokens) {
  const line = piece("div", `line ${className}`);
  line.dir = "auto";
  const spans = tokens.map(({ text, space, special }) => {
    const span = piece("span", special ? "piece special" : "piece", text);
    if (space) line.append(" ");
    line.append(span);
    return span;
  });
  return { line, spans };
}

/** Both sentences and the curves between them. */
export function buildText(root, header) {
  const text = piece("div", "text");
  const long = Math.max(...[header.source, header.target].map((side) => side.reduce((n, one) => n + one.text.length + 1, 0)));
  text.dataset.size = long > 420 ? "tiny" : long > 210 ? "small" : long > 95 ? "medium" : "large";
  const source = tokenLine("source", header.source);
  const target = tokenLine("target", header.target);
  header.steps.forEach(({ chosen }, i) => target.spans[i + 1].classList.toggle("surprising", chosen.p < SURPRISING));
  const svg = drawn("svg", { "aria-hidden": "true" });
  const paths = Array.from({ length: LINES }, () => drawn("path", { fill: "none", "stroke-linecap": "round" }));
  const labels = Array.from({ length: LABELS }, () => drawn("text", { "text-anchor": "middle" }));
  svg.append(...paths, ...labels);
  text.append(source.line, target.line, svg);
  root.append(text);
  return { text, sources: source.spans, targets: target.spans, paths, labels, places: null };
}

/**
 * Where every token stands, measured once a layout: scrubbing then only writes. Curves run between the last line of the
 * source and the first one of the target, so that none crosses a word where a sentence needs several lines.
 */
export function measure(view) {
  const origin = view.text.getBoundingClientRect();
  const zoom = view.text.currentCSSZoom ?? 1; // Boxes are measured on the screen; lines are drawn in the view's own pixels.
  const place = (span) => {
    const box = span.getBoundingClientRect();
    const [x, top, bottom] = [box.left + box.width / 2 - origin.left, box.top - origin.top, box.bottom - origin.top];
    return { x: x / zoom, top: top / zoom, bottom: bottom / zoom };
  };
  view.thick = parseFloat(getComputedStyle(view.text).fontSize) / 3;
  const [sources, targets] = [view.sources.map(place), view.targets.map(place)];
  view.places = { sources, targets, from: Math.max(...sources.map(({ bottom }) => bottom)), to: Math.min(...targets.map(({ top }) => top)) };
}

function strongest(row) {
  const found = [];
  row.forEach((byte, key) => byte >= FAINTEST && byte <= FULL && found.push({ key, byte }));
  return found.sort((one, other) => other.byte - one.byte).slice(0, LINES);
}

function shade(view, row, table, inks) {
  view.sources.forEach((span, key) => Object.assign(span.style, inked(table[row[key]], inks)));
}

/** Whether the numbers over two tokens would run into each other. */
const isNear = (one, other) => Math.abs(one.x - other.x) < 36 && Math.abs(one.top - other.top) < 12;

function connect(view, step, links) {
  const { sources, targets, from, to } = view.places;
  const end = targets[step + 1].x; // The line begins with <s>.
  view.paths.forEach((path, i) => {
    const link = links[i];
    path.style.display = link ? "" : "none";
    if (!link) return;
    const { x } = sources[link.key];
    const middle = (from + to) / 2;
    path.setAttribute("d", `M${x} ${from + 3}C${x} ${middle} ${end} ${middle} ${end} ${to - 3}`);
    path.setAttribute("stroke-width", (1 + (view.thick * link.byte) / FULL).toFixed(1));
    path.setAttribute("stroke-opacity", Math.sqrt(link.byte / FULL).toFixed(2));
  });
  const near = ({ key }, i) => links.slice(0, i).some((one) => isNear(sources[one.key], sources[key]));
  view.labels.forEach((label, i) => {
    const link = links[i];
    label.textContent = link && link.byte > 0.1 * FULL && !near(link, i) ? written((link.byte / FULL).toFixed(2)) : "";
    if (!label.textContent) return;
    label.setAttribute("x", sources[link.key].x);
    label.setAttribute("y", sources[link.key].top - 5);
  });
}

/** Show step `step`: `row` is its cross-attention over the source. */
export function showText(view, step, row, table, inks) {
  shade(view, row, table, inks);
  view.targets.forEach((span, i) => {
    const state = i === step + 1 ? "predicted" : i === step ? "fed" : i > step ? "unwritten" : "written";
    if (span.dataset.state === state) return;
    span.dataset.state = state;
    span.setAttribute("aria-hidden", state === "unwritten");
  });
  if (!view.places) measure(view);
  connect(view, step, strongest(row));
}

const LOWEST = 190;
const SHARE = 0.2; // Of the window's height.
const WIDEST = 56;
const TALLEST = 30;
const GAPS_FROM = 6; // Pixels a cell needs before a gap between cells is worth its room.

/** The decoder's self-attention: a square that grows by a row a step. */
export function buildMatrix(root, select) {
  const box = piece("div", "matrix");
  const title = piece("div", "title", say("the decoder’s own words:"));
  title.append(" ", select);
  const frame = piece("div", "frame");
  const label = piece("div", "row");
  const canvas = piece("canvas", "");
  canvas.setAttribute("role", "img");
  const reading = piece("div", "reading");
  frame.append(label, canvas);
  box.append(title, frame, reading);
  root.append(box);
  return { frame, label, canvas, reading, width: 0, height: 0 };
}

/** Fit the cells of `size` rows and columns into the room there is. */
export function layMatrix(view, size, room) {
  const staged = leastType(view.frame) > 0; // There the style sheet says how high the frame is.
  const tall = staged ? view.frame.clientHeight : Math.max(LOWEST, SHARE * window.innerHeight);
  view.width = Math.min(WIDEST, room / size);
  view.height = staged ? tall / size : Math.min(TALLEST, tall / size);
  fitCanvas(view.canvas, view.width * size, view.height * size);
}

/** Rows 0..step in colour, those to come as empty cells. */
export function showMatrix(view, step, weights, size, table, colours) {
  const { canvas, width, height } = view;
  const context = penOn(canvas, width * size, height * size);
  context.clearRect(0, 0, width * size, height * size);
  const pixels = coloured(weights.subarray(0, (step + 1) * size), table, size * size);
  paintCells(context, pixels, size, width * size, height * size);
  if (Math.min(width, height) >= GAPS_FROM) {
    strokeLines(context, size, [0, step + 1], view, colours.background, 2);
    strokeLines(context, size, [step + 1, size], view, colours.line, 1);
  } else {
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    context.strokeRect(0.5, 0.5, width * size - 1, height * size - 1);
  }
  context.strokeStyle = colours.accent;
  context.lineWidth = 1.5;
  context.strokeRect(0.75, step * height + 0.75, width * size - 1.5, Math.max(height - 1.5, 1));
}

/** A cell in words; `tokens` is what was fed in, <s> first. */
export function cellInWords(weights, size, /** @type {number[]} */ [query, key], step, tokens) {
  const byte = weights[query * size + key];
  const [from, to] = [tokens[query], tokens[key]].map((token) => `\u2068${token.text}\u2069`);
  if (query > step) return say("This row is still to come.");
  const pair = `“${from}” → “${to}”`;
  if (byte === MASKED && key <= query) return say("{pair}: masked, it may not look there", { pair });
  if (byte === MASKED) return say("At “{token}”, what comes after it is not written yet: masked, grey.", { token: tokens[query].text });
  return say("“{query}” looks back at “{key}”: {weight}", { query: from, key: to, weight: written((byte / FULL).toFixed(2)) });
}

/** The key of the strongest cell in the row of `step`, of those that it may look at; 0 where there is none. */
export function strongestKey(weights, size, step) {
  const row = weights.subarray(step * size, step * size + step + 1);
  const open = [...row.keys()].filter((key) => row[key] !== MASKED);
  return open.reduce((best, key) => (row[key] > row[best] ? key : best), open[0] ?? 0);
}
