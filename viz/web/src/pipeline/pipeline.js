import { isShortcut } from "../shared/events.js";
import { paintPixels } from "../shared/grid.js";
import { mounted, unmount } from "../shared/mounted.js";
import { unpack } from "../shared/packed.js";
import { drawn } from "../shared/picture.js";
import { say } from "../shared/say.js";
import { STEPS, readArrays, shown } from "./numbers.js";

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** Rows of signed numbers as rows of coloured cells: the middle colour is 0, the ends the largest size in sight. */
function strips(numbers, width, colours) {
  const canvas = document.createElement("canvas");
  const [negative, zero, positive] = colours.map(rgb);
  const largest = numbers.reduce((most, number) => Math.max(most, Math.abs(number)), 1e-12);
  const channels = new Uint8ClampedArray(4 * numbers.length);
  numbers.forEach((number, i) => {
    const end = number < 0 ? negative : positive;
    const share = Math.sqrt(Math.abs(number) / largest);
    const colour = zero.map((from, channel) => from + (end[channel] - from) * share);
    channels.set([...colour, 255], 4 * i);
  });
  paintPixels(canvas, new Uint32Array(channels.buffer), width);
  return canvas;
}

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...children); // Strings become text nodes: tokens are data.
  return made;
}

/** A column of the table: a heading, what stands above the keys, one cell a key, and what stands below them. */
function column(step, heading, above, cells, /** @type {string | Node} */ below = "") {
  const parts = [element("div", "heading", heading), element("div", "above", above), ...cells, element("div", "below", below)];
  parts.forEach((part) => {
    part.dataset.step = step;
  });
  return parts;
}

const cell = (key, ...children) => {
  const made = element("div", "cell", ...children);
  made.dataset.key = key;
  return made;
};

/** Stripes, for what is masked. */
function hatch() {
  const made = drawn("svg", { class: "hatch", "aria-hidden": "true" });
  const stripes = Array.from({ length: 24 }, (_, i) => `M${11.3 * i} -4l-40 40`); // Wider than a column is.
  made.append(drawn("path", { d: stripes.join("") }));
  return made;
}

function bar(share, text, masked) {
  const made = element("span", masked ? "bar masked" : "bar", masked ? hatch() : element("span", "fill"), text);
  made.style.setProperty("--share", share);
  return made;
}

/** All columns of the table, left to right. */
function columns(numbers, { query, tokens, mask, width, colours }) {
  const draw = (rows) => strips(rows, width, colours);
  const each = (make) => tokens.map((_, key) => cell(key, make(key)));
  const row = (array, key) => draw(array.subarray(key * width, (key + 1) * width));
  // Rows of one column share their colours, so a whole column is drawn at once and cut into rows.
  const cut = (array) => {
    const whole = draw(array);
    return each((key) => {
      const part = row(array, key);
      part.getContext("2d").drawImage(whole, 0, key, width, 1, 0, 0, width, 1);
      return part;
    });
  };
  const masked = (text) => (key) => (mask[key] ? text(key) : "−∞");
  return [
    column(0, "", say("q of “{token}”", { token: `\u2068${query}\u2069` }), tokens.map((token, key) => cell(key, element("span", "token", token)))),
    column(0, say("keys"), draw(numbers.q), cut(numbers.k)),
    column(1, "q × k", "", cut(numbers.product)),
    column(2, say("sum"), "", each((key) => shown(numbers.dot[key]))),
    column(3, say("scaled"), "", each((key) => shown(numbers.scores[key]))),
    column(4, say("masked"), "", each(masked((key) => shown(numbers.scores[key])))),
    column(5, say("weight"), "", each((key) => bar(numbers.weights[key], mask[key] ? `${shown(100 * numbers.weights[key])}%` : say("masked"), !mask[key]))),
    column(6, say("weight × value"), "", cut(numbers.weighted), draw(numbers.context)),
  ];
}

function build(root, view) {
  const steps = element("ol", "steps", ...STEPS.map(({ name }, i) => {
    const button = element("button", "", name);
    button.dataset.to = i;
    return element("li", "", button);
  }));
  const [back, next] = [element("button", "move", say("Back")), element("button", "move", say("Next"))];
  const [equation, says, numbers] = ["equation", "says", "numbers"].map((name) => element("p", name));
  const words = element("div", "words", element("div", "", equation, says, numbers), element("div", "moves", back, next));
  words.setAttribute("aria-live", "polite");
  const table = element("div", "table");
  root.className = "pipeline";
  root.setAttribute("role", "group");
  root.append(element("div", "lead", steps, words), table);
  root.picture = { of: root, without: ".moves" };
  root.film = { count: STEPS.length, seconds: 1.5, show: (step) => go(view, step) };
  return { steps, back, next, equation, says, numbers, table, step: 0, asked: [] };
}

function speak(view) {
  const { equation, says, numbers } = STEPS[view.step];
  view.equation.textContent = equation;
  view.says.textContent = says;
  const token = `\u2068${view.values.tokens[view.at]}\u2069`;
  view.numbers.textContent = say("“{token}”: {numbers}", { token, numbers: numbers(view.values, view.at) });
  for (const one of view.table.querySelectorAll(".cell")) one.classList.toggle("at", Number(one.dataset.key) === view.at);
}

function go(view, step) {
  view.step = Math.min(Math.max(step, 0), STEPS.length - 1);
  [...view.steps.children].forEach(({ firstChild }, i) => {
    firstChild.toggleAttribute("aria-current", i === view.step);
    if (i === view.step) firstChild.setAttribute("aria-current", "step");
  });
  for (const part of view.table.children) {
    const of = Number(part.dataset.step);
    part.classList.toggle("later", of > view.step);
    part.classList.toggle("now", of === view.step);
  }
  view.back.disabled = view.step === 0;
  view.next.disabled = view.step === STEPS.length - 1;
  speak(view);
}

/** The step to show: Python's, but while it still answers an earlier click, the one that was clicked last. */
function answered({ asked, step }, answer) {
  asked.splice(0, asked.indexOf(answer) + 1);
  return asked.length ? step : answer;
}

export default function pipeline({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const view = mounted(parentElement, "pipeline", build);
  view.values = { ...header, ...readArrays(body, header) };
  view.at = view.values.weights.indexOf(Math.max(...view.values.weights));
  view.root.setAttribute("aria-label", header.alt);
  view.table.style.setProperty("--keys", header.keys);
  view.table.replaceChildren(...columns(view.values, header).flat());
  go(view, answered(view, header.step));
  const move = (step) => {
    go(view, step); // At once, before Python has answered.
    view.asked.push(view.step);
    setTriggerValue("step", { step: view.step });
  };
  view.back.onclick = () => move(view.step - 1);
  view.next.onclick = () => move(view.step + 1);
  view.steps.onclick = ({ target }) => target.dataset.to && move(Number(target.dataset.to));
  view.root.onkeydown = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by && !isShortcut(event)) move(view.step + by);
  };
  view.table.onpointerover = ({ target }) => {
    const over = target.closest(".cell");
    if (!over) return;
    view.at = Number(over.dataset.key);
    speak(view);
  };
  return () => unmount(parentElement);
}
