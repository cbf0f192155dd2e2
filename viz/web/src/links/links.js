import { hearChoices, hearHeads, relabelled } from "../shared/events.js";
import { arrowKeys, hearPointing, mounted, unmount } from "../shared/mounted.js";
import { unpack } from "../shared/packed.js";
import { drawn, leastType } from "../shared/picture.js";
import { say, sayMany } from "../shared/say.js";
import { chosenLinks, drawLinks, layout } from "./layout.js";

function chip(text, label, pressed, colour) {
  const made = document.createElement("button");
  made.textContent = text;
  made.setAttribute("aria-label", label);
  made.setAttribute("aria-pressed", pressed);
  if (colour) made.style.setProperty("--colour", colour);
  return made;
}

/** One chip a head: the chosen one is always on, any other can be drawn beside it. */
function drawLegend(legend, { head, beside, colours }, { drawn, total }, choose) {
  const focused = [...legend.children].indexOf(legend.getRootNode().activeElement);
  const others = colours.map((_, i) => i).filter((i) => i !== head);
  const chips = colours.map((colour, i) => {
    const on = i === head || beside.includes(i);
    const made = chip(`h${i + 1}`, say("Draw head {head} too", { head: i + 1 }), on, beside.length ? colour : "");
    made.classList.toggle("chosen", i === head);
    made.disabled = i === head;
    made.onclick = () => choose(on ? beside.filter((one) => one !== i) : [...beside, i].sort((a, b) => a - b));
    return made;
  });
  const all = chip(beside.length ? say("only one") : say("all"), say("Draw all heads, or only the chosen one"), false, "");
  all.onclick = () => choose(beside.length ? [] : others);
  const note = document.createElement("span");
  const lines = () => sayMany("{count} line", "{count} lines", total);
  note.textContent = drawn < total ? say("the strongest {drawn} of {total} lines", { drawn, total }) : lines();
  legend.replaceChildren(...chips, all, note);
  legend.children[focused]?.focus?.();
}

const OTHER = { query: "key", key: "query" };

const textAt = ({ x, y, anchor }, more, text) =>
  drawn("text", { x, y, "text-anchor": anchor, "dominant-baseline": "central", ...more }, text);

/** The drawing without its lines: headings, and every token as a button. */
function build(root, view, header) {
  const place = layout(header, leastType(root));
  const legend = document.createElement("div");
  legend.className = "legend";
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  const svg = drawn("svg", { viewBox: `0 0 ${place.width} ${place.height}`, role: "group" });
  svg.style.minWidth = header.horizontal ? `${0.8 * place.width}px` : "0"; // A long line is scrolled, not shrunk away.
  svg.style.fontSize = `${place.fontSize}px`;
  const lines = drawn("g", { class: "lines" });
  const numbers = drawn("g", { class: "numbers" });
  const headings = [say("query (attends)"), say("key (attended to)")].map((text, i) =>
    textAt(place.headings[i], { class: "heading" }, text),
  );
  const token = (side) => (text, i) =>
    textAt(place.token(side, i), { class: i % place.named ? "token unnamed" : "token", role: "button", "data-side": side, "data-index": i }, text);
  const tokens = { query: header.queries.map(token("query")), key: header.keys.map(token("key")) };
  svg.append(lines, ...headings, ...tokens.query, ...tokens.key, numbers);
  svg.dataset.unnamed = svg.querySelectorAll(".unnamed").length;
  scroll.append(svg);
  root.className = "links";
  root.append(legend, scroll);
  root.picture = { of: svg };
  const sized = new ResizeObserver(() => view.waits && draw(view, {}));
  sized.observe(root);
  const deaf = [hearHeads(root, (chosen) => view.header.fixed || follow(view, chosen)), hearChoices({ scale: (scale) => draw(view, { scale }) })];
  const dispose = () => [sized.disconnect(), ...deaf.map((end) => end())];
  return { place, legend, svg, lines, numbers, tokens, dispose };
}

