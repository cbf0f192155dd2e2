import { isShortcut } from "../shared/events.js";
import { mounted, unmount } from "../shared/mounted.js";
import { listed, say, sentences } from "../shared/say.js";
import { guessesOf } from "../talk/ballot.js";
import { inField } from "../studio/frame.js";
import { isRehearsing, keptKeys, keyOf, tellRehearsing } from "../studio/kept.js";
import { keptText } from "../shell/stored.js";
import { rehearse } from "./rehearse.js";
import { openShow } from "./show.js";

const COMES_WITHIN = 10_000; // Milliseconds.

/** This page as the only scene: its address as it stands now. */
function here(file) {
  const query = new URLSearchParams(location.search);
  for (const name of ["present", "scene", "contrast"]) query.delete(name);
  if (file) query.set("kept", file);
  return [{ address: `${location.pathname}?${query}`, title: "", notes: "", point: "", hide: [], omit: [], guess: [], choices: [], sentence: "" }];
}

/** What the address asks for when the page is opened: `present=1`, and in a talk `scene=3`. */
function sceneAsked() {
  const query = new URLSearchParams(location.search);
  return query.get("present") === "1" ? Math.max(Number(query.get("scene")) || 1, 1) - 1 : null;
}

/** Say in the address which scene is shown, from 0, so that a reload comes back to it; null: none is. */
function writeScene(scene) {
  const address = new URL(location.href);
  for (const name of ["present", "scene", ...(scene === null ? ["contrast"] : [])]) address.searchParams.delete(name);
  if (scene !== null) Object.entries({ present: 1, scene: scene + 1 }).forEach((pair) => address.searchParams.set(...pair));
  history.replaceState(history.state, "", address);
}

function build(root, view) {
  view.start = (at) => {
    if (view.show) return;
    const scenes = view.scenes ?? here(view.file);
    if (!scenes.length) return;
    const contrast = new URLSearchParams(location.search).get("contrast") === "1";
    view.shown = { scenes, own: view.own };
    const moved = (scene) => view.scenes && writeScene(scene);
    const closed = (scene) => {
      view.show = null;
      writeScene(null); // A reload brings the page.
      document.documentElement.classList.add("presented");
      view.look?.();
      if (view.scenes && scene >= 0) view.tell("left", { scene });
    };
    view.show = openShow(root, { scenes, title: view.title, at, contrast, numbered: Boolean(view.scenes), keyOf: view.keyOf, script: view.script }, { moved, closed });
  };
  /**
   * Once the visitor's own talk has come back from where the browser keeps it, and then its files, it takes the place of
   * what is shown. A server that was started again has neither at first: what is on the stage stays there.
   */
  view.renew = () => {
    const { scenes, own } = view.shown;
    if (!view.own || (own && view.scenes.length < scenes.length) || JSON.stringify(view.scenes) === JSON.stringify(scenes)) return;
    view.show.close(false);
    view.show = null;
    view.start(sceneAsked() ?? 0);
  };
  const listen = (event) => {
    if (event.key.toLowerCase() !== "p" || isShortcut(event) || event.repeat || inField(event)) return;
    if (view.show) return;
    event.preventDefault();
    const at = event.shiftKey && view.scenes ? view.at : 0;
    if (view.scenes) writeScene(at);
    view.start(at);
  };
  document.addEventListener("keydown", listen);
  return { dispose: () => (document.removeEventListener("keydown", listen), view.show?.close()) };
}

function button(className, text, title, act) {
  const made = document.createElement("button");
  Object.assign(made, { className, textContent: text, title, onclick: act });
  return made;
}

function buttons(view) {
  view.button = button("start", say("Start the talk"), say("Or press p"), () => begin(0));
  view.here = button("here", say("Start here"), say("Begin at the scene that is edited, or press Shift+P"), () => begin(view.at));
  const begin = (at) => (writeScene(at), view.start(at));
  const guesses = () => guessesOf(view.title, view.scenes);
  view.ofGuesses = [
    button("here", say("Save guesses"), say("What the audience guessed, as CSV"), () => guesses().save()),
    button("here", say("Clear guesses"), say("Forget what the audience guessed at this talk"), () => (guesses().clear(), view.look())),
  ];
  view.look = () => view.ofGuesses.forEach((one) => (one.hidden = !guesses().any()));
  view.rehearse = button("here", say("Rehearse"), say("Draw all scenes now: this browser keeps them, and shows them at once"), () => toggleRehearsal(view));
  view.ready = document.createElement("span");
  view.ready.className = "ready";
  view.ready.setAttribute("role", "status");
  view.root.prepend(view.button, view.here, view.rehearse, view.ready, ...view.ofGuesses);
}

/** Say how many scenes this browser has kept as they now are. */
async function sayReady(view, said = "") {
  const there = new Set(await keptKeys());
  tellReady(view, view.scenes.filter((scene) => there.has(view.keyOf(scene))).length, said);
}

function tellReady(view, done, said = "") {
  const count = view.scenes.length;
  const all = done === count && count > 0;
  view.rehearse.textContent = isRehearsing() ? say("Stop") : say("Rehearse");
  view.rehearse.hidden = all || !count;
  const ready = all ? say("{done} of {count} ready, works without a network", { done, count }) : say("{done} of {count} ready", { done, count });
  view.ready.textContent = done || said || isRehearsing() ? sentences(ready, said) : "";
}

async function toggleRehearsal(view) {
  if (isRehearsing()) return tellRehearsing(false);
  tellRehearsing(true);
  const { scenes, keyOf: key } = view;
  const isStopped = () => !isRehearsing() || !view.root.isConnected || view.show || view.scenes !== scenes;
  const told = (done) => view.scenes === scenes && tellReady(view, done);
  const { lost, isFull } = await rehearse(view.root, scenes, key, { told, isStopped }).finally(() => tellRehearsing(false));
  const numbers = listed(lost.map((at) => at + 1));
  if (isFull) await sayReady(view, say("This browser keeps no more: its storage is full, or closed to pages."));
  else if (lost.length) tellReady(view, scenes.length - lost.length, say("Did not come: {numbers}", { numbers }));
  else await sayReady(view);
}

/** Whether the browser keeps a talk that the page has yet to ask for (components/draft). */
function comesBack(view) {
  return Boolean(view.scenes) && !view.own && keptText("attenscope-talk") !== "";
}

/** Start as the address asks, only once: what follows are changes of the talk. */
function startAsked(view, patient = true) {
  const at = sceneAsked();
  if (view.asked || at === null || !(patient && comesBack(view))) {
    if (at !== null && !view.asked) view.start(at);
    view.asked = true;
  } else view.patience ??= setTimeout(() => startAsked(view, false), COMES_WITHIN);
}

export default function presenter({ data, parentElement, setTriggerValue }) {
  const view = mounted(parentElement, "presenter", build);
  if (JSON.stringify(data.scenes) !== JSON.stringify(view.scenes)) view.scenes = data.scenes; // The same ones stay: a rehearsal goes on.
  view.keyOf = (scene) => keyOf(scene, data);
  view.title = data.title ?? "";
  view.file = data.file;
  view.script = data.script;
  view.own = data.own;
  if (data.scenes && !view.button) buttons(view);
  Object.assign(view, { at: data.at, tell: setTriggerValue });
  if (view.button) view.button.disabled = !data.scenes.length;
  if (view.here) view.here.hidden = !data.at;
  view.look?.();
  if (view.ready && !isRehearsing()) sayReady(view);
  if (view.show && view.scenes?.length) view.renew();
  startAsked(view);
  return () => unmount(parentElement);
}
