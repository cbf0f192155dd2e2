import { FINE_FULL, FINE_MASKED, FULL, MASKED } from "../shared/packed.js";
import { lookup, position } from "../shared/colours.js";
import { written } from "../shared/number.js";
import { say } from "../shared/say.js";

const GAPS_UP_TO = 64; // cells a side
const SMALL = 32;

/** The weights (rows, columns) of a header and its two-byte body: how they read, if they do, and their places on the ramp. */
export function exact({ rows, columns, top, scale, readable = true }, body) {
  const levels = new Uint16Array(body.slice().buffer); // A copy: the body may begin at an odd address.
  const value = (at) => (levels[at] === FINE_MASKED ? NaN : (top * levels[at]) / FINE_FULL);
  const byte = (at) => (levels[at] === FINE_MASKED ? MASKED : Math.round(FULL * position(levels[at] / FINE_FULL, scale)));
  const places = Uint8Array.from(levels, (_, at) => byte(at));
  return { rows: rows.length, columns: columns.length, value: readable && value, decimals: 3, places };
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
export function colours({ stops, colours: { masked } }) {
  return lookup(stops, masked, "linear");
}

function hatch(pen, { rows, columns, places }, width, height, { masked, hatch: stroke }) {
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
  pen.strokeStyle = stroke;
  pen.lineWidth = devicePixelRatio;
  pen.beginPath();
  // One stroke through the cells of each anti-diagonal; where cells are small, as far apart as they stay strokes.
  const every = Math.max(rows, columns) <= SMALL ? 1 : Math.max(2, Math.ceil(12 / Math.min(w, h)));
  for (let at = 1; at < rows + columns; at += every) {
    pen.moveTo(0, at * h);
    pen.lineTo(at * w, 0);
  }
  pen.stroke();
  pen.restore();
}

function gaps(pen, rows, columns, width, height, background) {
  pen.fillStyle = background;
  const thin = devicePixelRatio;
  if (columns <= GAPS_UP_TO) {
    for (let at = 1; at < columns; at += 1) pen.fillRect(Math.round((at * width) / columns - thin / 2), 0, thin, height);
  }
  if (rows <= GAPS_UP_TO) {
    for (let at = 1; at < rows; at += 1) pen.fillRect(0, Math.round((at * height) / rows - thin / 2), width, thin);
  }
}

/** Paint `map` on a canvas of `width` x `height` pixels of the page. */
export function paintCells(canvas, map, header, width, height) {
  canvas.width = Math.max(1, Math.round(width * devicePixelRatio));
  canvas.height = Math.max(1, Math.round(height * devicePixelRatio));
  const { rows, columns, places } = map;
  const table = colours(header);
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let at = 0; at < places.length; at += 1) pixels[at] = table[places[at]];
  const small = new OffscreenCanvas(columns, rows);
  small.getContext("2d").putImageData(image, 0, 0);
  const pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = columns > canvas.width || rows > canvas.height; // More cells than pixels: averaged.
  pen.imageSmoothingQuality = "high";
  pen.drawImage(small, 0, 0, canvas.width, canvas.height);
  if (places.includes(MASKED)) hatch(pen, map, canvas.width, canvas.height, header.colours);
  gaps(pen, header.rows.length, header.columns.length, canvas.width, canvas.height, header.colours.background);
}
