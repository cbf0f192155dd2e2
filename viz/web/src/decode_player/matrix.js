import { coloured, fitCanvas, paintCells, strokeLines } from "../shared/grid.js";
import { FULL, MASKED } from "../shared/packed.js";
import { written } from "../shared/number.js";
import { say } from "../shared/say.js";
import { leastType } from "../shared/stage_sizes.js";
import { piece } from "./elements.js";

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
  const context = canvas.getContext("2d");
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.clearRect(0, 0, width * size, height * size);
  const pixels = coloured(weights.subarray(0, (step + 1) * size), table, size * size);
  paintCells(context, pixels, size, width * size, height * size);
  if (Math.min(width, height) >= GAPS_FROM) {
    strokeLines(context, size, [0, step + 1], view, colours.background, 2);
    strokeLines(context, size, [step + 1, size], view, colours.line, 1);
  } else {
    context.strokeStyle = colours.line;
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
  if (byte === MASKED) return say("At “{token}”, what comes after it is not written yet: masked, grey.", { token: tokens[query].text });
  return say("“{query}” looks back at “{key}”: {weight}", { query: from, key: to, weight: written((byte / FULL).toFixed(2)) });
}

/** The strongest cell of the row of `step`. */
export function strongestKey(weights, size, step) {
  let best = 0;
  for (let key = 0; key <= step; key += 1) if (weights[step * size + key] > weights[step * size + best]) best = key;
  return best;
}
