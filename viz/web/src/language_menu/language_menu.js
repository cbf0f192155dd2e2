import { drawn } from "../shared/picture.js";
import { mounted, unmount } from "../shared/mounted.js";

/** A globe. */
function sign() {
  const svg = drawn("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" });
  svg.append(
    drawn("circle", { cx: 10, cy: 10, r: 8 }),
    drawn("ellipse", { cx: 10, cy: 10, rx: 3.6, ry: 8 }),
    drawn("path", { d: "M2 10H18" }),
  );
  return svg;
}

function build(root, { label, languages }) {
  root.className = "language";
  root.title = label;
  const list = document.createElement("select");
  list.setAttribute("aria-label", label);
  list.append(...languages.map(([code, name]) => Object.assign(new Option(name, code), { lang: code })));
  root.append(sign(), list);
  return { list };
}

export default function languageMenu({ data, parentElement, setTriggerValue }) {
  const { list } = mounted(parentElement, data.label, (root) => build(root, data));
  list.value = data.current;
  list.onchange = () => setTriggerValue("chosen", list.value);
  return () => unmount(parentElement);
}
