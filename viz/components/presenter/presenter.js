import { mounted, unmount } from "../shared/mounted.js";
import { inField } from "./keys.js";
import { openShow } from "./show.js";

/** This page as the only scene: its address as it stands now. */
function here(file) {
  const query = new URLSearchParams(location.search);
  for (const name of ["present", "scene", "contrast"]) query.delete(name);
  if (file) query.set("file", file);
  return [{ address: `${location.pathname}?${query}`, title: "", notes: "", point: "", hide: [], omit: [] }];
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

function buttons(view) {
  const start = document.createElement("button");
  start.className = "start";
  start.textContent = "Start the talk";
  start.title = "Or press p";
  start.onclick = () => view.start(0);
  const here = document.createElement("button");
  here.className = "here";
  here.textContent = "Start here";
  here.title = "Begin at the scene that is edited";
  here.onclick = () => view.start(view.at);
  view.root.prepend(start, here);
  Object.assign(view, { button: start, here });
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
  const at = sceneAsked();
  if (at !== null && !view.asked) view.start(at);
  view.asked = true; // Of the address only once: what follows are changes of the talk.
  return () => unmount(parentElement);
}
