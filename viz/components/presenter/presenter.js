import { mounted, unmount } from "../shared/mounted.js";
import { guessesOf } from "./guesses.js";
import { inField } from "./keys.js";
import { openShow } from "./show.js";

/** This page as the only scene: its address as it stands now. */
function here(file) {
  const query = new URLSearchParams(location.search);
  for (const name of ["present", "scene", "contrast"]) query.delete(name);
  if (file) query.set("file", file);
  return [{ address: `${location.pathname}?${query}`, title: "", notes: "", point: "", hide: [], omit: [], guess: [] }];
}

/** What the address asks for when the page is opened: `present=1`, and in a talk `scene=3`. */
function sceneAsked() {
  const query = new URLSearchParams(location.search);
  return query.get("present") === "1" ? Math.max(Number(query.get("scene")) || 1, 1) - 1 : null;
}

/** Leave no trace of presenter mode in the address, so that a reload brings the page. */
function leaveNoTrace() {
  const address = new URL(location.href);
  for (const name of ["present", "scene", "contrast"]) address.searchParams.delete(name);
  history.replaceState(history.state, "", address);
  document.documentElement.classList.add("presented");
}

function build(root, view) {
  view.start = (at) => {
    if (view.show) return;
    const scenes = view.scenes ?? here(view.file);
    if (!scenes.length) return;
    const contrast = new URLSearchParams(location.search).get("contrast") === "1";
    view.show = openShow(root, { scenes, title: view.title, at, contrast, numbered: Boolean(view.scenes) }, (scene) => {
      view.show = null;
      leaveNoTrace();
      view.look?.();
      if (view.scenes && scene >= 0) view.tell("left", { scene });
    });
  };
  const listen = (event) => {
    if (event.key !== "p" || event.ctrlKey || event.metaKey || event.altKey || event.repeat || inField(event)) return;
    if (view.show) return;
    event.preventDefault();
    view.start(0);
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
  view.button = button("start", "Start the talk", "Or press p", () => view.start(0));
  view.here = button("here", "Start here", "Begin at the scene that is edited", () => view.start(view.at));
  const guesses = () => guessesOf(view.title, view.scenes);
  view.ofGuesses = [
    button("here", "Save guesses", "What the audience guessed, as CSV", () => guesses().save()),
    button("here", "Clear guesses", "Forget what the audience guessed at this talk", () => (guesses().clear(), view.look())),
  ];
  view.look = () => view.ofGuesses.forEach((one) => (one.hidden = !guesses().any()));
  view.root.prepend(view.button, view.here, ...view.ofGuesses);
}

export default function presenter({ data, parentElement, setTriggerValue }) {
  const view = mounted(parentElement, "presenter", build);
  view.scenes = data.scenes;
  view.title = data.title ?? "";
  view.file = data.file;
  if (data.scenes && !view.button) buttons(view);
  Object.assign(view, { at: data.at, tell: setTriggerValue });
  if (view.button) view.button.disabled = !data.scenes.length;
  if (view.here) view.here.hidden = !data.at;
  view.look?.();
  const at = sceneAsked();
  if (at !== null && !view.asked) view.start(at);
  view.asked = true; // Of the address only once: what follows are changes of the talk.
  return () => unmount(parentElement);
}
