import { drawn, lookup, position } from "../shared/picture.js";
import { coloured, fitCanvas, paintCells } from "../shared/grid.js";
import { FINE_FULL, FINE_MASKED, FULL, MASKED } from "../shared/packed.js";
import { say, written } from "../shared/say.js";

/** The weights (rows, columns) of a header and its two-byte body: how they read, and their places on the ramp. */
export function exact({ rows, columns, top, scale }, body) {
  const levels = new Uint16Array(body.slice().buffer); // A copy: the body may begin at an odd address.
  const value = (at) => (levels[at] === FINE_MASKED ? NaN : (top * levels[at]) / FINE_FULL);
  const byte = (at) => (levels[at] === FINE_MASKED ? MASKED : Math.round(FULL * position(levels[at] / FINE_FULL, scale)));
  const places = Uint8Array.from(levels, (_, at) => byte(at));
  return { rows: rows.length, columns: columns.length, value, decimals: 3, places };
}

/** The same from the overview's bytes: fewer decimals, and none where a tile is coarser than the map. */
export function coarse({ rows, columns, bytes }, header) {
  const place = (byte) => (byte === MASKED ? MASKED : Math.round(FULL * position(byte / FULL, header.scale)));
  const table = Uint8Array.from({ length: 256 }, (_, byte) => place(byte));
  const whole = rows === header.rows.length && columns === header.columns.length;
  const value = whole && ((at) => (bytes[at] === MASKED ? NaN : bytes[at] / FULL));
  return { rows, columns, value, decimals: 2, places: bytes.map((byte) => table[byte]) };
}

/** A cell in words: its weight. */
export function told({ value, decimals }, at) {
  return Number.isNaN(value(at)) ? say("masked: may not attend") : written(value(at).toFixed(decimals));
}

/** Pixels by place on the ramp; masked cells stay clear and get their hatch from below. */
function colours({ stops, colours: { masked } }) {
  return lookup(stops, masked, "linear");
}

const HATCHED_EACH = 32; // Cells a side, up to which each has a stroke.
const APART = 12; // Pixels between strokes where there are more.

/** Hatch the cells that are masked, of a canvas whole of cells. */
function hatchMasked(pen, places, rows, columns, { masked, hatch }) {
  if (!places.includes(MASKED)) return;
  const { width, height } = pen.canvas;
  const [w, h] = [width / columns, height / rows];
  pen.beginPath();
  for (let row = 0; row < rows; row += 1) {
    for (let from = 0; from < columns; from += 1) {
      let to = from;
      while (to < columns && places[row * columns + to] === MASKED) to += 1;
      if (to > from) pen.rect(from * w, row * h, (to - from) * w, h);
      from = to;
    }
  }
  pen.save();
  pen.clip();
  pen.fillStyle = masked;
  pen.fillRect(0, 0, width, height);
  pen.strokeStyle = hatch;
  pen.lineWidth = devicePixelRatio;
  pen.beginPath();
  // One stroke through the cells of each anti-diagonal; where cells are small, as far apart as they stay strokes.
  const every = Math.max(rows, columns) <= HATCHED_EACH ? 1 : Math.max(2, Math.ceil(APART / Math.min(w, h)));
  for (let at = 1; at < rows + columns; at += every) {
    pen.moveTo(0, at * h);
    pen.lineTo(at * w, 0);
  }
  pen.stroke();
  pen.restore();
}

const GAPS_UP_TO = 64; // Cells a side.

/** Gaps between the cells of a canvas whole of them: always a pixel of the page wide. */
function fillGaps(pen, rows, columns, colour) {
  const { width, height } = pen.canvas;
  const thin = devicePixelRatio;
  pen.fillStyle = colour;
  if (columns <= GAPS_UP_TO) {
    for (let at = 1; at < columns; at += 1) pen.fillRect(Math.round((at * width) / columns - thin / 2), 0, thin, height);
  }
  if (rows <= GAPS_UP_TO) {
    for (let at = 1; at < rows; at += 1) pen.fillRect(0, Math.round((at * height) / rows - thin / 2), width, thin);
  }
}

/** Paint `map` on a canvas of `width` x `height` pixels of the page. */
export function paintMap(canvas, { rows, columns, places }, header, width, height) {
  fitCanvas(canvas, width, height);
  const pen = canvas.getContext("2d");
  const crowded = columns > canvas.width || rows > canvas.height; // More cells than pixels: averaged.
  paintCells(pen, coloured(places, colours(header)), columns, canvas.width, canvas.height, crowded);
  hatchMasked(pen, places, rows, columns, header.colours);
  fillGaps(pen, header.rows.length, header.columns.length, header.colours.background);
}

