import { inked, lookup } from "../shared/picture.js";
import { hearChoices, hearHeads, relabelled } from "../shared/events.js";
import { arrowKeys, hearPointing, mounted, unmount } from "../shared/mounted.js";
import { FULL, MASKED, unpack } from "../shared/packed.js";
import { paragraph } from "../shared/paragraph.js";
import { say } from "../shared/say.js";

/** What shades the tokens of `side`, a byte each: its row or column at the spot on the other side. */
export function shades(side, spot, bytes, queries, keys) {
  if (side === "key") return bytes.subarray(spot * keys, (spot + 1) * keys);
  return Array.from({ length: queries }, (_, query) => bytes[query * keys + spot]);
}

/** The mean byte of each key over the queries that may attend to it: near the mean weight, but not to be read. */
export function nearMeans(bytes, queries, keys) {
  return Array.from({ length: keys }, (_, key) => {
    const allowed = shades("query", key, bytes, queries, keys).filter((byte) => byte !== MASKED);
    return allowed.length ? Math.round(allowed.reduce((sum, byte) => sum + byte) / allowed.length) : MASKED;
  });
}

/** A byte in words, for the tooltip and for screen readers. */
export const inWords = (byte) => (byte === MASKED ? say("masked") : `${Math.round((byte / FULL) * 100)}%`);

const SIDES = ["query", "key"];
const OTHER = { query: "key", key: "query" };

/** One side: its pieces know which they are. */
function sideOf(side, text) {
  const made = paragraph(text);
  made.buttons.forEach((button, index) => Object.assign(button.dataset, { side, index }));
  return made;
}

function build(root, view, header) {
  root.className = "texts";
  root.setAttribute("role", "group");
  const sides = Object.fromEntries(SIDES.map((side) => [side, sideOf(side, header[side])]));
  root.append(...SIDES.map((side) => sides[side].part));
  root.picture = { of: root };
  const deaf = [hearHeads(root, (chosen) => view.header.fixed || follow(view, chosen)), hearChoices({ scale: (scale) => draw(view, { scale }) })];
  return { sides, dispose: () => deaf.forEach((end) => end()) };
}

/** The shades, after a `change` of the header. */
function draw(view, change) {
  const header = Object.assign(view.header, change);
  view.table = lookup(header.stops, header.masked, header.scale);
  view.root.setAttribute("aria-label", `${header.label}. ${header.alt}`);
  shade(view, resting(view));
}

/** A head chosen in the overview, from its bytes: drawn now, before Python has answered. */
function follow(view, chosen) {
  const { query, key, pattern } = view.header;
  if (chosen.isSent) {
    take(view, view.sent.bytes);
    draw(view, view.sent.header);
    return;
  }
  if (chosen.rows !== query.tokens.length || chosen.columns !== key.tokens.length) return; // Its tiles are coarser.
  take(view, chosen.bytes);
  draw(view, { label: relabelled(pattern, chosen), alt: "" });
}

/** The bytes of a head; those of its mean stand behind them where Python has sent it. */
function take(view, bytes) {
  const [queries, keys] = SIDES.map((side) => view.sides[side].buttons.length);
  view.bytes = bytes.subarray(0, queries * keys);
  view.means = bytes.length > view.bytes.length ? bytes.subarray(queries * keys) : null;
}

/** Shade the text across from the spot by its weights; with no spot, the keys by the mean they receive. */
function shade(view, spot) {
  const { sides, header, bytes, means, table } = view;
  const [queries, keys] = SIDES.map((side) => sides[side].buttons.length);
  const shaded = spot ? OTHER[spot.side] : "key";
  const levels = spot ? shades(shaded, spot.index, bytes, queries, keys) : (means ?? nearMeans(bytes, queries, keys));
  const read = spot || means ? inWords : () => "";
  for (const side of SIDES) {
    const on = side === shaded;
    sides[side].buttons.forEach((button, i) => {
      button.classList.toggle("spot", spot?.side === side && spot.index === i);
      Object.assign(button.style, on ? inked(table[levels[i]], header.inks) : { background: "", color: "" });
      button.title = on ? read(levels[i]) : "";
    });
    sides[side].says.classList.toggle("hint", !on);
    sides[side].says.textContent = on ? caption(header, spot) : say("hover over a token, or click to pin it");
  }
}

function caption(header, spot) {
  if (!spot) return say("shaded by the mean over all queries");
  const token = `\u2068${header[spot.side].tokens[spot.index].text}\u2069`;
  return spot.side === "query"
    ? say("shaded by how much “{token}” attends to it", { token })
    : say("shaded by how much it attends to “{token}”", { token });
}

const spotOf = ({ target }) => {
  const { side, index } = target.closest?.("button")?.dataset ?? {};
  return side ? { side, index: Number(index) } : null;
};

/** The spot that stays when nothing is hovered: the pinned query, or else the pinned key. */
function resting({ header }) {
  const side = SIDES.find((_, i) => header.pinned[i] !== null);
  return side ? { side, index: header.pinned[SIDES.indexOf(side)] } : null;
}

function mark(view) {
  SIDES.forEach((side, at) => {
    const pinned = view.header.pinned[at];
    view.sides[side].buttons.forEach((button, i) => {
      button.setAttribute("aria-pressed", i === pinned);
      button.tabIndex = i === (pinned ?? 0) ? 0 : -1;
    });
  });
}

export default function text({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const identity = JSON.stringify([header.query, header.key]);
  const view = mounted(parentElement, identity, (root, made) => build(root, made, header));
  Object.assign(view, { header, sent: { header: { ...header }, bytes: body } });
  take(view, body);
  const { root, sides } = view;
  mark(view);
  draw(view, {});
  const look = (spot) => spot && shade(view, spot);
  hearPointing(root, (event) => look(spotOf(event)), () => shade(view, resting(view)));
  root.onclick = (event) => {
    const spot = spotOf(event);
    if (spot) setTriggerValue("pin", spot);
  };
  root.onkeydown = (event) => arrowKeys(event, sides[spotOf(event)?.side]?.buttons ?? [], 1);
  return () => unmount(parentElement);
}
