import { FULL, MASKED } from "../shared/packed.js";
import { position } from "../shared/colours.js";
import { drawn } from "../shared/picture.js";
import { colours } from "./cells.js";

const LABELS_UP_TO = 64; // tokens
const FEWEST = 12; // A short sentence leaves room free rather than being blown up to huge cells.
const TICKS = { linear: [0, 0.25, 0.5, 0.75, 1], sqrt: [0, 0.1, 0.25, 0.5, 1], log: [0.001, 0.01, 0.1, 1] };
// Fixed, so that nothing moves when another head, kind or sentence is chosen.
const MARGIN = { left: 112, right: 56, top: 100, bottom: 4 };
const BAR = { width: 8, share: 0.5 };

/** Where the cells stand in a frame of `width` x `height`. */
export function placed({ rows, columns }, width, height) {
  const w = Math.max(0, width - MARGIN.left - MARGIN.right) / Math.max(columns.length, FEWEST);
  const h = (height - MARGIN.top - MARGIN.bottom) / Math.max(rows.length, FEWEST);
  return { left: MARGIN.left, top: MARGIN.top, w, h, width: w * columns.length, height: h * rows.length, whole: width };
}

/** Every how many tokens are named, as in figures/labels.py. */
const every = (count) => (count <= LABELS_UP_TO ? 1 : Math.ceil((2 * count) / LABELS_UP_TO));
const fontSize = (count) => Math.min(15, Math.max(7, 400 / Math.max(count / every(count), 1)));
const isNamed = (at, pinned, step) => at === pinned || (at % step === 0 && Math.abs(at - (pinned ?? -step)) >= step);

function tokens(header, place, { ink }) {
  const [pinnedRow, pinnedColumn] = header.pinned;
  const weight = (one, pinned) => ({ "font-weight": one === pinned ? 700 : 400 });
  const found = [];
  const each = (labels, pinned, draw) => {
    const step = every(labels.length);
    const look = { "dominant-baseline": "central", fill: ink, "font-size": fontSize(labels.length) };
    labels.forEach((text, at) => {
      if (isNamed(at, pinned, step)) found.push(drawn("text", { ...look, ...draw(at), ...weight(at, pinned) }, text));
    });
  };
  each(header.rowLabels, pinnedRow, (at) => ({ class: "row", x: place.left - 8, y: place.top + (at + 0.5) * place.h, "text-anchor": "end" }));
  each(header.columnLabels, pinnedColumn, (at) => {
    const transform = `translate(${place.left + (at + 0.5) * place.w},${place.top - 8}) rotate(-45)`;
    return { class: "column", transform };
  });
  return found;
}

/** The ramp, evenly, with the weights that stand at its places. */
function bar({ stops, scale, top }, place, height, { soft }) {
  const length = (height - MARGIN.top - MARGIN.bottom) * BAR.share;
  const x = place.whole - MARGIN.right + 8;
  const gradient = drawn("linearGradient", { id: "ramp", x1: 0, y1: 1, x2: 0, y2: 0 });
  stops.forEach((colour, at) => gradient.append(drawn("stop", { offset: at / (stops.length - 1), "stop-color": colour })));
  const ticks = TICKS[scale].map((share) => {
    const y = MARGIN.top + length * (1 - position(share, scale));
    const text = `${Number((share * top).toPrecision(2))}`;
    return drawn("text", { x: x + BAR.width + 4, y, "dominant-baseline": "central", "font-size": 12, fill: soft }, text);
  });
  return [gradient, drawn("rect", { x, y: MARGIN.top, width: BAR.width, height: length, fill: "url(#ramp)" }), ...ticks];
}

function outlines({ pinned: [row, column], breaks }, place, { accent, ink }) {
  const { left, top, w, h, width, height } = place;
  const box = { class: "pin", fill: "none", stroke: accent, "stroke-width": 2 };
  const line = { stroke: ink, "stroke-width": 1.5 };
  return [
    ...breaks.map((at) => drawn("line", { ...line, x1: left, x2: left + width, y1: top + at * h, y2: top + at * h })),
    ...breaks.map((at) => drawn("line", { ...line, y1: top, y2: top + height, x1: left + at * w, x2: left + at * w })),
    ...(row === null ? [] : [drawn("rect", { ...box, x: left, width, y: top + row * h, height: h })]),
    ...(column === null ? [] : [drawn("rect", { ...box, y: top, height, x: left + column * w, width: w })]),
  ];
}

/** Each weight in its cell, in ink or paper, whichever is farther from the cell's colour. */
function numbers(header, map, place, { ink, background }) {
  if (!header.numbers || !map.value) return [];
  const table = colours(header);
  const light = (pixel) => 0.3 * (pixel & 255) + 0.59 * ((pixel >> 8) & 255) + 0.11 * ((pixel >> 16) & 255);
  const of = (hex) => 0.3 * parseInt(hex.slice(1, 3), 16) + 0.59 * parseInt(hex.slice(3, 5), 16) + 0.11 * parseInt(hex.slice(5, 7), 16);
  const far = (pixel) => (Math.abs(light(pixel) - of(ink)) > Math.abs(light(pixel) - of(background)) ? ink : background);
  const look = { class: "number", "text-anchor": "middle", "dominant-baseline": "central", "font-size": 11 };
  return [...map.places].flatMap((at, i) => {
    if (at === MASKED || at > FULL) return [];
    const [row, column] = [Math.floor(i / map.columns), i % map.columns];
    const spot = { x: place.left + (column + 0.5) * place.w, y: place.top + (row + 0.5) * place.h };
    return [drawn("text", { ...look, ...spot, fill: far(table[at]) }, map.value(i).toFixed(2))];
  });
}

/** All that stands around and over the cells. */
export function drawFrame(svg, header, map, place, height) {
  const { colours: palette } = header;
  svg.setAttribute("viewBox", `0 0 ${place.whole} ${height}`);
  const named = drawn("text", { class: "title", x: 0, y: 16, "font-size": 16, "font-weight": 700, fill: palette.ink }, header.title);
  named.append(drawn("tspan", { dx: 8, "font-weight": 400, fill: palette.soft }, header.model));
  const axes = { x: place.left - 8, y: place.top - 8, "text-anchor": "end", "font-size": 13, fill: palette.soft };
  svg.replaceChildren(
    named,
    drawn("text", axes, "query ↓  key →"),
    ...tokens(header, place, palette),
    ...bar(header, place, height, palette),
    ...numbers(header, map, place, palette),
    ...outlines(header, place, palette),
  );
}
