import { say } from "../shared/say.js";
import { AT_REST, CONTENT } from "../shared/streamlit.js";
import { cutLists, fitScene, leaveOutCovered, readable } from "../stage/fit.js";
import { cover } from "../stage/parts.js";

const TYPED = "input:not([type=range]):not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable], [role=combobox]";
const OWN_ARROWS = `${TYPED}, input[type=range], [role=slider], [role=radio], [role=option]`;
const ALWAYS = new Set(["PageDown", "PageUp", "Escape"]);

/** Whether a key is typed into a field, wherever in the page that field stands. */
export function inField(event, fields = TYPED) {
  const target = event.composedPath()[0];
  return Boolean(target?.closest?.(fields));
}

const STEPS = {
  PageDown: "next", ArrowRight: "next", ArrowDown: "next", PageUp: "previous", ArrowLeft: "previous",
  ArrowUp: "previous", Home: "first", End: "last", Escape: "close", p: "close", n: "notes", c: "contrast", f: "full",
  Backspace: "takeBack",
};

/**
 * What a key asks of the show, or null: a word of STEPS, a digit, or "enter". A clicker's keys count even while a
 * field has the focus; the others belong to the field.
 */
export function asked(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (inField(event, OWN_ARROWS) && !ALWAYS.has(event.key)) return null;
  if (/^[0-9]$/.test(event.key)) return event.key;
  if (event.key === "Enter") return "enter";
  return STEPS[event.key] ?? null;
}

const LOOK_EVERY = 60; // Milliseconds.
const STILL_FOR = 5; // Looks in a row that find nothing changed.
const STARTS = 400; // Milliseconds until the page has begun with what was typed.
const GIVE_UP = 90_000;
const ROUNDS = 3;

const rest = (time) => new Promise((done) => setTimeout(done, time));

/** Pixels that a page's content needs, of its own. */
function tall(page) {
  const content = page.querySelector(CONTENT);
  if (!page.defaultView) return 0; // The frame has left.
  const { paddingTop, paddingBottom } = page.defaultView.getComputedStyle(content);
  const parts = [...content.children].reduce((sum, part) => sum + part.scrollHeight, 0);
  return parts + parseFloat(paddingTop) + parseFloat(paddingBottom);
}

/** What is seen of a scene's page while it is being built; null before it is there. */
function state(frame) {
  const page = frame.element.contentDocument;
  if (!page?.defaultView) return null; // The frame has left.
  const app = page.querySelector(AT_REST);
  const content = page.querySelector(CONTENT);
  if (!app || !content || !page.defaultView.getComputedStyle(page.documentElement).getPropertyValue("--presenting")) return null;
  const plots = [...page.querySelectorAll(".js-plotly-plot")];
  if (plots.some((plot) => !plot.querySelector(".main-svg"))) return null;
  return [tall(page), content.clientWidth, content.querySelectorAll("*").length, plots.length].join();
}

async function still(frame) {
  const started = performance.now();
  let before = null;
  for (let same = 0; same < STILL_FOR && performance.now() - started < GIVE_UP; ) {
    await rest(LOOK_EVERY);
    if (!frame.element.isConnected || frame.refused) return false;
    const now = state(frame);
    same = now && now === before ? same + 1 : 0;
    before = now;
  }
  return before !== null;
}

/** `--zoom` is for the style sheet: a length there is as many pixels of the zoomed frame. */
function zoomTo(element, zoom) {
  element.style.zoom = zoom;
  element.style.setProperty("--zoom", zoom);
}

/** As large as it fits: a page's own zoom, so that type, strokes and pictures grow alike and stay sharp. */
function fit(frame) {
  const page = frame.element.contentDocument;
  return fitScene({
    floor: frame.floor,
    tall: () => tall(page),
    room: () => page.defaultView?.innerHeight ?? 0, // 0 as tall() has it: the frame has left.
    zoom(value) {
      zoomTo(frame.element, value);
      return still(frame);
    },
    cut: (over) => cutLists(page, over, 1) && still(frame),
    picture(height) {
      page.documentElement.style.setProperty("--picture", `${height}px`);
      return still(frame);
    },
  });
}

/**
 * A scene's page in a frame of its own, built out of sight; `frame.ready` resolves to whether it can be shown. `floor` is
 * the zoom at which its type is read.
 */
export function openFrame(box, scene, listen, floor = readable()) {
  const element = document.createElement("iframe");
  element.title = scene.title || say("The page, presented");
  const frame = { element, floor, revealed: !scene.hide.length && !scene.guess.length, done: false, refused: false, unnamed: 0 };
  element.classList.toggle("asks", scene.guess.length > 0);
  zoomTo(element, floor);
  element.src = `${scene.address}${scene.address.includes("?") ? "&" : "?"}present=1&embed=true`;
  element.setAttribute("aria-hidden", "true");
  element.onload = () => {
    frame.refused = !element.contentDocument; // The browser's own page, which says that the server does not answer.
    if (frame.refused) return;
    listen(element.contentWindow);
    if (scene.live) element.contentWindow.addEventListener("keydown", (event) => answer(frame, event));
  };
  frame.cover = () => cover(element.contentDocument, frame.revealed ? [] : scene.hide, scene.omit);
  frame.remove = () => element.remove();
  frame.ready = prepare(frame);
  box.append(element);
  return frame;
}

/** Once a sentence was typed into a live scene the keys turn the pages again, and its pictures are fitted. */
async function answer(frame, event) {
  if (event.key !== "Enter" || !inField(event)) return;
  event.composedPath()[0].blur();
  await rest(STARTS);
  await arrange(frame);
}

/** Whether it is there; a page does not come where the stage was left meanwhile, or its server does not answer. */
async function arrange(frame) {
  // A view that comes late, on a busy machine, is measured only once what the scene leaves out of it is gone.
  for (let round = 0; round < ROUNDS; round += 1) {
    do if (!(await still(frame))) return false;
    while (frame.cover());
    await fit(frame);
    if (!frame.element.isConnected) return false;
    if (!frame.cover()) break;
  }
  frame.unnamed = leaveOutCovered(frame.element.contentDocument);
  return true;
}

async function prepare(frame) {
  await rest(0);
  frame.done = await arrange(frame);
  return frame.done;
}
