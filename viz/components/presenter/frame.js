import { inField } from "./keys.js";
import { cover } from "./parts.js";

const LOOK_EVERY = 60; // Milliseconds.
const STILL_FOR = 5; // Looks in a row that find nothing changed.
const STARTS = 400; // Milliseconds until the page has begun with what was typed.
const GIVE_UP = 90_000;
const ROWS = 480; // The shorter side, in the page's own pixels, that a scene is laid out for.
const LARGEST = 1.6; // A short page grows no more than this beyond it.
const SMALLEST = 0.45; // A comparison of two heads is the highest page.
const ROUNDS = 5;

const rest = (time) => new Promise((done) => setTimeout(done, time));

/** Pixels that a page's content needs, of its own. */
function tall(page) {
  const content = page.querySelector('[data-testid="stMainBlockContainer"]');
  const { paddingTop, paddingBottom } = page.defaultView.getComputedStyle(content);
  const parts = [...content.children].reduce((sum, part) => sum + part.scrollHeight, 0);
  return parts + parseFloat(paddingTop) + parseFloat(paddingBottom);
}

/** What is seen of a scene's page while it is being built; null before it is there. */
function state(frame) {
  const page = frame.element.contentDocument;
  const app = page?.querySelector('[data-testid="stApp"][data-test-script-state="notRunning"]');
  const content = page?.querySelector('[data-testid="stMainBlockContainer"]');
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
    if (!frame.element.isConnected) return false;
    const now = state(frame);
    same = now && now === before ? same + 1 : 0;
    before = now;
  }
  return before !== null;
}

/** As large as it fits: a page's own zoom, so that type, strokes and pictures grow alike and stay sharp. */
async function fit(frame) {
  const page = frame.element.contentDocument;
  for (let round = 1; round <= ROUNDS; round += 1) {
    const share = page.defaultView.innerHeight / tall(page);
    const zoom = Math.min(Math.max(frame.zoom * share, frame.base * SMALLEST), frame.base * LARGEST);
    // What wraps needs less height as it gets more width, so one step can go too far; the last one only makes it fit.
    const enough = share >= 1 && (share < 1.1 || round === ROUNDS);
    if (Math.abs(zoom / frame.zoom - 1) < 0.02 || (round > 1 && enough)) return;
    frame.zoom = zoom;
    frame.element.style.zoom = zoom;
    await still(frame);
  }
}

/** A scene's page in a frame of its own, built out of sight; `frame.ready` resolves once it can be shown. */
export function openFrame(box, scene, listen) {
  const element = document.createElement("iframe");
  element.title = scene.title || "The page, presented";
  const base = Math.min(box.clientHeight, box.clientWidth) / ROWS;
  const frame = { scene, element, base, zoom: base, revealed: !scene.hide.length, done: false };
  element.style.zoom = base;
  element.src = `${scene.address}${scene.address.includes("?") ? "&" : "?"}present=1&embed=true`;
  element.setAttribute("aria-hidden", "true");
  element.onload = () => {
    listen(element.contentWindow);
    if (scene.live) element.contentWindow.addEventListener("keydown", (event) => answer(frame, event));
  };
  frame.cover = () => cover(element.contentDocument, frame.revealed ? [] : scene.hide, scene.omit);
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

async function arrange(frame) {
  if (!(await still(frame))) return;
  frame.cover();
  await still(frame);
  await fit(frame);
  frame.cover();
}

async function prepare(frame) {
  await rest(0);
  await arrange(frame);
  frame.done = true;
}
