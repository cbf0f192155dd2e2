import { lookup } from "../shared/picture.js";
import { listenToKeys } from "../shared/events.js";
import { arrowKeys, mounted, unmount } from "../shared/mounted.js";
import { unpack } from "../shared/packed.js";
import { say, written } from "../shared/say.js";
import { element } from "../shared/element.js";
import { byLayer, mark, paint, smooth } from "../shared/grid.js";
import { buildHead, layHead, readCell, showHead } from "./head.js";

const A_STOP = 700; // Milliseconds while playing.
const RESTS = 400; // Milliseconds without a key before a stop counts as chosen.

/** What stands above and below the slider: a bar as high as the model's belief, and the stop's name. */
function buildTicks(moments, go) {
  const ticks = element("div", "ticks");
  ticks.setAttribute("aria-hidden", "true");
  const most = Math.max(...moments.map(({ belief }) => belief));
  const made = moments.map(({ tick, belief, name }, i) => {
    const mark = element("span", "tick");
    const bar = element("span", "bar");
    bar.style.setProperty("--share", belief === null ? 0.05 : Math.max(0.05, belief / most));
    mark.append(bar, element("span", "name", tick));
    mark.title = name;
    mark.style.left = moments.length > 1 ? `${(100 * i) / (moments.length - 1)}%` : "0";
    mark.onclick = () => go(i, 0);
    return mark;
  });
  ticks.append(...made);
  return { ticks, made };
}

/** Play, a slider and its ticks. `show(stop)` draws; `settle(stop)` hears where one has come to rest. */
function buildSlider(root, moments, show, settle) {
  root.className = "player";
  const last = moments.length - 1;
  const again = moments[0].belief === null ? say("Play from the beginning") : say("Play from random weights");
  const play = element("button", "play", "");
  const slider = element("input", "");
  Object.assign(slider, { type: "range", min: 0, max: last, step: 1 });
  slider.setAttribute("aria-label", say("Training step"));
  const player = { step: -1, timer: 0, rest: 0 };
  player.go = (stop, rests = RESTS) => {
    const to = Math.min(Math.max(stop, 0), last);
    if (to !== player.step) {
      player.step = to;
      slider.value = to;
      slider.setAttribute("aria-valuetext", moments[to].name);
      made.forEach((mark, i) => mark.classList.toggle("now", i === to));
      playing(player.timer);
      show(to);
    }
    clearTimeout(player.rest);
    if (rests !== null) player.rest = setTimeout(() => settle(to), rests);
  };
  const { ticks, made } = buildTicks(moments, player.go);
  const playing = (on) => {
    play.textContent = on ? `❚❚ ${say("Pause")}` : `▶ ${player.step === last ? again : say("Play")}`;
  };
  player.pause = () => {
    clearInterval(player.timer);
    player.timer = 0;
    playing(false);
    settle(player.step);
  };
  player.play = () => {
    clearTimeout(player.rest);
    if (player.step === last) player.go(0, null);
    playing(true);
    player.timer = setInterval(() => {
      player.go(player.step + 1, null);
      if (player.step === last) player.pause();
    }, A_STOP);
  };
  player.toggle = () => (player.timer ? player.pause() : player.play());
  player.stop = () => (clearInterval(player.timer), clearTimeout(player.rest));
  play.onclick = player.toggle;
  slider.oninput = () => player.go(Number(slider.value));
  playing(false);
  const track = element("div", "track");
  track.append(ticks, slider);
  root.append(play, track);
  return player;
}

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
