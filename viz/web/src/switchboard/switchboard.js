import { arrowKeys, mounted, unmount } from "../shared/mounted.js";
import { say } from "../shared/say.js";

function labelled(tag, className, text) {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

/** One kind of attention: its name, then a row of switches a layer; a layer's name switches all of its heads. */
function buildBoard({ kind, name, layers, heads }, toggle) {
  const board = labelled("div", "board", "");
  board.style.setProperty("--heads", heads);
  board.setAttribute("role", "group");
  board.setAttribute("aria-label", name);
  board.append(labelled("div", "name", name));
  const switches = [];
  for (let layer = 0; layer < layers; layer += 1) {
    const own = Array.from({ length: heads }, (_, head) => {
      const made = labelled("button", "head", String(head + 1));
      made.setAttribute("aria-label", say("{kind}, layer {layer}, head {head}", { kind: name, layer: layer + 1, head: head + 1 }));
      made.place = [kind, layer, head];
      made.onclick = () => toggle([made.place]);
      return made;
    });
    const all = labelled("button", "layer", say("L{layer}", { layer: layer + 1 }));
    all.title = say("Switch all heads of layer {layer}", { layer: layer + 1 });
    all.setAttribute("aria-label", say("{kind}, all heads of layer {layer}", { kind: name, layer: layer + 1 }));
    all.tabIndex = -1;
    all.onclick = () => toggle(own.map(({ place }) => place));
    board.append(all, ...own);
    switches.push(...own);
  }
  board.onkeydown = (event) => arrowKeys(event, switches, heads);
  switches.forEach((one, i) => (one.tabIndex = i ? -1 : 0));
  return { board, switches };
}

function buildBoards(root, view, boards) {
  const row = labelled("div", "boards", "");
  // Switched off at once, before Python has answered; several at once turn off unless all of them already are.
  const toggle = (places) => {
    const names = places.map(String);
    const allOff = names.every((name) => view.off.has(name));
    for (const place of places) allOff ? view.off.delete(String(place)) : view.off.set(String(place), place);
    view.mark();
    view.send([...view.off.values()]);
  };
  const built = boards.map((board) => buildBoard(board, toggle));
  row.append(...built.map(({ board }) => board));
  root.append(row);
  return { switches: built.flatMap(({ switches }) => switches) };
}

export default function switchboard({ data, parentElement, setTriggerValue }) {
  const view = mounted(parentElement, JSON.stringify(data.boards), (root, made) => buildBoards(root, made, data.boards));
  view.off = new Map(data.off.map((place) => [String(place), place]));
  view.mark = () =>
    view.switches.forEach((one) => one.setAttribute("aria-pressed", !view.off.has(String(one.place))));
  view.send = (off) => setTriggerValue("off", off);
  view.mark();
  return () => unmount(parentElement);
}
