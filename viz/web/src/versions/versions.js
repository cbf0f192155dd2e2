import { arrowKeys, mounted, unmount } from "../shared/mounted.js";

function cell(className, text) {
  const made = document.createElement("span");
  made.className = className;
  made.textContent = text; // Words are data: textContent only.
  return made;
}

function buildVersion({ what, words, numbers }) {
  const row = document.createElement("button");
  row.className = "version";
  const text = cell("words", "");
  text.dir = "auto";
  for (const [word, mark] of words) text.append(cell(mark, word));
  row.append(cell("what", what), text, ...numbers.map((number) => cell("number", number)));
  return row;
}

/** Translations below each other, what differs from the first marked; choose one to see it. */
function buildVersions(root, { headings, versions }) {
  const heading = document.createElement("div");
  heading.className = "version heading";
  heading.append(cell("", ""), cell("", ""), ...headings.map((text) => cell("number", text)));
  const rows = versions.map(buildVersion);
  root.append(heading, ...rows);
  return { rows };
}

export default function versions({ data, parentElement, setTriggerValue }) {
  const { current, ...table } = data;
  const { root, rows } = mounted(parentElement, JSON.stringify(table), (made) => buildVersions(made, table));
  rows.forEach((row, i) => {
    row.setAttribute("aria-pressed", i === current);
    row.tabIndex = i === Math.max(current, 0) ? 0 : -1;
    row.onclick = () => setTriggerValue("choice", { number: i });
  });
  root.onkeydown = (event) => arrowKeys(event, rows, 1);
  return () => unmount(parentElement);
}
