import { unpack, FULL } from "../shared/packed.js";
import { arrowKeys, hearPointing, mounted, unmount } from "../shared/mounted.js";
import { backward } from "../shared/paragraph.js";
import { previewTyping } from "./preview.js";

const SIDES = ["source", "target"];
const OTHER = { source: "target", target: "source" };
const LEAST = 0.02; // Of a weight that is drawn for one word.
const FAINT = 0.35; // The strength of the links while no word is looked at.
const STRONG = 0.5; // From which share on a word that is met is filled, so that its letters are light.
const CARD = ".st-key-wordcard";
const QUOTED = /\u2068([^\u2069]*)\u2069/;

/** The words of one side, a button each; a word that follows without a space stands close to the one before. */
function lineOf(side, { label, words }) {
  const line = document.createElement("div");
  line.className = `words ${side}`;
  line.setAttribute("role", "group");
  line.setAttribute("aria-label", label);
  line.dir = backward(words.map(({ text }) => text)) ? "rtl" : "ltr";
  const buttons = words.map(({ text, space, special, doubt, note }, index) => {
    const button = document.createElement("button");
    button.textContent = text; // Tokens are data: textContent only.
    button.title = note ?? "";
    button.classList.toggle("joined", !space && index > 0);
    button.classList.toggle("special", Boolean(special));
    button.classList.toggle("unsure", Boolean(doubt));
    if (doubt) button.style.setProperty("--doubt", doubt);
    Object.assign(button.dataset, { side, index });
    line.append(space && index > 0 ? " " : "", button); // For who copies or hears it; the style sheet sets them apart.
    return button;
  });
  return { line, buttons };
}

function build(root, view, header) {
  root.className = "sentence";
  const count = header.source.words.length + header.target.words.length;
  root.dataset.size = count > 90 ? "small" : count > 36 ? "medium" : "large";
  const sides = Object.fromEntries(SIDES.map((side) => [side, lineOf(side, header[side])]));
  const curves = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  curves.setAttribute("aria-hidden", "true");
  const between = document.createElement("div");
  between.className = "between";
  const says = document.createElement("p");
  says.className = "says";
  says.setAttribute("role", "status");
  const [said, note, toCard] = ["span", "small", "button"].map((tag) => document.createElement(tag));
  toCard.onclick = () => document.querySelector(CARD)?.scrollIntoView({ behavior: "smooth", block: "center" });
  says.append(said, " ", note, " ", toCard);
  root.append(curves, sides.source.line, between, sides.target.line, says);
  root.picture = { of: root, without: ".says :is(small, button)" };
  const watch = new ResizeObserver(() => view.header && show(view, view.spot ?? resting(view)));
  watch.observe(root);
  return { sides, curves, said, note, toCard, dispose: () => watch.disconnect() };
}

/** The share of a word of the translation that lies on a word of the sentence, 0 to 1. */
const shareOf = ({ bytes, header }, target, source) => bytes[target * header.source.words.length + source] / FULL;

/** The links to draw: those of the word looked at, or faintly the strongest of every word of the translation. */
function linksOf(view, spot) {
  const { source, target } = view.header;
  const pair = (index, other) => (spot?.side === "source" ? [other, index] : [index, other]);
  const all = (index) => view.header[OTHER[spot.side]].words.map((_, other) => pair(index, other));
  const strongest = (row) => {
    const shares = source.words.map((_, column) => shareOf(view, row, column));
    return [row, shares.indexOf(Math.max(...shares))];
  };
  const pairs = spot ? all(spot.index) : target.words.map((_, row) => strongest(row));
  const found = pairs.map(([row, column]) => ({ row, column, share: shareOf(view, row, column) }));
  return found.filter(({ share }) => share >= (spot ? LEAST : STRONG)).sort((one, other) => one.share - other.share);
}

function curveOf(view, frame, { row, column, share }, strength) {
  const from = view.sides.source.buttons[column].getBoundingClientRect();
  const to = view.sides.target.buttons[row].getBoundingClientRect();
  const zoom = view.curves.currentCSSZoom ?? 1; // Of a slide in a file.
  const [x, y] = [from.x + from.width / 2 - frame.x, from.bottom - frame.y].map((at) => at / zoom);
  const [ends, below] = [to.x + to.width / 2 - frame.x, to.y - frame.y].map((at) => at / zoom);
  const middle = (y + below) / 2;
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", `M${x} ${y}C${x} ${middle} ${ends} ${middle} ${ends} ${below}`);
  path.setAttribute("stroke-width", (1 + 7 * share * strength).toFixed(2));
  path.setAttribute("stroke-opacity", (Math.sqrt(share) * strength).toFixed(3));
  return path;
}

