import { arrowKeys, mounted, unmount } from "../shared/mounted.js";

/** The translation as running text, each piece a button underlined by the model's doubt. */
function build(root, pieces) {
  const line = document.createElement("div");
  line.className = "line";
  line.dir = "auto";
  line.dataset.size = pieces.length > 80 ? "small" : pieces.length > 30 ? "medium" : "large";
  const buttons = pieces.map(({ text, doubt, unsure, special, note }) => {
    const button = document.createElement("button");
    button.textContent = text.trim() || "␣"; // Tokens are data: textContent only.
    button.title = note;
    button.style.setProperty("--doubt", doubt);
    button.classList.toggle("special", special);
    button.classList.toggle("unsure", unsure);
    if (text.startsWith(" ") || special) line.append(" ");
    line.append(button);
    return button;
  });
  root.append(line);
  return { line, buttons };
}

export default function tokens({ data, parentElement, setTriggerValue }) {
  const { pieces, pinned, keep, word, fixed } = data;
  const { line, buttons } = mounted(parentElement, JSON.stringify(pieces), (root) => build(root, pieces));
  const mark = (chosen) =>
    buttons.forEach((button, i) => {
      button.setAttribute("aria-pressed", i === chosen);
      button.classList.toggle("of-word", chosen === pinned && word.includes(i));
      button.tabIndex = i === (chosen ?? 0) ? 0 : -1;
    });
  mark(pinned);
  line.classList.toggle("fixed", Boolean(fixed));
  line.onclick = (event) => {
    const at = buttons.indexOf(event.target);
    if (at < 0 || fixed) return;
    mark(at === pinned && !keep ? null : at); // At once, before Python has answered.
    setTriggerValue("pin", { position: at });
  };
  line.onkeydown = (event) => arrowKeys(event, buttons, buttons.length);
  return () => unmount(parentElement);
}
