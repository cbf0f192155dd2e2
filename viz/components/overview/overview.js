import { unpack } from "../shared/packed.js";
import { lookup } from "../shared/colours.js";
import { arrowKeys, mounted, unmount } from "../shared/mounted.js";

function element(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

function tileOf(layer, head) {
  const tile = element("button", "tile");
  tile.append(document.createElement("canvas"));
  tile.dataset.place = JSON.stringify({ layer, head });
  tile.setAttribute("aria-label", `Layer ${layer + 1}, head ${head + 1}`);
  tile.title = `Layer ${layer + 1}, head ${head + 1}`;
  return tile;
}

/** A heading a head, and for each layer a label and its tiles. */
function byLayer(grid, { layers, heads }) {
  grid.append(element("span", ""));
  for (let head = 1; head <= heads; head += 1) grid.append(element("span", "head", `h${head}`));
  return Array.from({ length: layers }, (_, layer) => {
    const row = Array.from({ length: heads }, (_, head) => tileOf(layer, head));
    grid.append(element("span", "layer", `L${layer + 1}`), ...row);
    return row;
  }).flat();
}

/** The tiles in a given order, each above its place and value. */
function inOrder(grid, order) {
  grid.classList.add("ordered");
  return order.map(({ layer, head, value, shown }) => {
    const cell = element("div", shown ? "cell" : "cell out");
    const tile = tileOf(layer, head);
    cell.append(tile, element("span", "value", `${layer + 1}.${head + 1}  ${value}`));
    grid.append(cell);
    return tile;
  });
}

function build(root, header) {
  const grid = element("div", "grid");
  grid.setAttribute("role", "group");
  grid.style.setProperty("--heads", header.heads);
  root.append(grid);
  const tiles = header.order.length ? inOrder(grid, header.order) : byLayer(grid, header);
  return { grid, tiles };
}

function paint(tile, bytes, table, width, height) {
  const canvas = tile.firstChild;
  canvas.width = width;
  canvas.height = height;
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < bytes.length; i += 1) pixels[i] = table[bytes[i]];
  canvas.getContext("2d").putImageData(image, 0, 0);
  // Shrunk below one device pixel a cell, nearest-neighbour would drop cells: average them instead.
  canvas.classList.toggle("shrunk", Math.max(width / tile.clientWidth, height / tile.clientHeight) > devicePixelRatio);
}

function mark(tiles, chosen) {
  tiles.forEach((tile, i) => {
    tile.setAttribute("aria-pressed", i === chosen);
    tile.tabIndex = i === chosen ? 0 : -1;
  });
}

export default function overview({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const { layers, heads, queries, keys } = header;
  const identity = JSON.stringify([layers, heads, header.order]);
  const { grid, tiles } = mounted(parentElement, identity, (root) => build(root, header));
  const indices = tiles.map((tile) => {
    const { layer, head } = JSON.parse(tile.dataset.place);
    return layer * heads + head;
  });
  const table = lookup(header.stops, header.masked, header.scale);
  const size = queries * keys;
  grid.setAttribute("aria-label", header.label);
  indices.forEach((at, i) => paint(tiles[i], body.subarray(at * size, (at + 1) * size), table, keys, queries));
  mark(tiles, indices.indexOf(header.layer * heads + header.head));
  indices.forEach((at, i) => tiles[i].classList.toggle("changed", header.changed.includes(at)));
  grid.onclick = (event) => {
    const tile = event.target.closest(".tile");
    if (!tile) return;
    mark(tiles, tiles.indexOf(tile)); // At once, before Python has answered.
    setTriggerValue("pick", JSON.parse(tile.dataset.place));
  };
  grid.onkeydown = (event) => arrowKeys(event, tiles, heads);
  grid.dataset.painted = header.label;
  return () => unmount(parentElement);
}
