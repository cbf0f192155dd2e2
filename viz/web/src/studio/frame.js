import { isShortcut } from "../shared/events.js";
import { say } from "../shared/say.js";
import { AT_REST, CONNECTED, CONTENT, isDrawn } from "../shell/streamlit.js";
import { SPARE, cutAgain, cutLists, cutsOf, fitScene, leaveOutCovered, readable, undoCuts } from "../stage/fit.js";
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
  if (isShortcut(event)) return null;
  if (inField(event, OWN_ARROWS) && !ALWAYS.has(event.key)) return null;
  if (/^[0-9]$/.test(event.key)) return event.key;
  if (event.key === "Enter") return "enter";
  return STEPS[event.key] ?? null;
}

const LOOK_EVERY = 60; // Milliseconds.
const STILL_FOR = 5; // Looks in a row that find nothing changed in a page that comes,
const STILL_AGAIN_FOR = 3; // or in one that is there, or is laid out at once as it was fitted before.
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
  if (!app || !content || Number(page.defaultView.getComputedStyle(page.documentElement).getPropertyValue("--presenting")) !== frame.turn) return null;
  if (!isDrawn(page)) return null;
  const plots = [...page.querySelectorAll(".js-plotly-plot")];
  if (plots.some((plot) => !plot.querySelector(".main-svg"))) return null;
  return [tall(page), content.clientWidth, content.querySelectorAll("*").length, plots.length].join();
}

async function still(frame, looks = STILL_FOR) {
  const [started, { turn }] = [performance.now(), frame];
  let before = null;
  for (let same = 0; same < looks && performance.now() - started < GIVE_UP; ) {
    await rest(LOOK_EVERY);
    if (!frame.element.isConnected || frame.refused || frame.turn !== turn) return false;
    const now = state(frame);
    if (now) dress(frame);
    same = now && now === before ? same + 1 : 0;
    before = now;
  }
  return before !== null;
}

/** `--zoom` is for the style sheet: a length there is as many pixels of the zoomed frame. */
function zoomTo(frame, zoom) {
  frame.zoom = zoom;
  frame.element.style.zoom = zoom;
  frame.element.style.setProperty("--zoom", zoom);
}

function setPicture(frame, height) {
  frame.picture = height;
  frame.element.contentDocument?.documentElement.style.setProperty("--picture", `${height}px`);
}

const roomOf = (frame) => frame.element.contentDocument?.defaultView?.innerHeight ?? 0; // 0 as tall() has it: the frame has left.
const sizeOf = ({ box, floor }) => [box.clientWidth, box.clientHeight, floor].join();

/** As large as it fits: a page's own zoom, so that type, strokes and pictures grow alike and stay sharp. */
async function fit(frame) {
  const [page, { turn }] = [frame.element.contentDocument, frame];
  const isAsked = () => frame.turn === turn; // Else the frame has gone on, and what fits is of another scene.
  frame.fitted = null;
  await fitScene({
    floor: frame.floor,
    tall: () => tall(page),
    room: () => roomOf(frame),
    async zoom(value) {
      if (!isAsked()) return;
      zoomTo(frame, value);
      await still(frame, STILL_AGAIN_FOR);
    },
    cut: (over) => isAsked() && cutLists(page, over, 1) && still(frame, STILL_AGAIN_FOR),
    async picture(height) {
      if (!isAsked()) return;
      setPicture(frame, height);
      await still(frame, STILL_AGAIN_FOR);
    },
  });
  if (isAsked() && page.defaultView) frame.fitted = { size: sizeOf(frame), zoom: frame.zoom, picture: frame.picture, cuts: cutsOf(page) };
}

const isFitted = (frame) => frame.fitted?.size === sizeOf(frame);

/** What the scene leaves out of a view goes as soon as that is there; its pictures are as high as they were. */
function dress(frame) {
  frame.cover();
  if (isFitted(frame) && frame.picture !== frame.fitted.picture) setPicture(frame, frame.fitted.picture);
}

/** Whether the scene fits as it did when it was fitted on a screen of this size. */
async function fitsAgain(frame) {
  const { fitted } = frame;
  const page = frame.element.contentDocument;
  if (fitted.cuts.some(Boolean) && !(cutAgain(page, fitted.cuts) && (await still(frame)))) return false;
  return cutsOf(page).join() === fitted.cuts.join() && tall(page) <= roomOf(frame) + SPARE;
}

/** Whether a scene is what its address says, and nothing that was typed or handed over besides. */
const isAddressAlone = ({ address, live }) => !live && !new URL(address, location.href).searchParams.has("kept");

/** Have a page load the script of its charts now, which takes it a second, and not with the first scene that has one. */
function loadAhead(page, name) {
  const src = page.querySelector('script[type="module"][src]')?.src;
  if (src) page.head.append(Object.assign(page.createElement("script"), { type: "module", src: new URL(name, src).href }));
}

/**
 * A scene's page in a frame of its own, built out of sight; `frame.ready` resolves to whether it can be shown. `floor` is
 * the zoom at which its type is read. `fitted` is how it was fitted before, as `frame.fitted` says it, and `script` the
 * name of a script that the page loads ahead.
 *
 * `frame.goTo(scene, fitted)` has the same frame show another scene, where `frame.canGoTo(scene)`: its page runs again,
 * which takes a tenth of the time that a new page does.
 */
