import { drawn, plain } from "../shared/picture.js";

/** Each side of a box: from where to where it runs, in shares of the box, and which way is inside. */
const EDGES = {
  Top: { from: [0, 0], to: [1, 0], inside: [0, 1] },
  Right: { from: [1, 0], to: [1, 1], inside: [-1, 0] },
  Bottom: { from: [0, 1], to: [1, 1], inside: [0, -1] },
  Left: { from: [0, 0], to: [0, 1], inside: [1, 0] },
};

/** How a line looks, given what a style sheet says of it. */
export function lineLook(colour, width, kind) {
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
