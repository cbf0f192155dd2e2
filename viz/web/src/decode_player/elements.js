import { written } from "../shared/number.js";

/** An element with a class and a text; a token is data, so it is only ever set as text. */
export function piece(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

/** Append a sentence in which fields, {name}, are nodes, in the order that its language has them. */
export function appendSentence(parent, text, nodes) {
  text.split(/\{(\w+)\}/).forEach((part, i) => parent.append(i % 2 ? nodes[part] : part));
}

export function percent(share) {
  if (share === 0) return written("0%");
  return written(share < 0.0005 ? "<0.1%" : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`);
}

/** A number as it is printed, with a minus sign as wide as its digits. */
export const signed = (value) => written(value.toFixed(2));
