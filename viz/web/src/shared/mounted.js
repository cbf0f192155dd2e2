import { isShortcut } from "./events.js";

/**
 * Where an element has its view. Each language has a script of its own (component_scripts.py), so another script may have built it.
 */
const VIEW = Symbol.for("attenscope.view");
const script = {};

/**
 * The view that stands in `parent`: the one already there while `key` and the script stay the same, else a new one.
 * Streamlit calls a component again at every change of its data, but its cleanup only when it is unmounted; keeping
 * the elements keeps the keyboard's focus. `build(root, view)` returns the view's own fields, with `dispose` if it
 * listens to anything outside `root`.
 */
export function mounted(parent, key, build) {
  const before = parent[VIEW];
  if (before?.key === key && before.script === script) return before;
  remove(parent);
  const root = document.createElement("div");
  parent.append(root);
  const view = { root };
  Object.assign(view, build(root, view), { key, script });
  parent[VIEW] = view;
  return view;
}

/**
 * What a component does when it is told to leave: its view goes once `parent` is out of the document. While `parent`
 * stands in it, it was told in error: Streamlit 1.67 does so if new data come before it has handed over the last, and
 * the clicks that Python has yet to answer would be forgotten with the view.
 */
export function unmount(parent) {
  queueMicrotask(() => parent.isConnected || remove(parent)); // Others take it out just after they have told it.
}

function remove(parent) {
  const view = parent[VIEW];
  view?.dispose?.();
  view?.root.remove();
  delete parent[VIEW];
}

/** Move the focus among `items` with the arrow keys, Home and End; `across` and `down` say how far one press goes. */
export function arrowKeys(event, items, down, across = 1) {
  if (isShortcut(event)) return;
  const at = items.indexOf(event.target);
  const steps = { ArrowLeft: -across, ArrowRight: across, ArrowUp: -down, ArrowDown: down };
  const to = { Home: 0, End: items.length - 1 }[event.key] ?? at + (steps[event.key] ?? NaN);
  if (at < 0 || !items[to]) return;
  event.preventDefault();
  items[to].focus();
}

const POINTING = Symbol("pointing");

/**
 * Call `enter(event)` once something in `root` is pointed at or has the focus, and `leave()` once nothing is any more. A
 * second call takes the place of the first. (There is no onfocusin.)
 */
export function hearPointing(root, enter, leave) {
  root[POINTING]?.abort();
  root[POINTING] = new AbortController();
  for (const name of ["pointerover", "focusin"]) root.addEventListener(name, enter, { signal: root[POINTING].signal });
  for (const name of ["pointerleave", "focusout"]) root.addEventListener(name, leave, { signal: root[POINTING].signal });
}

/** Up and down within a column, left and right to the nearest node of the next one; Home and End to either end. */
export function walk(event, nodes, buttons) {
  const from = nodes[buttons.indexOf(event.target)];
  const across = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const down = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!from || isShortcut(event) || (!across && !down)) return arrowKeys(event, buttons, 1);
  const distance = ({ row, column }) => {
    if (across) return column === from.column + across ? Math.abs(row - from.row) : Infinity;
    return column === from.column && (row - from.row) * down > 0 ? Math.abs(row - from.row) : Infinity;
  };
  const nearest = nodes.reduce((best, one) => (distance(one) < distance(best) ? one : best));
  event.preventDefault();
  if (distance(nearest) === Infinity) return;
  const to = buttons[nodes.indexOf(nearest)];
  for (const button of buttons) button.tabIndex = button === to ? 0 : -1;
  to.focus();
}