/** A sentence with the words that it names in the accent colour. */
function sayIn(host, text) {
  host.replaceChildren(
    ...text.split(QUOTED).map((part, at) => {
      if (at % 2 === 0) return part;
      const word = document.createElement("strong");
      word.textContent = `\u2068${part}\u2069`;
      return word;
    }),
  );
}

/** Show what a word looked at, or was looked at by. */
function show(view, spot) {
  const { sides, header, curves } = view;
  const links = linksOf(view, spot);
  const frame = view.root.getBoundingClientRect();
  curves.replaceChildren(...links.map((link) => curveOf(view, frame, link, spot ? 1 : FAINT)));
  const met = new Map(links.map(({ row, column, share }) => [spot?.side === "source" ? row : column, share]));
  for (const side of SIDES) {
    sides[side].buttons.forEach((button, index) => {
      const share = spot && side === OTHER[spot.side] ? (met.get(index) ?? 0) : 0;
      button.classList.toggle("spot", spot?.side === side && spot.index === index);
      button.classList.toggle("met", share > 0);
      button.classList.toggle("strong", share >= STRONG);
      button.style.setProperty("--share", share);
    });
  }
  sayIn(view.said, spot ? header[spot.side].says[spot.index] : header.hint);
  view.note.textContent = view.noted;
  view.toCard.textContent = header.card;
  view.toCard.hidden = !header.card || spot?.side !== "target" || spot.index !== header.pinned.target;
}

const spotAt = ({ target }) => {
  const { side, index } = target.closest?.("button")?.dataset ?? {};
  return side ? { side, index: Number(index) } : null;
};

/** What is shown while no word is pointed at: the pinned word of the translation, or else of the sentence. */
function resting({ header: { pinned } }) {
  const side = ["target", "source"].find((one) => pinned[one] !== null);
  return side ? { side, index: pinned[side] } : null;
}

/** What tells one translation from another. */
const textsOf = ({ source, target }) => JSON.stringify([source, target].map(({ words }) => words.map(({ text }) => text)));

/** Draw what is packed in `data`; `pin(spot)` hears of a click on a word; a `note` stands behind what is said. */
function draw(parent, data, pin, note = "") {
  const { header, body } = unpack(data);
  const identity = JSON.stringify([header.source.words, header.target.words]);
  const view = mounted(parent, identity, (root, made) => build(root, made, header));
  Object.assign(view, { header, bytes: body, spot: null, noted: note });
  const { root, sides } = view;
  for (const side of SIDES) {
    sides[side].buttons.forEach((button, index) => {
      button.setAttribute("aria-pressed", header.pinned[side] === index);
      button.tabIndex = index === (header.pinned[side] ?? 0) ? 0 : -1;
    });
  }
  const look = (spot) => {
    view.spot = spot;
    show(view, spot ?? resting(view));
  };
  look(spotAt({ target: root.getRootNode().activeElement ?? root }));
  hearPointing(root, (event) => look(spotAt(event)), () => look(null));
  root.onclick = (event) => {
    const spot = spotAt(event);
    if (spot) pin(spot);
  };
  root.onkeydown = (event) => arrowKeys(event, sides[spotAt(event)?.side]?.buttons ?? [], 1);
}

const [PREVIEW, CLICKED] = [Symbol("preview"), Symbol("clicked")];

/** A click on a word that only the preview knows: it is pinned as soon as the page has translated the same text. */
function pinClicked(parent, header, pin) {
  const { spot, texts, drawn } = parent[CLICKED] ?? {};
  if (texts !== textsOf(header)) {
    if (drawn !== textsOf(header)) delete parent[CLICKED];
    return;
  }
  delete parent[CLICKED];
  if (header.pinned[spot.side] !== spot.index) pin(spot);
}

export default function sentence({ data, parentElement, setTriggerValue }) {
  const pin = (spot) => setTriggerValue("pin", spot);
  draw(parentElement, data, pin);
  const { header } = unpack(data);
  const { preview, headPicked } = header;
  pinClicked(parentElement, header, pin);
  document.documentElement.toggleAttribute("data-head-picked", headPicked);
  parentElement[PREVIEW]?.dispose();
  parentElement[PREVIEW] = preview && previewTyping(preview, {
    show: (bytes) => {
      const [texts, drawn] = [textsOf(unpack(bytes).header), textsOf(header)];
      delete parentElement[CLICKED];
      draw(parentElement, bytes, (spot) => { parentElement[CLICKED] = { spot, texts, drawn }; }, preview.note);
    },
    restore: () => draw(parentElement, data, pin),
  });
  return () => {
    unmount(parentElement);
    queueMicrotask(() => {
      if (parentElement.isConnected) return;
      parentElement[PREVIEW]?.dispose();
      document.documentElement.removeAttribute("data-head-picked");
    });
  };
}