/** The lines, after a `change` of the header; out of sight they wait. */
function draw(view, change) {
  const header = Object.assign(view.header, change);
  view.waits = !view.root.clientWidth;
  if (view.waits) return;
  const { links: chosen, total } = chosenLinks(header, view.bytes);
  view.several = header.beside.length > 0;
  view.paths = drawLinks(view.lines, chosen, view.place, header);
  drawLegend(view.legend, header, { drawn: chosen.length, total }, (beside) => {
    draw(view, { beside }); // At once, before Python has answered.
    view.tell("beside", { heads: beside });
  });
  light(view, null);
  view.svg.setAttribute("aria-label", `${header.label}. ${header.alt}`);
  view.svg.dataset.painted = `${header.label} ${header.head}`;
}

/** A head chosen in the overview, from its bytes: drawn now, before Python has answered. */
function follow(view, { layer, head, rows, columns, ofLayer, isSent }) {
  const { queries, keys, beside, pattern } = view.header;
  if (isSent) {
    view.bytes = view.sent.bytes;
    draw(view, view.sent.header);
    return;
  }
  if (rows !== queries.length || columns !== keys.length) return; // A long map's tiles are coarser than it.
  view.bytes = ofLayer;
  draw(view, { head, beside: beside.filter((one) => one !== head), label: relabelled(pattern, { layer, head }), alt: "" });
}

/** Highlight the links of a token, or of the pinned ones when `spot` is null. */
function light(view, spot) {
  const spots = spot ? [spot] : view.pins;
  const on = ({ q, k }) => spots.every(({ side, index }) => (side === "query" ? q : k) === index);
  view.lines.classList.toggle("dim", spots.length > 0);
  for (const path of view.paths) path.classList.toggle("on", spots.length > 0 && on(path.link));
  for (const side of ["query", "key"]) {
    view.tokens[side].forEach((token, index) =>
      token.classList.toggle("on", spots.some((one) => one.side === side && one.index === index)),
    );
  }
  const [first] = spots;
  const weighed = first && !view.several ? view.paths.filter((path) => on(path.link)) : [];
  view.numbers.replaceChildren(
    ...weighed.map(({ link }) => {
      const at = view.place.number(OTHER[first.side], first.side === "query" ? link.k : link.q);
      return textAt(at, {}, `${Math.round(link.weight * 100)}%`);
    }),
  );
}

function spotOf(event) {
  const token = event.target.closest?.(".token");
  return token ? { side: token.dataset.side, index: Number(token.dataset.index) } : null;
}

function listen(view, horizontal, pin) {
  const { svg, tokens } = view;
  hearPointing(svg, (event) => light(view, spotOf(event)), () => light(view, null));
  svg.onclick = (event) => {
    const spot = spotOf(event);
    if (spot) pin(spot);
  };
  svg.onkeydown = (event) => {
    const spot = spotOf(event);
    if (!spot) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pin(spot);
    }
    const other = tokens.query.length; // one press across the gap
    arrowKeys(event, [...tokens.query, ...tokens.key], ...(horizontal ? [other, 1] : [1, other]));
  };
}

/** Make one token of each side reachable by Tab; arrow keys go on from there. */
function reachable({ tokens, pins }) {
  for (const side of ["query", "key"]) {
    const pinned = pins.find((one) => one.side === side)?.index;
    tokens[side].forEach((token, i) => {
      token.setAttribute("tabindex", i === (pinned ?? 0) ? 0 : -1);
      token.setAttribute("aria-pressed", i === pinned);
    });
  }
}

export default function links({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const identity = JSON.stringify([header.queries, header.keys, header.horizontal]);
  const view = mounted(parentElement, identity, (root, made) => build(root, made, header));
  Object.assign(view, { header, sent: { header: { ...header }, bytes: body }, bytes: body, tell: setTriggerValue });
  view.pins = [["query", header.pinned[0]], ["key", header.pinned[1]]]
    .filter(([, index]) => index !== null)
    .map(([side, index]) => ({ side, index }));
  reachable(view);
  draw(view, {});
  listen(view, header.horizontal, (spot) => setTriggerValue("pin", spot));
  return () => unmount(parentElement);
}
