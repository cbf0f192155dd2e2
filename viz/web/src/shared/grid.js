import { element } from "./element.js";
import { say } from "./say.js";

/** The pixels (ABGR) of cells in a table of 256; of more pixels than cells, the rest are clear. */
export function coloured(cells, table, count = cells.length) {
  const pixels = new Uint32Array(count);
  for (let at = 0; at < cells.length; at += 1) pixels[at] = table[cells[at]];
  return pixels;
}

/** One pixel a cell: the style sheet says how large it is seen. */
export function paintPixels(canvas, pixels, columns) {
  const rows = pixels.length / columns;
  if (canvas.width !== columns || canvas.height !== rows) Object.assign(canvas, { width: columns, height: rows });
  canvas.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), columns), 0, 0);
}

let small = null;

/** Cells as large as `width` x `height` has them; `smooth`ly where they are smaller than a pixel. */
export function paintCells(pen, pixels, columns, width, height, smooth = false) {
  small ??= new OffscreenCanvas(columns, 1);
  paintPixels(small, pixels, columns);
  pen.imageSmoothingEnabled = smooth;
  pen.imageSmoothingQuality = "high";
  pen.drawImage(small, 0, 0, width, height);
}

/** Make a canvas as large as so many pixels of the page, and as sharp as the screen. */
export function fitCanvas(canvas, width, height) {
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.width = Math.max(1, Math.round(width * devicePixelRatio));
  canvas.height = Math.max(1, Math.round(height * devicePixelRatio));
}

/** What draws on a canvas that was fitted, in pixels of the page: the screen may be another one since then. */
export function penOn(canvas, width, height) {
  const pen = canvas.getContext("2d");
  pen.setTransform(canvas.width / width, 0, 0, canvas.height / height, 0, 0);
  return pen;
}

/** Lines around cells of this size, of the rows `from` up to, not with, `to`. */
export function strokeLines(pen, columns, [from, to], { width, height }, colour, thick) {
  pen.strokeStyle = colour;
  pen.lineWidth = thick;
  pen.beginPath();
  for (let at = 0; at <= columns; at += 1) {
    pen.moveTo(at * width, from * height);
    pen.lineTo(at * width, to * height);
  }
  for (let at = from; at <= to; at += 1) {
    pen.moveTo(0, at * height);
    pen.lineTo(columns * width, at * height);
  }
  pen.stroke();
}

const held = (at, count) => Math.min(count - 1, Math.max(0, at));

/** The row and the column at (x, y) of cells of this size; null outside of them. */
export function cellAt(x, y, { width, height }, rows, columns) {
  const [row, column] = [Math.floor(y / height), Math.floor(x / width)];
  return row >= 0 && column >= 0 && row < rows && column < columns ? [row, column] : null;
}

/** The row and the column of a plot whole of cells that are nearest to the pointer. */
export function cellUnder({ clientX, clientY }, plot, rows, columns) {
  const { left, top, width, height } = plot.getBoundingClientRect();
  const part = (offset, size, count) => held(Math.floor((offset / size) * count), count);
  return [part(clientY - top, height, rows), part(clientX - left, width, columns)];
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** The cell to which an arrow key leads from one; null for any other key. */
export function stepped(key, [row, column], rows, columns) {
  const step = STEPS[key];
  return step ? [held(row + step[0], rows), held(column + step[1], columns)] : null;
}

export function tileOf(layer, head) {
  const tile = element("button", "tile");
  tile.append(document.createElement("canvas"));
  tile.dataset.place = JSON.stringify({ layer, head });
  tile.title = say("Layer {layer}, head {head}", { layer: layer + 1, head: head + 1 });
  tile.setAttribute("aria-label", tile.title);
  return tile;
}

const MOST_HEADINGS = 12; // more would run into each other

/** A heading a head, or every second and so on where there are many, and for each layer a label and its tiles. */
export function byLayer(grid, { layers, heads, paths = [] }) {
  const step = Math.ceil(heads / MOST_HEADINGS);
  grid.append(element("span", ""));
  for (let head = 0; head < heads; head += 1) grid.append(element("span", "head", head % step ? "" : `h${head + 1}`));
  return Array.from({ length: layers }, (_, layer) => {
    const row = Array.from({ length: heads }, (_, head) => tileOf(layer, head));
    const label = element("span", "layer", `L${layer + 1}`);
    label.title = paths[layer] ?? "";
    label.dataset.layer = layer;
    grid.append(label, ...row);
    return row;
  }).flat();
}

export const paint = (tile, bytes, table, width) => paintPixels(tile.firstChild, coloured(bytes, table), width);

/** Shrunk below one device pixel a cell, nearest-neighbour would drop cells: average them instead. */
export function smooth(tiles, width, height) {
  // All are measured before any is changed: the other way round, the page would be laid out once a tile.
  const most = tiles.map((tile) => Math.max(width / tile.clientWidth, height / tile.clientHeight));
  tiles.forEach((tile, i) => tile.firstChild.classList.toggle("shrunk", most[i] > devicePixelRatio));
}

export function mark(tiles, chosen) {
  tiles.forEach((tile, i) => {
    tile.setAttribute("aria-pressed", i === chosen);
    tile.tabIndex = i === chosen ? 0 : -1;
  });
}
