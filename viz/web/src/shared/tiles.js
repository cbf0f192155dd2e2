import { element } from "./element.js";
import { coloured, paintPixels } from "./grid.js";
import { say } from "./say.js";

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
