import { FINE_FULL, FINE_MASKED, FULL, MASKED } from "../shared/packed.js";
import { lookup, position } from "../shared/colours.js";
import { coloured, fillGaps, fitCanvas, hatchMasked, paintCells } from "../shared/grid.js";
import { written } from "../shared/number.js";
import { say } from "../shared/say.js";

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
export function colours({ stops, colours: { masked } }) {
  return lookup(stops, masked, "linear");
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
