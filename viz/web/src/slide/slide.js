import { element, shadowed } from "../shared/element.js";
import { pictureHeight } from "../shared/picture.js";
import { say } from "../shared/say.js";
import { cutAgain, cutLists, cutsOf, fitScene, leaveOutCovered, undoCuts } from "../stage/fit.js";
import { ON_STAGE, cover, roots } from "../stage/parts.js";
import { library } from "./inflate.js";
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
  const found = { zoom: 1, picture: null, cuts: [] };
  const set = ({ zoom, picture }) => (put("zoom", zoom), put("--picture", picture));
  const turn = (state.turn = (state.turn ?? 0) + 1);
  const isAsked = () => inside.isConnected && state.turn === turn; // Else the slide was left, or has other room now.
  undoCuts(inside);
  inside.style.visibility = "";
  if (matchMedia(NARROW).matches && !isFramed()) return set(found);
  if (state.fitted === size) {
    set(state.found);
    if (cutAgain(inside, state.found.cuts)) return;
  }
  inside.style.visibility = "hidden";
  const change = (what) => isAsked() && (Object.assign(found, what), set(found), painted());
  try {
    await fitScene({
      tall: () => inside.scrollHeight,
      // Four pictures beside each other fill the width as it is: what is zoomed leaves them less.
      largest: [...roots(inside)].some((root) => root.querySelector(".panels")) ? 1 : undefined,
      room: () => (place.clientHeight - 4) / found.zoom,
      zoom: (zoom) => change({ zoom }),
      cut: (over) => isAsked() && cutLists(inside, over, found.zoom) && painted(),
      picture: (height) => change({ picture: `${height}px` }),
    });
    if (isAsked()) Object.assign(state, { fitted: size, found: { ...found, cuts: cutsOf(inside) } });
  } finally {
    if (state.turn === turn) inside.style.visibility = "";
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

/** The room that a chart takes; it is drawn into it once the slide is fitted. */
function chart(host, part, view) {
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", part.alt);
  const { height = 450 } = part.figure.layout;
  host.style.height = pictureHeight(height);
  view.charts.push(() => drawChart(host, part, view.file.header.talk));
  return () => {};
}

/** How a chart moves, as components say it of themselves (save/film.js). */
const filmOf = (moments, draw) => ({ count: moments.length, seconds: 1.5, show: async (at) => void (await draw(moments[at])) });

const isResized = ({ width, height }, { clientWidth, clientHeight }) => width !== clientWidth || height !== clientHeight;

/** Plotly finds the mouse under a transform but not under a zoom: inside a slide that is zoomed, its own box is not. */
async function drawChart(host, { figure, moments }, projected) {
  const plotly = await library();
  if (!host.isConnected) return () => {}; // Another slide was asked for meanwhile.
  const box = host.appendChild(element("div", "chart"));
  const place = () => {
    const zoom = host.currentCSSZoom ?? 1;
    Object.assign(box.style, { zoom: 1 / zoom, transform: zoom === 1 ? "none" : `scale(${zoom})`, width: `${host.clientWidth}px` });
    return { width: host.clientWidth, height: host.clientHeight };
  };
  await plotly.newPlot(box, figure.data, { ...figure.layout, ...place() }, { displayModeBar: false });
  if (projected) {
    leaveOutCovered(host);
    box.on("plotly_afterplot", () => leaveOutCovered(host));
  }
  if (moments.length) host.film = filmOf(moments, ({ data, layout }) => plotly.react(box, data, { ...layout, ...place() }));
  const sized = new ResizeObserver(() => isResized(box.layout, host) && plotly.relayout(box, place()));
  sized.observe(host);
  return () => (sized.disconnect(), plotly.purge(box));
}

const MATHML = "http://www.w3.org/1998/Math/MathML";

function mathElement([tag, inside]) {
  const one = document.createElementNS(MATHML, tag);
  one.append(...(typeof inside === "string" ? [inside] : inside.map(mathElement)));
  return one;
}

/** Steps of a calculation below each other, set by the browser itself. */
function formula(host, { math }) {
  host.classList.add("formula");
  host.append(mathElement(math));
  return () => {};
}

function tableRow(cells, tags) {
  const row = element("tr");
  row.append(...cells.map(([text, look], at) => element(tags[Math.min(at, tags.length - 1)], look, text)));
  return row;
}

/** A table whose first column names its row; a cell is a text and the class that says how it looks. */
function table(host, { headings, rows, name }) {
  const [made, head, body] = ["table", "thead", "tbody"].map((tag) => element(tag));
  made.setAttribute("aria-label", name);
  head.append(tableRow(headings.map((text) => [text, ""]), ["th"]));
  body.append(...rows.map((cells) => tableRow(cells, ["th", "td"])));
  head.querySelectorAll("th").forEach((one) => (one.scope = "col"));
  body.querySelectorAll("th").forEach((one) => (one.scope = "row"));
  made.append(head, body);
  host.classList.add("table");
  host.append(made);
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
