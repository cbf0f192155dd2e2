import { lookup } from "../shared/picture.js";
import { listenToKeys } from "../shared/events.js";
import { arrowKeys, mounted, unmount } from "../shared/mounted.js";
import { unpack } from "../shared/packed.js";
import { say, written } from "../shared/say.js";
import { element } from "../shared/element.js";
import { byLayer, mark, paint, smooth } from "../shared/grid.js";
import { buildHead, layHead, readCell, showHead } from "./head.js";
import { buildSlider } from "./slider.js";

function percent(share) {
  if (share < 0.0001) return say("less than 0.01%");
  return written(`${share < 0.995 ? (100 * share).toPrecision(2) : 100}%`);
}

function buildWords(root) {
  const words = { where: element("div", "where"), written: element("div", "written") };
  words.written.dir = "auto";
  root.append(words.where, words.written);
  return words;
}

function showWords(words, { name, text, belief, quality }) {
  const gives = belief === null ? "" : say("a piece of the final translation is {share} probable", { share: percent(belief) });
  words.where.textContent = [name, quality, gives].filter(Boolean).join(" · ");
  words.written.hidden = text === null;
  words.written.textContent = text || say("(nothing)");
  words.written.title = text ?? "";
}

/** All stops of one sentence and one kind of attention, drawn once; the chosen head may change. */
function build(root, view, header) {
  root.className = "snapshots";
  const words = buildWords(root);
  const bar = element("div", "");
  const pictures = element("div", "pictures");
  root.append(bar, pictures);
  const grid = element("div", "grid");
  grid.setAttribute("role", "group");
  grid.style.setProperty("--heads", header.heads);
  const left = element("div", "left");
  left.append(grid);
  pictures.append(left);
  const tiles = byLayer(grid, header);
  const head = buildHead(pictures, header);
  const show = (stop) => {
    const started = performance.now();
    view.stop = stop;
    const { body, table, place, now } = view;
    const size = now.queries * now.keys;
    const at = (moment, one) => body.subarray((moment * tiles.length + one) * size, (moment * tiles.length + one + 1) * size);
    showWords(words, now.moments[stop]);
    tiles.forEach((tile, i) => paint(tile, at(stop, i), table, now.keys));
    showHead(head, at(stop, place), table, now);
    view.cells = now.moments.map((_, moment) => at(moment, place));
    if (head.cell) readCell(head, view.cells, stop, now);
    root.dataset.stop = now.moments[stop].tick;
    root.dataset.drew = (performance.now() - started).toFixed(2);
  };
  const player = buildSlider(bar, header.moments, show, (stop) => view.send("stop", stop));
  const choose = (place) => {
    view.place = place;
    mark(tiles, place);
    const [layer, head1] = [Math.floor(place / header.heads) + 1, (place % header.heads) + 1];
    head.title.textContent = say("{kind} · layer {layer}, head {head}", { kind: header.kind, layer, head: head1 });
    if (view.stop !== undefined) show(view.stop);
  };
  grid.onclick = (event) => {
    const tile = event.target.closest(".tile");
    if (!tile) return;
    choose(tiles.indexOf(tile)); // At once, before Python has answered.
    view.send("pick", JSON.parse(tile.dataset.place));
  };
  grid.onkeydown = (event) => arrowKeys(event, tiles, header.heads);
  head.onRead = () => readCell(head, view.cells, view.stop, view.now);
  const observer = new ResizeObserver(() => {
    layHead(head, view.now);
    smooth(tiles, header.keys, header.queries);
    if (view.stop !== undefined) show(view.stop);
  });
  observer.observe(pictures);
  const forget = listenToKeys(root, player, header.moments.length - 1);
  root.picture = { of: root, without: ".player, .reading" };
  root.film = { count: header.moments.length, seconds: 1.2, show: (stop) => player.go(stop, null) };
  return { grid, head, choose, player, show, dispose: () => (observer.disconnect(), forget(), player.stop()) };
}

/** Where the sequence begins, or from its first stop on, playing. */
function begin(player, { start, plays }) {
  const film = plays && !matchMedia("(prefers-reduced-motion: reduce)").matches;
  player.go(film ? 0 : start, null);
  if (film) player.play();
}

const named = ({ rows, columns }) => JSON.stringify([rows, columns]);

export default function snapshots({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const view = mounted(parentElement, header.id, (root, made) => build(root, made, header));
  view.send = (name, value) => setTriggerValue(name, value);
  const renamed = view.now && named(view.now) !== named(header);
  view.now = header;
  view.body = body;
  view.table = lookup(header.stops, header.masked, header.scale);
  view.grid.setAttribute("aria-label", say("{kind}: all layers and heads", { kind: header.kind }));
  if (renamed) layHead(view.head, header); // Before it is painted: laying it out clears it.
  view.choose(header.layer * header.heads + header.head);
  if (view.stop === undefined) begin(view.player, header);
  return () => unmount(parentElement);
}
