import { drawn, plain } from "../shared/picture.js";

/** Each side of a box: from where to where it runs, in shares of the box, and which way is inside. */
const EDGES = {
  Top: { from: [0, 0], to: [1, 0], inside: [0, 1] },
  Right: { from: [1, 0], to: [1, 1], inside: [-1, 0] },
  Bottom: { from: [0, 1], to: [1, 1], inside: [0, -1] },
  Left: { from: [0, 0], to: [0, 1], inside: [1, 0] },
};

/** How a line looks, given what a style sheet says of it. */
function lineLook(colour, width, kind) {
  const dash = { dashed: `${3 * width} ${2 * width}`, dotted: `${width} ${width}` }[kind];
  return { fill: "none", stroke: plain(colour), "stroke-width": width, ...(dash && { "stroke-dasharray": dash }) };
}

/** A frame whose line runs `out` pixels outside of a box. */
function ringAround({ x, y, width, height }, out, radius, look) {
  const size = { width: Math.max(0, width + 2 * out), height: Math.max(0, height + 2 * out) };
  return drawn("rect", { x: x - out, y: y - out, ...size, rx: radius && Math.max(0, radius + out), ...look });
}

function borders(style, box, radius) {
  const sides = Object.entries(EDGES).map(([name, edge]) => {
    const [colour, width, kind] = ["Color", "Width", "Style"].map((part) => style[`border${name}${part}`]);
    return { edge, said: `${colour} ${width} ${kind}`, width: parseFloat(width), look: lineLook(colour, parseFloat(width), kind) };
  });
  const [{ said, width, look }] = sides;
  if (width && sides.every((side) => side.said === said)) return [ringAround(box, -width / 2, radius, look)];
  return sides.filter((side) => side.width).map((side) => edgeLine(box, side));
}

function edgeLine({ x, y, width: across, height: down }, { edge: { from, to, inside }, width, look }) {
  const at = ([right, below]) => [x + right * across + (inside[0] * width) / 2, y + below * down + (inside[1] * width) / 2];
  const [[x1, y1], [x2, y2]] = [at(from), at(to)];
  return drawn("line", { x1, y1, x2, y2, ...look });
}

/** A shadow that is no shadow but a ring of one colour around the box. */
function shadowRing({ boxShadow }, box, radius) {
  const ring = boxShadow.match(/^(\w+\([^)]*\)) 0px 0px 0px ([\d.]+)px$/);
  if (!ring) return [];
  const width = parseFloat(ring[2]);
  return [ringAround(box, width / 2, radius, lineLook(ring[1], width, "solid"))];
}

function outline(style, box, radius) {
  if (style.outlineStyle === "none") return [];
  const width = parseFloat(style.outlineWidth);
  return [ringAround(box, parseFloat(style.outlineOffset) + width / 2, radius, lineLook(style.outlineColor, width, style.outlineStyle))];
}

/** The lines around an element, from back to front. */
export function edges(style, box) {
  const radius = parseFloat(style.borderRadius) || 0;
  return [shadowRing, borders, outline].flatMap((of) => of(style, box, radius));
}

/** A text of the page line by line, each with what runs under or through it; `box` is that of its element. */
export function writtenText(node, style, box) {
  if (!node.data.trim() || style.color === "rgba(0, 0, 0, 0)") return [];
  const lines = textLines(node);
  const shown = style.overflowX === "hidden" ? cutLines(lines, style, box) : lines;
  return shown.flatMap((line) => writtenLine(line, style));
}

/** The lines a text is broken into, as lists of characters with their places; spaces at their ends take no room. */
function textLines(node) {
  const range = document.createRange();
  const lines = [];
  let at = 0;
  for (const letter of node.data) {
    range.setStart(node, at);
    range.setEnd(node, (at += letter.length));
    const { left, right, top, height } = range.getBoundingClientRect();
    if (!height) continue;
    const middle = top + height / 2;
    // Lines may overlap by a little: only half a line farther down there is another one.
    if (!lines.length || middle - lines.at(-1)[0].middle > height / 2) lines.push([]);
    lines.at(-1).push({ letter, left, right, middle });
  }
  return lines.map(trimmed).filter((line) => line.length);
}

function trimmed(line) {
  const isWord = ({ letter }) => letter.trim();
  return line.slice(line.findIndex(isWord), line.findLastIndex(isWord) + 1);
}

/** The lines as far as their box shows them; where it cuts something off, they end in an ellipsis. */
function cutLines(lines, { direction, fontSize }, box) {
  const kept = lines.filter(([{ middle }]) => middle < box.bottom);
  const last = kept.pop();
  if (!last) return [];
  const within = (least, most) => last.filter(({ left, right }) => left >= least - 1 && right <= most + 1);
  if (kept.length + 1 === lines.length && within(box.left, box.right).length === last.length) return lines;
  const dots = parseFloat(fontSize) * 0.8;
  const rest = direction === "rtl" ? within(box.left + dots, box.right) : within(box.left, box.right - dots);
  if (!rest.length) return kept;
  const { left, right, middle } = rest.at(-1);
  const end = direction === "rtl" ? { left: left - dots, right: left } : { left: right, right: right + dots };
  return [...kept, [...rest, { letter: "…", middle, ...end }]];
}

function writtenLine(line, style) {
  const size = parseFloat(style.fontSize);
  const [left, right] = [Math.min(...line.map((one) => one.left)), Math.max(...line.map((one) => one.right))];
  const base = line[0].middle + size * 0.35;
  const look = { fill: plain(style.color), "font-size": size, "font-weight": style.fontWeight, "font-style": style.fontStyle };
  const bold = parseFloat(style.webkitTextStrokeWidth);
  if (bold) Object.assign(look, { stroke: plain(style.webkitTextStrokeColor), "stroke-width": bold });
  const from = style.direction === "rtl" ? { x: right, direction: "rtl" } : { x: left };
  // Where the page's font is missing another one's letters are made narrower, not pushed into each other.
  const fitted = { textLength: right - left, lengthAdjust: "spacingAndGlyphs" };
  const text = drawn("text", { ...from, y: base, ...fitted, ...look }, line.map(({ letter }) => letter).join(""));
  return [text, ...decoration(style, left, right, base, size)];
}

function decoration(style, left, right, base, size) {
  const { textDecorationLine: kind, textDecorationStyle: manner, textDecorationColor: colour } = style;
  if (kind === "none") return [];
  const thick = parseFloat(style.textDecorationThickness) || Math.max(1, size / 16);
  const below = (parseFloat(style.textUnderlineOffset) || size / 9) + thick / 2;
  const y = kind === "line-through" ? base - size * 0.3 : base + below;
  const path = manner === "wavy" ? wave(left, right, y + 2 * thick, Math.max(1, thick)) : `M${left} ${y}H${right}`;
  return [drawn("path", { d: path, ...lineLook(colour, thick, manner) })];
}

/** As Chromium draws it: each wave seven times as long as the line is thick, and three times as high. */
function wave(left, right, y, thick) {
  const one = `c${3.5 * thick} ${5 * thick} ${3.5 * thick} ${-5 * thick} ${7 * thick} 0`;
  return `M${left} ${y}${one.repeat(Math.max(1, Math.round((right - left) / (7 * thick))))}`;
}