const LABELS_UP_TO = 64; // tokens
const FEWEST = 12; // A short sentence leaves room free rather than being blown up to huge cells.
const TICKS = { linear: [0, 0.25, 0.5, 0.75, 1], sqrt: [0, 0.1, 0.25, 0.5, 1], log: [0.001, 0.01, 0.1, 1] };
// Fixed, so that nothing moves when another head, kind or sentence is chosen.
const MARGIN = { left: 112, right: 56, top: 94, bottom: 4 };
const SLIM = { left: 84, right: 8, top: 94, bottom: 34 }; // On a phone the ramp lies under the cells.
const SLIM_BELOW = 480; // Pixels of width.
const BAR = { width: 8, share: 0.5, lying: 0.8 };
const LINE = 1.1; // The height of a line, in sizes of its letters.
const SIZES = { smallest: 9, slanted: 12, largest: 15 }; // Pixels of letters.
const SLANT = Math.SQRT1_2;
const BAND = { width: 3, gap: 2, legend: 18, key: 14 }; // Between the names and the cells, and its legend under these.
const BAND_COLOURS = { system: "soft", user: "ink", assistant: "accent" };

const isSlim = (width) => width < SLIM_BELOW;
const hasRoles = ({ roles }) => roles.flat().some(Boolean);
function marginOf(width, header) {
  const margin = isSlim(width) ? SLIM : MARGIN;
  return hasRoles(header) ? { ...margin, bottom: margin.bottom + BAND.legend } : margin;
}

/** The runs of one value in a list: the value, where it begins, and where it ends. */
function runs(values) {
  const found = [];
  values.forEach((value, at) => {
    const last = found.at(-1);
    if (last?.value === value) last.end = at + 1;
    else found.push({ value, start: at, end: at + 1 });
  });
  return found;
}

/**
 * Where the cells stand in a frame of `width` x `height`, and the smallest type there (`least`). Where it is to be read
 * from the back row (`least` is not 0) a short sentence has all the room too.
 */
export function placed(header, width, height, least = 0) {
  const { rows, columns } = header;
  const margin = marginOf(width, header);
  const fewest = least ? 1 : FEWEST;
  const w = Math.max(0, width - margin.left - margin.right) / Math.max(columns.length, fewest);
  const h = (height - margin.top - margin.bottom) / Math.max(rows.length, fewest);
  const smallest = Math.max(SIZES.smallest, least);
  return { left: margin.left, top: margin.top, w, h, width: w * columns.length, height: h * rows.length, whole: width, smallest };
}

/** Every how many tokens are named, as in figures/labels.py, or where they stand `space` apart, so that none overlap. */
function ticks(count, space, smallest) {
  const every = count <= LABELS_UP_TO ? 1 : Math.ceil((2 * count) / LABELS_UP_TO);
  const step = Math.max(every, Math.ceil((smallest * LINE) / space));
  return { step, size: Math.min(SIZES.largest, (step * space) / LINE) };
}
const isNamed = (at, pinned, step) => at === pinned || (at % step === 0 && Math.abs(at - (pinned ?? -step)) >= step);

/** The names of rows and columns, and how many have no room (`unnamed`). */
function tokens(header, place, { ink }) {
  const [pinnedRow, pinnedColumn] = header.pinned;
  const weight = (one, pinned) => ({ "font-weight": one === pinned ? 700 : 400 });
  const found = [];
  const each = (labels, pinned, space, draw) => {
    const { step, size } = ticks(labels.length, space, place.smallest);
    const look = { "dominant-baseline": "central", fill: ink, "font-size": size };
    labels.forEach((text, at) => {
      if (isNamed(at, pinned, step)) found.push(drawn("text", { ...look, ...draw(at), ...weight(at, pinned) }, text));
    });
  };
  const above = hasRoles(header) ? 8 + BAND.width : 8;
  const slanted = place.w * SLANT >= SIZES.slanted * LINE;
  each(header.rowLabels, pinnedRow, place.h, (at) => ({ class: "row", x: place.left - 8, y: place.top + (at + 0.5) * place.h, "text-anchor": "end" }));
  each(header.columnLabels, pinnedColumn, slanted ? place.w * SLANT : place.w, (at) => {
    const transform = `translate(${place.left + (at + 0.5) * place.w},${place.top - above}) rotate(${slanted ? -45 : -90})`;
    return { class: "column", transform };
  });
  return { names: found, unnamed: header.rowLabels.length + header.columnLabels.length - found.length };
}

