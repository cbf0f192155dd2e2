import { mounted, unmount } from "../shared/mounted.js";
import { say } from "../shared/say.js";
import { hearStep } from "../shared/events.js";

function made(tag, className, text = "") {
  const one = document.createElement(tag);
  one.className = className;
  one.textContent = text; // A token is data, so it is only ever set as text.
  return one;
}

function pressed(className, text, label, onclick) {
  const button = made("button", className, text);
  button.setAttribute("aria-label", label);
  button.onclick = onclick;
  return button;
}

/** A heading, what it counts, and rows under it. */
function section(title, note, rows) {
  const box = made("section", "part");
  const heading = made("h4", "", title);
  if (note) heading.append(made("span", "note", note));
  box.append(heading, ...rows);
  return box;
}

/** A name, a bar of `share` and a number; a button where it leads somewhere. */
function row({ text, value, share = 0, label }, onclick) {
  const box = onclick ? pressed("row", "", label ?? `${text}, ${value}`, onclick) : made("div", "row");
  const bar = made("span", "bar");
  bar.style.setProperty("--share", Math.min(1, share));
  box.append(made("span", "text", text), bar, made("span", "value", value));
  return box;
}

function build(root, view, data) {
  const card = made("article", "card");
  card.setAttribute("aria-label", data.label);
  const top = made("header", "top");
  const name = made("strong", "word", data.word);
  name.dir = "auto";
  top.append(name, made("span", "fact", data.fact), made("span", "space"));
  if (data.why) top.append(pressed("open", say("Why this word?"), say("Why this word?"), () => view.send("why", Date.now())));
  if (data.open) top.append(pressed("open", data.open, data.open, () => view.send("open", Date.now())));
  top.append(pressed("close", "×", say("Close this card"), () => view.send("close", Date.now())));
  const parts = made("div", "parts");
  if (data.others.length)
    parts.append(section(say("Instead of it"), "", data.others.map((one) => row(one, data.chooses && (() => view.send("candidate", one.id))))));
  const [title, note] = data.masked ? [say("Words that matter"), say("change of log-prob. when masked too")] : [say("It looked at"), say("all heads, by how much each passes on")];
  parts.append(section(title, note, data.sources.map((one) => row(one))));
  if (data.heads.length)
    parts.append(section(say("Heads that matter"), data.headsNote, data.heads.map((one) => row(one, () => view.send("head", one.place)))));
  card.append(top, parts);
  if (data.decided) card.append(made("p", "decided", data.decided));
  root.append(card);
  return { dispose: hearStep((step) => card.classList.toggle("waits", step !== null && step !== data.step)) };
}

export default function wordCard({ data, parentElement, setTriggerValue }) {
  const view = mounted(parentElement, JSON.stringify(data), (root, one) => build(root, one, data));
  view.send = (name, value) => setTriggerValue(name, value);
  return () => unmount(parentElement);
}
