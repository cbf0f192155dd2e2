import { arrowKeys, mounted, unmount } from "../shared/mounted.js";
import { say } from "../shared/say.js";
import { element } from "../shared/element.js";

const MOST_NUMBERS = 8; // those of more layers would not fit into their blocks

/** One kind of attention: its name, and a block a layer. */
function buildKind({ kind, name, title, layers }, place, together) {
  const row = element("div", `kind ${kind}`);
  const label = element("button", "name", name);
  label.tabIndex = -1; // The blocks beside it choose the same with the keyboard.
  label.title = title;
  label.onclick = () => place({ kind });
  const blocks = Array.from({ length: layers }, (_, layer) => {
    const block = element("button", "block", layers > MOST_NUMBERS ? "" : String(layer + 1));
    block.title = together ? title : say("{kind}, layer {layer}", { kind: title, layer: layer + 1 });
    block.setAttribute("aria-label", block.title);
    block.place = together ? { kind } : { kind, layer };
    block.onclick = () => place(block.place);
    return block;
  });
  const line = element("div", "blocks");
  line.style.setProperty("--layers", layers);
  line.append(...blocks);
  row.append(label, line);
  return { row, label, blocks };
}

function buildHeads(heads, place) {
  const row = element("div", "kind heads");
  const blocks = Array.from({ length: heads }, (_, head) => {
    const block = element("button", "block", heads > MOST_NUMBERS ? "" : String(head + 1));
    block.title = say("Head {head}", { head: head + 1 });
    block.setAttribute("aria-label", block.title);
    block.place = { head };
    block.onclick = () => place(block.place);
    return block;
  });
  const line = element("div", "blocks");
  line.style.setProperty("--layers", heads);
  line.append(...blocks);
  row.append(element("span", "name", say("Head")), line);
  return { row, blocks };
}

function build(root, view, { stacks, heads, label, enters, written, leaves }) {
  root.className = "transformer";
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", label);
  const place = (chosen) => {
    view.chosen = { ...view.chosen, ...chosen };
    mark(view); // At once, before Python has answered.
    view.send(chosen);
  };
  const kinds = stacks.map((stack) => buildKind(stack, place, view.together));
  const ways = [
    ["enters", enters],
    ["written", written],
    ["leaves", leaves],
  ].filter(([, text]) => text);
  root.append(...kinds.map(({ row }) => row), ...ways.map(([name, text]) => element("span", `way ${name}`, text)));
  root.classList.toggle("whole", stacks.length === 3);
  const places = kinds.flatMap(({ blocks }) => blocks);
  const ofHeads = heads ? buildHeads(heads, place) : { blocks: [] };
  if (heads) root.append(ofHeads.row);
  root.onkeydown = (event) => {
    arrowKeys(event, places.includes(event.target) ? places : ofHeads.blocks, 1);
  };
  const fit = () => stackIfTooWide(root);
  addEventListener("resize", fit);
  return {
    labels: stacks.map(({ kind }, i) => [kind, kinds[i].label]),
    places,
    heads: ofHeads.blocks,
    dispose: () => removeEventListener("resize", fit),
  };
}

/** Where the stacks have no room side by side, as in a language of long names, they stand below each other. */
function stackIfTooWide(root) {
  root.classList.remove("stacked");
  root.classList.toggle("stacked", root.scrollWidth > root.clientWidth);
}

/** Mark the kind, the layer and the head that are looked at; each row of blocks is one stop of the keyboard. */
function mark({ labels, places, heads, together, chosen: { kind, layer, head } }) {
  for (const [name, label] of labels) label.setAttribute("aria-pressed", name === kind);
  const press = (block, pressed) => {
    block.setAttribute("aria-pressed", pressed);
    block.tabIndex = pressed ? 0 : -1;
  };
  for (const block of places) press(block, block.place.kind === kind && (together || block.place.layer === layer));
  for (const block of heads) press(block, block.place.head === head);
}

/** The drawing of a Transformer in which it is chosen which attention is looked at: a block a layer of each kind. */
export default function transformer({ data, parentElement, setTriggerValue }) {
  const { chosen, ...drawn } = data;
  const together = chosen.layer < 0;
  const view = mounted(parentElement, JSON.stringify([drawn, together]), (root, made) => build(root, Object.assign(made, { together }), drawn));
  view.chosen = chosen;
  view.send = (place) => setTriggerValue("pick", place);
  mark(view);
  stackIfTooWide(view.root);
  return () => unmount(parentElement);
}
