import { arrowKeys, mounted, unmount } from "../shared/mounted.js";
import { say } from "../shared/say.js";
import { element } from "../shared/element.js";

const MOST_NUMBERS = 8; // those of more layers would not fit into their blocks

/** A row of blocks, each called and choosing as `named` and `placed` say for its number from 0. */
function buildBlocks(count, { named, placed }, choose) {
  const line = element("div", "blocks");
  line.style.setProperty("--blocks", count);
  const blocks = Array.from({ length: count }, (_, at) => {
    const block = element("button", "block", count > MOST_NUMBERS ? "" : String(at + 1));
    block.title = named(at);
    block.setAttribute("aria-label", block.title);
    block.place = placed(at);
    block.onclick = () => choose(block.place);
    return block;
  });
  line.append(...blocks);
  return { line, blocks };
}

/** One kind of attention: its name, and a block a layer. `together`, each block chooses the kind alone. */
function buildKind({ kind, name, title, layers }, together, choose) {
  const row = element("div", `kind ${kind}`);
  const label = element("button", "name", name);
  label.tabIndex = -1; // The blocks beside it choose the same with the keyboard.
  label.title = title;
  label.onclick = () => choose({ kind });
  const named = (layer) => (together ? title : say("{kind}, layer {layer}", { kind: title, layer: layer + 1 }));
  const placed = (layer) => (together ? { kind } : { kind, layer });
  const { line, blocks } = buildBlocks(layers, { named, placed }, choose);
  row.append(label, line);
  return { row, label, blocks };
}

/** A block a head. */
function buildHeads(heads, choose) {
  const row = element("div", "kind heads");
  const named = (head) => say("Head {head}", { head: head + 1 });
  const { line, blocks } = buildBlocks(heads, { named, placed: (head) => ({ head }) }, choose);
  row.append(element("span", "name", say("Head")), line);
  return { row, blocks };
}

function build(root, view, { stacks, heads, label, enters, written, leaves }) {
  root.className = "transformer";
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", label);
  const choose = (chosen) => {
    view.chosen = { ...view.chosen, ...chosen };
    mark(view); // At once, before Python has answered.
    view.send(chosen);
  };
  const kinds = stacks.map((stack) => buildKind(stack, view.together, choose));
  const ways = [
    ["enters", enters],
    ["written", written],
    ["leaves", leaves],
  ].filter(([, text]) => text);
  root.append(...kinds.map(({ row }) => row), ...ways.map(([name, text]) => element("span", `way ${name}`, text)));
  root.classList.toggle("whole", stacks.length === 3);
  const places = kinds.flatMap(({ blocks }) => blocks);
  const ofHeads = heads ? buildHeads(heads, choose) : { blocks: [] };
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
  root.classList.toggle("stacked", root.scrollWidth > root.clientWidth + 1); // both are rounded
}

/** Press the blocks that are looked at; the first of them, or else of all, is where the keyboard stops. */
function press(blocks, isPressed) {
  const stop = blocks.find(isPressed) ?? blocks[0];
  for (const block of blocks) {
    block.setAttribute("aria-pressed", isPressed(block));
    block.tabIndex = block === stop ? 0 : -1;
  }
}

/** Mark the kind, the layer and the head that are looked at. */
function mark({ labels, places, heads, together, chosen: { kind, layer, head } }) {
  for (const [name, label] of labels) label.setAttribute("aria-pressed", name === kind);
  press(places, ({ place }) => place.kind === kind && (together || place.layer === layer));
  press(heads, ({ place }) => place.head === head);
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