export function openFrame(box, scene, listen, { floor = readable(), fitted = null, script = "" } = {}) {
  const element = document.createElement("iframe");
  const frame = { element, box, floor, turn: 0, refused: false, unnamed: 0, fitted };
  const take = (next, before) => {
    const isOpen = !next.hide.length && !next.guess.length;
    Object.assign(frame, { scene: next, fitted: before, revealed: isOpen, done: false, unnamed: 0, turn: frame.turn + 1 });
    element.title = next.title || say("The page, presented");
    element.classList.toggle("asks", next.guess.length > 0);
    zoomTo(frame, before?.size === sizeOf(frame) ? before.zoom : floor);
    return `${next.address}${next.address.includes("?") ? "&" : "?"}present=${frame.turn}&embed=true`;
  };
  frame.cover = () => cover(element.contentDocument, frame.revealed ? [] : frame.scene.hide, frame.scene.omit);
  frame.remove = () => element.remove();
  frame.canGoTo = (next) => {
    const hasServer = frame.arrived && !frame.refused && element.contentDocument?.querySelector(CONNECTED);
    return Boolean(hasServer) && isAddressAlone(frame.scene) && isAddressAlone(next);
  };
  frame.goTo = (next, before = null) => {
    const page = /** @type {Window & typeof globalThis} */ (element.contentWindow);
    const address = take(next, before);
    undoCuts(page.document);
    frame.cover();
    // Past the rule for what a visitor does (shell/history.js), and without an entry in the history of the whole page.
    page.History.prototype.replaceState.call(page.history, page.history.state, "", address);
    page.dispatchEvent(new page.PopStateEvent("popstate"));
    frame.ready = prepare(frame);
  };
  element.setAttribute("aria-hidden", "true");
  element.onload = () => {
    frame.refused = !element.contentDocument; // The browser's own page, which says that the server does not answer.
    if (frame.refused) return;
    listen(element.contentWindow);
    if (script) loadAhead(element.contentDocument, script);
    element.contentWindow.addEventListener("keydown", (event) => frame.scene.live && answer(frame, event));
  };
  element.src = take(scene, fitted);
  box.append(element);
  frame.ready = prepare(frame);
  return frame;
}

/** Once a sentence was typed into a live scene the keys turn the pages again, and its pictures are fitted. */
async function answer(frame, event) {
  if (event.key !== "Enter" || !inField(event)) return;
  event.composedPath()[0].blur();
  await rest(STARTS);
  frame.fitted = null;
  await arrange(frame);
}

/** Whether it is there; a page does not come where the stage was left meanwhile, or its server does not answer. */
async function arrange(frame) {
  const { turn } = frame;
  const again = isFitted(frame);
  if (!(await still(frame, again ? STILL_AGAIN_FOR : STILL_FOR))) return false;
  if (!(again && (await fitsAgain(frame)))) {
    // A view that comes late, on a busy machine, is measured only once what the scene leaves out of it is gone.
    for (let round = 0; round < ROUNDS && frame.turn === turn && (round === 0 || frame.cover()); round += 1) await fit(frame);
  }
  if (!frame.element.isConnected || frame.turn !== turn) return false;
  frame.unnamed = leaveOutCovered(frame.element.contentDocument);
  return true;
}

async function prepare(frame) {
  const { turn } = frame;
  await rest(0);
  if (frame.turn !== turn) return false;
  const done = await arrange(frame);
  if (frame.turn === turn) Object.assign(frame, { done, arrived: frame.arrived || done });
  return done && frame.turn === turn;
}

const SPARES = 2; // Frames that are kept for scenes to come.

/**
 * Frames with the app's own pages, each the scene of a number, from 0. One that is not needed any more shows another
 * scene. `optionsOf(index)` resolves to those of a frame with a scene (openFrame).
 */
export function liveFrames(box, scenes, listen, optionsOf) {
  const [shown, spare] = [new Map(), []];

  const isUsable = (frame) => !frame.refused && (frame.arrived || ![...shown.values(), ...spare].some((one) => one.arrived));
  /** A page that is still being built goes, unless it is the only one. */
  function leave(index) {
    const frame = shown.get(index);
    shown.delete(index);
    if (isUsable(frame) && spare.length < SPARES) spare.push(frame);
    else frame.remove();
  }
  /** The scene in a frame that is spare; undefined where none is. */
  async function reuse(index) {
    const { fitted } = await optionsOf(index);
    const at = spare.findIndex((frame) => frame.canGoTo(scenes[index]));
    if (shown.has(index) || at < 0) return shown.get(index);
    const [frame] = spare.splice(at, 1);
    shown.set(index, frame);
    frame.goTo(scenes[index], fitted);
    return frame;
  }
  /** The scene in a frame that is spare, or a new one. */
  async function open(index) {
    const options = await optionsOf(index);
    return (await reuse(index)) ?? shown.set(index, openFrame(box, scenes[index], listen, options)).get(index);
  }
  /** The scene in a frame that is there, where need be that of the least needed of the other scenes; undefined without. */
  function goTo(index, others) {
    const least = others.findLast((one) => shown.get(one)?.canGoTo(scenes[index]));
    if (!shown.has(index) && !spare.length && least !== undefined) leave(least);
    return reuse(index);
  }
  const remove = () => [...shown.values(), ...spare].forEach((frame) => frame.remove());
  return { shown, leave, open, goTo, remove };
}
