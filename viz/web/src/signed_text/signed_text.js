import { FULL, unpack } from "../shared/packed.js";
import { inked, lookup } from "../shared/picture.js";
import { arrowKeys, hearPointing, mounted, unmount } from "../shared/mounted.js";
import { paragraph } from "../shared/paragraph.js";

/** One text: its pieces know what is read of them. */
function textOf(text) {
  const made = paragraph(text);
  made.buttons.forEach((button, at) => {
    const { value, reading } = text.tokens[at];
    if (reading) {
      const under = document.createElement("small");
      under.textContent = reading;
      button.append(under);
    } else button.dataset.says = button.title = value;
  });
  return made;
}

function build(root, texts) {
  root.className = "texts";
  root.setAttribute("role", "group");
  const parts = texts.map(textOf);
  root.append(...parts.map(({ part }) => part));
  root.picture = { of: root };
  return { parts };
}

/** Write what the piece under the mouse or the focus contributes, or each text's own remark. */
function read({ parts, header }, target) {
  parts.forEach(({ says, buttons }, side) => {
    says.textContent = buttons.includes(target) && target.dataset.says ? `${target.textContent}: ${target.dataset.says}` : header.texts[side].note;
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
  hearPointing(root, ({ target }) => read(view, target.closest?.("button")), () => read(view, null));
  root.onkeydown = (event) => arrowKeys(event, buttons, 1);
  return () => unmount(parentElement);
}