/** The ramp, evenly, with the weights that stand at its places: beside the cells, or under them where it is slim. */
function bar(header, place, height, { soft }) {
  const { stops, scale, top } = header;
  const lying = isSlim(place.whole);
  const margin = marginOf(place.whole, header);
  const length = lying ? (place.whole - margin.left - margin.right) * BAR.lying : (height - margin.top - margin.bottom) * BAR.share;
  const [x, y] = lying ? [margin.left, height - SLIM.bottom + 8] : [place.left + place.width + 8, margin.top];
  const gradient = drawn("linearGradient", { id: "ramp", x1: 0, y1: lying ? 0 : 1, x2: lying ? 1 : 0, y2: 0 });
  stops.forEach((colour, at) => gradient.append(drawn("stop", { offset: at / (stops.length - 1), "stop-color": colour })));
  const marks = TICKS[scale].map((share) => {
    const at = length * position(share, scale);
    const spot = lying ? { x: x + at, y: y + BAR.width + 10, "text-anchor": "middle" } : { x: x + BAR.width + 4, y: y + length - at };
    return drawn("text", { ...spot, "dominant-baseline": "central", "font-size": 12, fill: soft }, written(`${Number((share * top).toPrecision(2))}`));
  });
  const [width, tall] = lying ? [length, BAR.width] : [BAR.width, length];
  return [gradient, drawn("rect", { x, y, width, height: tall, fill: "url(#ramp)" }), ...marks];
}

/** Whose text a token of a chat is: a band along both axes, and under the cells what the bands mean. */
function bands(header, place, palette) {
  if (!hasRoles(header)) return [];
  const { left, top, w, h, height } = place;
  const across = BAND.width + BAND.gap;
  const strip = (role, box) => drawn("rect", { class: "band", ...box, fill: palette[BAND_COLOURS[role]] });
  const [rows, columns] = header.roles.map((roles) => runs(roles).filter(({ value }) => value));
  const y = top + height + BAND.legend / 2 + 2;
  let x = left;
  const legend = Object.entries(header.roleNames).flatMap(([role, name]) => {
    const at = x;
    x += BAND.key + 6 + 7.5 * name.length + 14;
    const text = { class: "role", x: at + BAND.key + 6, y, "dominant-baseline": "central", "font-size": 12, fill: palette.soft };
    return [strip(role, { x: at, y: y - BAND.width / 2, width: BAND.key, height: BAND.width }), drawn("text", text, name)];
  });
  return [
    ...rows.map(({ value, start, end }) => strip(value, { x: left - across, y: top + start * h + 1, width: BAND.width, height: (end - start) * h - 2 })),
    ...columns.map(({ value, start, end }) => strip(value, { x: left + start * w + 1, y: top - across, width: (end - start) * w - 2, height: BAND.width })),
    ...legend,
  ];
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
  const size = Math.max(11, place.smallest);
  if (place.w < 2.2 * size || place.h < size) return []; // No room for 0.25.
  const look = { class: "number", "text-anchor": "middle", "dominant-baseline": "central", "font-size": size };
  return [...map.places].flatMap((at, i) => {
    if (at === MASKED || at > FULL) return [];
    const [row, column] = [Math.floor(i / map.columns), i % map.columns];
    const spot = { x: place.left + (column + 0.5) * place.w, y: place.top + (row + 0.5) * place.h };
    return [drawn("text", { ...look, ...spot, fill: far(table[at]) }, written(map.value(i).toFixed(2)))];
  });
}

/** All that stands around and over the cells. */
export function drawFrame(svg, header, map, place, height) {
  const { colours: palette } = header;
  svg.setAttribute("viewBox", `0 0 ${place.whole} ${height}`);
  const named = drawn("text", { class: "title", x: 0, y: 16, "font-size": isSlim(place.whole) ? 14 : 16, "font-weight": 700, fill: palette.ink }, header.title);
  if (!isSlim(place.whole)) named.append(drawn("tspan", { dx: 8, "font-weight": 400, fill: palette.soft }, header.model));
  const { names, unnamed } = tokens(header, place, palette);
  svg.dataset.unnamed = unnamed;
  const axes = { x: place.left - 8, y: place.top - 8, "text-anchor": "end", "font-size": 13, fill: palette.soft };
  svg.replaceChildren(
    named,
    drawn("text", axes, say("query ↓  key →")),
    ...names,
    ...bar(header, place, height, palette),
    ...numbers(header, map, place, palette),
    ...bands(header, place, palette),
    ...outlines(header, place, palette),
  );
}
