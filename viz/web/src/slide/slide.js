import { element, shadowed } from "../shared/element.js";
import { say } from "../shared/say.js";
import { cutLists, fitScene } from "../stage/fit.js";
import { cover, roots } from "../stage/parts.js";
import { ON_STAGE } from "../stage/stage.js";
import { chart, formula, table } from "./drawn.js";
import { followed, hears, stateOf } from "./follow.js";

const NARROW = "(max-width: 1000px)"; // There it is a page to scroll, as its style sheet says too, but not in a frame.

/** Whether the file stands in another page: the place it is given is then all the room there is. */
export const isFramed = () => window !== window.parent;

const painted = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

/**
 * Fit a slide of a talk into the room that `place` has for it, as the app fits a scene. Found once for every size of
 * the window and kept in `state`: who comes back sees it at once.
 */
async function fit(place, inside, state) {
  const size = `${innerWidth} ${innerHeight} ${place.clientHeight}`;
  const put = (name, value) => inside.style.setProperty(name, value);
  const found = { zoom: 1, picture: null };
  const set = ({ zoom, picture }) => (put("zoom", zoom), put("--picture", picture));
  if (matchMedia(NARROW).matches && !isFramed()) return set(found);
  if (state.fitted === size) return set(state.found);
  inside.style.visibility = "hidden";
  const change = (what) => (Object.assign(found, what), set(found), painted());
  try {
    await fitScene({
      tall: () => inside.scrollHeight,
      // Four pictures beside each other fill the width as it is: what is zoomed leaves them less.
      largest: [...roots(inside)].some((root) => root.querySelector(".panels")) ? 1 : undefined,
      room: () => (place.clientHeight - 4) / found.zoom,
      zoom: (zoom) => change({ zoom }),
      cut: (over) => cutLists(inside, over, found.zoom) && painted(),
      picture: (height) => change({ picture: `${height}px` }),
    });
    Object.assign(state, { fitted: size, found });
  } finally {
    inside.style.visibility = "";
  }
}

export const NEEDS_MODEL = say("That needs the running model: open this view in Attenscope.");

/** A component as it stands in the app, and what it tells. */
function component(host, part, view) {
  const parent = shadowed(host, view.file.header.styles[part.name]);
  const mount = view.components[part.name];
  let leave = () => {};
  const draw = () => {
    leave = mount({ data: followed(part, view), parentElement: parent, setTriggerValue: send });
  };
  const send = (name, value) => {
    if (part.name === "decode_player" && (name === "pick" || name === "forbid")) view.run(name, value);
    // Once the click is over: the overview has others sketch the head that was chosen, and what follows is exact.
    else if (hears(part, view, name, value)) queueMicrotask(view.redraw);
    view.told?.(part, name, value);
  };
  view.drawn.push(draw);
  draw();
  return () => leave();
}

const TAGS = { same: "span", new: "ins", gone: "del" };

function words(host, { text, size, marked }) {
  host.classList.add("words", size);
  host.dir = "auto";
  if (marked.length) host.append(...marked.map(([piece, mark]) => element(TAGS[mark], "", piece)));
  else host.textContent = text;
  return () => {};
}

const MOUNT = { component, chart, words, table, formula };

const isSentence = (part, { live }) => live && part.role === "sentence"; // It stands in the box.

/** Mount `parts`, one below the other; `view.told(part, name, value)` hears what components tell. */
export function mountAll(parent, parts, view) {
  for (const part of parts) {
    if (isSentence(part, view)) continue;
    if (part.is === "columns") {
      const row = parent.appendChild(element("div", "columns"));
      row.style.setProperty("--shares", part.shares.map((share) => `minmax(0, ${100 * share}fr)`).join(" "));
      for (const column of part.columns) mountAll(row.appendChild(element("div", "column")), column, view);
      continue;
    }
    const host = parent.appendChild(element("div", "part"));
    host.dataset.role = part.role;
    view.leaving.push(MOUNT[part.is](host, part, view));
  }
}

/** What was saved of a scene that takes sentences, below its box, until a model's answer stands in its place. */
function mountLive(inside, view) {
  const { live, slide } = view;
  const saved = element("div");
  inside.append(live.form, live.asked ? live.host : saved);
  if (!live.asked) mountAll(saved, slide.parts, view);
  live.drawn = (anew) => {
    live.asked = true;
    if (anew) view.state.fitted = null;
    if (!inside.isConnected) return; // Another slide was asked for meanwhile.
    if (saved.isConnected) saved.replaceWith(live.host);
    view.dress();
    if (anew) view.refit();
  };
  live.prepare();
}

/** The box of a live scene, as long as the file is open; null where the scene is not live, or cannot be here. */
function liveOf(slide, file, state, says) {
  if (!slide.live || !file.live) return null;
  if (!file.live.lacks) return (state.live ??= file.live.open(slide, says));
  says.textContent = file.live.lacks;
  return null;
}

/** Fit the slide where it is one of a talk, then draw its charts; a slide that was left meanwhile is let go. */
async function finish(inside, view) {
  await view.refit();
  for (const draw of view.charts) {
    const leave = await draw();
    if (inside.isConnected) view.leaving.push(leave);
    else leave();
  }
}

/**
 * Show `slide` in `place`; `ready` resolves once all of it is there, `refit()` fits it to other room, `reveal()`
 * uncovers what it hides and says whether there was anything, `leave()` ends it.
 */
export function show(place, slide, file, components, covered) {
  const state = stateOf(slide, file);
  const says = slide.live ? (state.says ??= element("p", "says")) : element("p", "says");
  says.setAttribute("role", "status");
  const view = { slide, file, components, covered, says, state, drawn: [], charts: [], leaving: [], live: liveOf(slide, file, state, says) };
  view.redraw = () => view.drawn.forEach((draw) => draw());
  view.run = (name, value) => (view.live ? view.live.hear(name, value) : (says.textContent = NEEDS_MODEL));
  const inside = element("div", "slide");
  const { talk } = file.header;
  view.refit = () => talk && fit(place, inside, state);
  // What stands inside a component is covered as in the app.
  view.dress = () => {
    const hidden = view.covered ? slide.hide : [];
    for (const part of inside.querySelectorAll("[data-role]")) part.classList.toggle("covered", hidden.includes(part.dataset.role));
    cover(document, hidden, slide.omit, talk ? ON_STAGE : "");
  };
  place.replaceChildren(inside);
  if (slide.missing) inside.append(element("p", "missing", slide.missing));
  if (view.live) mountLive(inside, view);
  else mountAll(inside, slide.parts, view);
  view.dress();
  inside.append(says);
  addEventListener("resize", view.refit);
  return {
    ready: finish(inside, view),
    refit: view.refit,
    leave: () => (removeEventListener("resize", view.refit), view.leaving.forEach((leave) => leave())),
    reveal: () => {
      if (!view.covered || !slide.hide.length) return false;
      view.covered = false;
      view.dress();
      return true;
    },
  };
}
