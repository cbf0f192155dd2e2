import { FULL } from "../shared/packed.js";
import { inked } from "../shared/colours.js";
import { written } from "../shared/number.js";
import { drawn } from "../shared/picture.js";
import { piece } from "./elements.js";

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
