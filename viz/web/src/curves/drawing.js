import { drawn } from "../shared/picture.js";

const TOP = 10;
const RIGHT = 14;
const BELOW = 46;
const APART = 4; // Pixels on either side of a note.
const LINE = 17; // Pixels from one line of a note to the next.
const SHIFTS = { top: 1, middle: 0.35, bottom: -0.45 };

const below = ({ ticks, title }) => (ticks.length ? BELOW : title ? BELOW - LINE : TOP);

/** Where numbers stand in the picture: x(value), y(value) in pixels, and the plot's edges; and back. */
export function scales({ x, y, left, height, square }, width) {
  const box = { left, top: TOP, right: Math.max(left + 40, width - RIGHT), bottom: height - below(x) };
  const span = [box.right - box.left, box.bottom - box.top];
  let unit = [span[0] / (x.high - x.low), span[1] / (y.high - y.low)];
  if (square) unit = [Math.min(...unit), Math.min(...unit)];
  const spare = [span[0] - unit[0] * (x.high - x.low), span[1] - unit[1] * (y.high - y.low)];
  return {
    ...box,
    x: (value) => box.left + spare[0] / 2 + (value - x.low) * unit[0],
    y: (value) => box.bottom - spare[1] / 2 - (value - y.low) * unit[1],
    valueX: (pixel) => x.low + (pixel - box.left - spare[0] / 2) / unit[0],
    valueY: (pixel) => y.low + (box.bottom - spare[1] / 2 - pixel) / unit[1],
  };
}

/** The points (N, 2) of a mark as the path of an SVG; a missing one lifts the pen. */
function path(points, at) {
  let text = "";
  let down = false;
  for (let i = 0; i < points.length; i += 2) {
    const known = !Number.isNaN(points[i]);
    if (known) text += `${down ? "L" : "M"}${at.x(points[i]).toFixed(1)} ${at.y(points[i + 1]).toFixed(1)}`;
    down = known;
  }
  return text;
}

function strokes({ kind, points, colour, size }, at) {
  if (kind === "line") return [drawn("path", { class: "curve", d: path(points, at), stroke: colour, "stroke-width": size })];
  if (kind === "area") return [drawn("path", { class: "area", d: `${path(points, at)}Z`, fill: colour })];
  const dots = [];
  for (let i = 0; i < points.length; i += 2) {
    dots.push(drawn("circle", { cx: at.x(points[i]), cy: at.y(points[i + 1]), r: size, fill: colour }));
  }
  return dots;
}

const rule = (x1, y1, x2, y2, stroke) => drawn("line", { x1, y1, x2, y2, stroke });
const words = (text, x, y, fill, across) => drawn("text", { x, y, fill, "text-anchor": across }, text);

function axes({ x, y, soft, line }, at) {
  const parts = [];
  for (const [value, name] of x.ticks) {
    if (x.grid) parts.push(rule(at.x(value), at.top, at.x(value), at.bottom, line));
    parts.push(words(name, at.x(value), at.bottom + 18, soft, "middle"));
  }
  for (const [value, name] of y.ticks) {
    if (y.grid) parts.push(rule(at.left, at.y(value), at.right, at.y(value), line));
    parts.push(words(name, at.left - 8, at.y(value) + 4.5, soft, "end"));
  }
  if (x.title) parts.push(words(x.title, (at.left + at.right) / 2, at.bottom + (x.ticks.length ? 38 : 21), soft, "middle"));
  if (y.title) {
    const middle = (at.top + at.bottom) / 2;
    const turned = words(y.title, 14, middle, soft, "middle");
    turned.setAttribute("transform", `rotate(-90 14 ${middle})`);
    turned.setAttribute("class", "ytitle"); // As plotly calls it.
    parts.push(turned);
  }
  return parts;
}

/** Lines of words over what is drawn, with the background's colour around them. */
function note({ text, x, y, colour, across, down, shift }, at, background) {
  const lines = text.split("\n");
  const above = { top: 0, middle: (lines.length - 1) / 2, bottom: lines.length - 1 }[down];
  return lines.map((line, i) => {
    const made = words(line, at.x(x) + shift, at.y(y) + LINE * (SHIFTS[down] + i - above), colour, across);
    made.setAttribute("class", !i && lines.length > 1 ? "note first" : "note");
    made.setAttribute("stroke", background);
    return made;
  });
}

/** Move words that would pass the left or the right edge of a picture of this width back into it. */
export function moveInside(notes, width) {
  for (const note of notes) {
    const box = note.getBBox();
    const by = Math.max(0, -box.x) - Math.max(0, box.x + box.width - width);
    if (by) note.setAttribute("x", Number(note.getAttribute("x")) + by);
  }
}

/** Leave out words that would stand on others; those that are noted first stay. */
export function leaveOutCovered(notes) {
  const kept = [];
  for (const note of notes) {
    const { x, y, width, height } = note.getBBox();
    const box = { left: x - APART, right: x + width + APART, top: y, bottom: y + 0.75 * height }; // It is higher than its letters.
    const free = kept.every((one) => box.left >= one.right || one.left >= box.right || box.top >= one.bottom || one.top >= box.bottom);
    if (free) kept.push(box);
    else note.remove();
  }
}

/** All that stands still, from back to front. */
export function picture(header, marks, at) {
  return [
    ...axes(header, at),
    ...marks.toReversed().flatMap((mark) => strokes(mark, at)),
    ...header.notes.flatMap((one) => note(one, at, header.background)),
  ];
}
