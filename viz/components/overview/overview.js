import { announceHead } from "../shared/heads.js";
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
  smooth(tiles, keys, queries);
  mark(tiles, indices.indexOf(header.layer * heads + header.head));
  indices.forEach((at, i) => tiles[i].classList.toggle("changed", header.changed.includes(at)));
  grid.onclick = (event) => {
    const tile = event.target.closest(".tile");
    if (!tile) return;
    mark(tiles, tiles.indexOf(tile)); // At once, before Python has answered.
    const place = JSON.parse(tile.dataset.place);
    const at = (place.layer * heads + place.head) * size;
    setTriggerValue("pick", place);
    announceHead({ ...place, rows: queries, columns: keys, bytes: body.subarray(at, at + size) });
  };
  grid.onkeydown = (event) => arrowKeys(event, tiles, heads);
  grid.dataset.painted = header.label;
  return () => unmount(parentElement);
}
