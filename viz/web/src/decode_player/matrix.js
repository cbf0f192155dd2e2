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
  return { frame, label, canvas, reading, small: document.createElement("canvas") };
}

/** Fit the cells of `size` rows and columns into the room there is. */
export function layMatrix(view, size, room) {
  const staged = leastType(view.frame) > 0; // There the style sheet says how high the frame is.
  const tall = staged ? view.frame.clientHeight : Math.max(LOWEST, SHARE * window.innerHeight);
  view.width = Math.min(WIDEST, room / size);
  view.height = staged ? tall / size : Math.min(TALLEST, tall / size);
  const { canvas } = view;
  canvas.style.width = `${view.width * size}px`;
  canvas.style.height = `${view.height * size}px`;
  canvas.width = Math.round(view.width * size * devicePixelRatio);
  canvas.height = Math.round(view.height * size * devicePixelRatio);
  view.small.width = size;
  view.small.height = size;
}

/** Rows 0..step in colour, those to come as empty cells. */
export function showMatrix(view, step, weights, size, table, colours) {
  const image = new ImageData(size, size);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < (step + 1) * size; i += 1) pixels[i] = table[weights[i]];
  view.small.getContext("2d").putImageData(image, 0, 0);
  const { canvas, width, height } = view;
  const context = canvas.getContext("2d");
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.clearRect(0, 0, width * size, height * size);
  context.imageSmoothingEnabled = false;
  context.drawImage(view.small, 0, 0, width * size, height * size);
  const written = (step + 1) * height;
  if (Math.min(width, height) >= GAPS_FROM) {
    grid(context, size, width, height, 0, written, colours.background, 2);
    grid(context, size, width, height, written, size * height, colours.line, 1);
  } else {
    context.strokeStyle = colours.line;
    context.strokeRect(0.5, 0.5, width * size - 1, height * size - 1);
  }
  context.strokeStyle = colours.accent;
  context.lineWidth = 1.5;
  context.strokeRect(0.75, step * height + 0.75, width * size - 1.5, Math.max(height - 1.5, 1));
}

function grid(context, size, width, height, from, to, colour, thick) {
  context.strokeStyle = colour;
  context.lineWidth = thick;
  context.beginPath();
  for (let i = 0; i <= size; i += 1) {
    context.moveTo(i * width, from);
    context.lineTo(i * width, to);
    if (i * height < from || i * height > to + 0.01) continue;
    context.moveTo(0, i * height);
    context.lineTo(size * width, i * height);
  }
  context.stroke();
}

/** The cell under the pointer, or null. */
export function cellAt(view, event, size) {
  const key = Math.floor(event.offsetX / view.width);
  const query = Math.floor(event.offsetY / view.height);
  return key >= 0 && query >= 0 && key < size && query < size ? { query, key } : null;
}

/** A cell in words; `tokens` is what was fed in, <s> first. */
export function cellInWords(weights, size, { query, key }, step, tokens) {
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
