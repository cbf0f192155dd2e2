import { widgetOf } from "./widget.js";

/** How one view tells the others that a head was chosen, and hands over its bytes, before Python has heard of it. */
const EVENT = "attenscope-head";

/**
 * Tell from the view in `root`. `head`: { layer, head, rows, columns, bytes, ofLayer }, its bytes and its layer's, as
 * components/packing.py quantises them.
 */
export const announceHead = (root, head) =>
  document.dispatchEvent(new CustomEvent(EVENT, { detail: { ...head, widget: widgetOf(root) } }));

/** Call `heard(head)` at every announcement to the view in `root`; returns what ends it. */
export function hearHeads(root, heard) {
  const listener = ({ detail }) => detail.widget === widgetOf(root) && heard(detail);
  document.addEventListener(EVENT, listener);
  return () => document.removeEventListener(EVENT, listener);
}

/** The label of a view of another head: `pattern` is its label with {layer} and {head} in place of the numbers. */
export const relabelled = (pattern, { layer, head }) => pattern.replace("{layer}", layer + 1).replace("{head}", head + 1);
