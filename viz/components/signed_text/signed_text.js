import { FULL, unpack } from "../shared/packed.js";
import { inked, lookup } from "../shared/colours.js";
import { arrowKeys, mounted, unmount } from "../shared/mounted.js";
import { backward } from "../shared/direction.js";
import { asPicture } from "../shared/as_picture.js";

/** One text: its title, what is read of the piece under the mouse, and its pieces. */
function paragraph({ title, tokens }) {
  const part = document.createElement("section");
  const heading = document.createElement("h3");
  const says = document.createElement("span");
  heading.append(title, says);
  const line = document.createElement("p");
  line.dir = backward(tokens.map(({ text }) => text)) ? "rtl" : "ltr"; // "auto" would not look into the buttons.
  line.dataset.size = tokens.length > 60 ? "small" : tokens.length > 24 ? "medium" : "large";
  const buttons = tokens.map(({ text, space, value }) => {
    const button = document.createElement("button");
    button.textContent = text; // Tokens are data: textContent only.
    button.dir = "auto"; // Or </s> would be mirrored in a line that runs from the right.
    button.dataset.says = button.title = value;
    if (space) line.append(" ");
    line.append(button);
    return button;
  });
  part.append(heading, line);
  return { part, says, buttons };
}

function build(root, texts) {
  root.className = "texts";
  root.setAttribute("role", "group");
  const parts = texts.map(paragraph);
  root.append(...parts.map(({ part }) => part));
  root.picture = () => asPicture(root);
  return { parts };
}

/** Write what the piece under the mouse or the focus contributes, or each text's own remark. */
function read({ parts, header }, target) {
  parts.forEach(({ says, buttons }, side) => {
    says.textContent = buttons.includes(target) ? `${target.textContent}: ${target.dataset.says}` : header.texts[side].note;
  });
}

export default function signedText({ data, parentElement }) {
  const { header, body } = unpack(data);
  const view = mounted(parentElement, JSON.stringify(header.texts), (root) => build(root, header.texts));
  view.header = header;
  const { root, parts } = view;
  root.setAttribute("aria-label", header.label);
  const table = lookup(header.stops, header.stops[0], "linear");
  const buttons = parts.flatMap((part) => part.buttons);
  buttons.forEach((button, at) => {
    Object.assign(button.style, inked(table[Math.min(body[at], FULL)], header.inks));
    button.tabIndex = at === 0 ? 0 : -1;
  });
  read(view, null);
  root.onpointerover = root.onfocusin = ({ target }) => read(view, target.closest?.("button"));
  root.onpointerleave = root.onfocusout = () => read(view, null);
  root.onkeydown = (event) => arrowKeys(event, buttons, 1);
  return () => unmount(parentElement);
}
