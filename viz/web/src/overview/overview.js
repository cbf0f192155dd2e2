import { announceHead } from "../shared/heads.js";
import { hearChoices } from "../shared/choices.js";
import { unpack } from "../shared/packed.js";
import { lookup } from "../shared/colours.js";
import { arrowKeys, mounted, unmount } from "../shared/mounted.js";
import { byLayer, element, mark, paint, smooth, tileOf } from "../shared/tiles.js";

/** The tiles in a given order, each above its place and value. */
function inOrder(grid, order) {
  grid.classList.add("ordered");
  return order.map(({ layer, head, value, shown }) => {
    const cell = element("div", shown ? "cell" : "cell out");
    const tile = tileOf(layer, head);
    cell.append(tile, element("span", "value", `L${layer + 1} H${head + 1} · ${value}`));
    grid.append(cell);
    return tile;
  });
}

function build(root, view, header) {
  const grid = element("div", "grid");
  grid.setAttribute("role", "group");
  grid.style.setProperty("--heads", header.heads);
  grid.style.setProperty("--layers", header.layers);
  root.className = "overview";
  root.append(grid);
  const tiles = header.order.length ? inOrder(grid, header.order) : byLayer(grid, header);
  return { grid, tiles, dispose: hearChoices({ scale: (scale) => colour(view, { ...view.header, scale }) }) };
}

function colour({ tiles, bytes }, { stops, masked, scale, keys }) {
  const table = lookup(stops, masked, scale);
  tiles.forEach((tile, i) => paint(tile, bytes[i], table, keys));
}

/** Where the picture of a head stands below the tiles, bring it into sight. */
function showPicture() {
  const [tiles, picture] = [".st-key-overview", ".st-key-head-picture"].map((one) => document.querySelector(one)?.getBoundingClientRect());
  const stands = tiles && picture && picture.top >= tiles.bottom;
  if (stands && picture.top > innerHeight / 2) document.querySelector(".st-key-head-picture").scrollIntoView();
}

export default function overview({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const { layers, heads, queries, keys } = header;
  const identity = JSON.stringify([layers, heads, header.order]);
  const view = mounted(parentElement, identity, (root, made) => build(root, made, header));
  const { grid, tiles } = view;
  const indices = tiles.map((tile) => {
    const { layer, head } = JSON.parse(tile.dataset.place);
    return layer * heads + head;
  });
  const size = queries * keys;
  grid.setAttribute("aria-label", header.label);
  Object.assign(view, { header, bytes: indices.map((at) => body.subarray(at * size, (at + 1) * size)) });
  colour(view, header);
  smooth(tiles, keys, queries);
  mark(tiles, indices.indexOf(header.layer * heads + header.head));
  indices.forEach((at, i) => tiles[i].classList.toggle("changed", header.changed.includes(at)));
  grid.onclick = (event) => {
    const tile = event.target.closest(".tile");
    if (!tile) return;
    mark(tiles, tiles.indexOf(tile)); // At once, before Python has answered.
    const place = JSON.parse(tile.dataset.place);
    const layer = body.subarray(place.layer * heads * size, (place.layer + 1) * heads * size);
    setTriggerValue("pick", place);
    showPicture();
    announceHead(grid, { ...place, rows: queries, columns: keys, bytes: view.bytes[tiles.indexOf(tile)], ofLayer: layer });
  };
  grid.onkeydown = (event) => arrowKeys(event, tiles, heads);
  grid.dataset.painted = header.label;
  return () => unmount(parentElement);
}
