import { announceHead, hearChoices, isShortcut } from "../shared/events.js";
import { unpack } from "../shared/packed.js";
import { lookup } from "../shared/picture.js";
import { arrowKeys, mounted, unmount } from "../shared/mounted.js";
import { say } from "../shared/say.js";
import { element } from "../shared/element.js";
import { byLayer, mark, paint, smooth, tileOf } from "../shared/grid.js";

/** The tiles in a given order, each above its place and value. */
function inOrder(grid, order) {
  grid.classList.add("ordered");
  return order.map(({ layer, head, value, shown }) => {
    const cell = element("div", shown ? "cell" : "cell out");
    const tile = tileOf(layer, head);
    cell.append(tile, element("span", "value", `${layer + 1}.${head + 1} ${value}`));
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

const NARROW = "(max-width: 1000px)"; // There the words of the tour stay above what is scrolled, as the page's style sheet says.

/** A new step of the tour speaks of the picture of a head: where that is out of sight, bring it there, under the words. */
function followTour(view) {
  if (!matchMedia(NARROW).matches) return;
  const step = document.querySelector(".st-key-tour")?.textContent.match(/\d+/)?.[0];
  const picture = document.querySelector(".st-key-head-picture");
  if (step && step !== view.step && picture?.getBoundingClientRect().top > innerHeight / 2) picture.scrollIntoView();
  view.step = step;
}

/** Switch heads off, or on where all of them are off: at once, before Python has answered. */
function toggle(view, places) {
  const names = places.map(String);
  const allOff = names.every((name) => view.off.has(name));
  for (const place of places) allOff ? view.off.delete(String(place)) : view.off.set(String(place), place);
  for (const tile of view.tiles) if (names.includes(String(placeOf(tile)))) cross(tile, !allOff);
  view.tell([...view.off.values()]);
}

function cross(tile, crossed) {
  tile.classList.toggle("changed", crossed);
  tile.setAttribute("aria-description", crossed ? say("changed") : "");
}

/** Switch what a click means to: a tile with Alt or while pressing switches, or the name of a layer. */
function switchBy(view, { target, altKey }) {
  const { switches, heads } = view.header;
  if (!switches || !(altKey || switches.pressing)) return false;
  const [tile, label] = [target.closest(".tile"), target.closest(".layer")];
  if (tile) toggle(view, [placeOf(tile)]);
  else if (label) toggle(view, placesOf(Number(label.dataset.layer), heads));
  return Boolean(tile || label);
}

/** The key x switches the head in the focus, with Shift all heads of its layer. */
function switchByKey(view, event) {
  const { switches, heads } = view.header;
  const tile = event.target.closest(".tile");
  if (!switches || !tile || event.key.toLowerCase() !== "x" || isShortcut(event)) return;
  toggle(view, event.shiftKey ? placesOf(placeOf(tile)[0], heads) : [placeOf(tile)]);
}

const placeOf = (tile) => Object.values(JSON.parse(tile.dataset.place));
const placesOf = (layer, heads) => Array.from({ length: heads }, (_, head) => [layer, head]);

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
  requestAnimationFrame(() => followTour(view)); // Once the picture beside it stands.
  Object.assign(view, { header, bytes: indices.map((at) => body.subarray(at * size, (at + 1) * size)) });
  colour(view, header);
  smooth(tiles, keys, queries);
  mark(tiles, indices.indexOf(header.layer * heads + header.head));
  indices.forEach((at, i) => cross(tiles[i], header.changed.includes(at)));
  view.off = new Map((header.switches?.off ?? []).map((place) => [String(place), place]));
  view.tell = (off) => setTriggerValue("off", off);
  grid.classList.toggle("pressing", Boolean(header.switches?.pressing));
  grid.onclick = (event) => {
    if (switchBy(view, event)) return;
    const tile = event.target.closest(".tile");
    if (!tile) return;
    mark(tiles, tiles.indexOf(tile)); // At once, before Python has answered.
    const place = JSON.parse(tile.dataset.place);
    const layer = body.subarray(place.layer * heads * size, (place.layer + 1) * heads * size);
    setTriggerValue("pick", place);
    showPicture();
    const isSent = place.layer === header.layer && place.head === header.head;
    announceHead(grid, { ...place, isSent, rows: queries, columns: keys, bytes: view.bytes[tiles.indexOf(tile)], ofLayer: layer });
  };
  grid.onkeydown = (event) => {
    arrowKeys(event, tiles, heads);
    switchByKey(view, event);
  };
  grid.dataset.painted = header.label;
  return () => unmount(parentElement);
}
