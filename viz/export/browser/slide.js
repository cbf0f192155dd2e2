import { library } from "./inflate.js";
import { cover } from "../../components/presenter/parts.js";
import { element, shadowed } from "./element.js";
import { fit } from "./fit.js";
import { followed, hears, stateOf } from "./follow.js";

const NEEDS_MODEL = "That needs the running model: open this view in Attenscope.";

/** A component as it stands in the app, and what it tells. */
function component(host, part, view) {
  const parent = shadowed(host, view.file.header.styles[part.name]);
  const mount = view.components[part.name];
  let leave = () => {};
  const draw = () => {
    leave = mount({ data: followed(part, view), parentElement: parent, setTriggerValue: send });
  };
  const send = (name, value) => {
    if (part.name === "decode_player" && (name === "pick" || name === "forbid")) view.says.textContent = NEEDS_MODEL;
    // Once the click is over: the overview has others sketch the head that was chosen, and what follows is exact.
    else if (hears(part, view, name, value)) queueMicrotask(view.redraw);
  };
  view.drawn.push(draw);
  draw();
  return () => leave();
}

/** The room that a chart takes; it is drawn into it once the slide is fitted. */
function chart(host, part, view) {
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", part.alt);
  host.style.height = `${part.figure.layout.height ?? 450}px`;
  view.charts.push(() => drawn(host, part.figure));
  return () => {};
}

/** Plotly finds the mouse under a transform but not under a zoom: inside a slide that is zoomed, its own box is not. */
async function drawn(host, figure) {
  const plotly = await library();
  if (!host.isConnected) return () => {}; // Another slide was asked for meanwhile.
  const box = host.appendChild(element("div", "chart"));
  const place = () => {
    const zoom = host.currentCSSZoom ?? 1;
    Object.assign(box.style, { zoom: 1 / zoom, transform: zoom === 1 ? "none" : `scale(${zoom})`, width: `${host.clientWidth}px` });
    return { width: host.clientWidth };
  };
  await plotly.newPlot(box, figure.data, { ...figure.layout, ...place() }, { displayModeBar: false });
  const sized = new ResizeObserver(() => box.layout.width !== host.clientWidth && plotly.relayout(box, place()));
  sized.observe(host);
  return () => (sized.disconnect(), plotly.purge(box));
}

/** Sizes that follow the window's width would grow twice where a slide is zoomed. */
const SIZES = `
  .decode-player { --small: 1rem; --size: 1.65rem; }
  .decode-player .target { margin-top: 4.2rem; }
  .line[data-size="large"] { font-size: 1.5rem; }`;

const TAGS = { same: "span", new: "ins", gone: "del" };

function words(host, { text, size, marked }) {
  host.classList.add("words", size);
  host.dir = "auto";
  if (marked.length) host.append(...marked.map(([piece, mark]) => element(TAGS[mark], "", piece)));
  else host.textContent = text;
  return () => {};
}

const MOUNT = { component, chart, words };

function mountAll(parent, parts, view) {
  for (const part of parts) {
    if (part.is === "columns") {
      const row = parent.appendChild(element("div", "columns"));
      row.style.setProperty("--shares", part.shares.map((share) => `minmax(0, ${100 * share}fr)`).join(" "));
      for (const column of part.columns) mountAll(row.appendChild(element("div", "column")), column, view);
      continue;
    }
    const host = parent.appendChild(element("div", "part"));
    host.dataset.role = part.role;
    if (view.covered && view.slide.hide.includes(part.role)) host.classList.add("covered");
    view.leaving.push(MOUNT[part.is](host, part, view));
  }
}

/** Fit the slide where it is one of a talk, then draw its charts; a slide that was left meanwhile is let go. */
async function finish(place, inside, view) {
  await view.refit();
  for (const draw of view.charts) {
    const leave = await draw();
    if (inside.isConnected) view.leaving.push(leave);
    else leave();
  }
}

/**
 * Show `slide` in `place`; `ready` resolves once all of it is there, `reveal()` uncovers what it hides and says
 * whether there was anything, `leave()` ends it.
 */
export function show(place, slide, file, components, covered) {
  const says = element("p", "says");
  says.setAttribute("role", "status");
  const view = { slide, file, components, covered, says, drawn: [], charts: [], leaving: [], state: stateOf(slide, file) };
  view.redraw = () => view.drawn.forEach((draw) => draw());
  const inside = element("div", "slide");
  const { talk } = file.header;
  view.refit = () => talk && fit(place, inside, view.state);
  const hide = (parts) => cover(document, parts, slide.omit, talk ? SIZES : ""); // What stands inside a component, as in the app.
  place.replaceChildren(inside);
  if (slide.missing) inside.append(element("p", "missing", slide.missing));
  mountAll(inside, slide.parts, view);
  hide(covered ? slide.hide : []);
  inside.append(says);
  addEventListener("resize", view.refit);
  return {
    ready: finish(place, inside, view),
    leave: () => (removeEventListener("resize", view.refit), view.leaving.forEach((leave) => leave())),
    reveal: () => {
      if (!view.covered || !slide.hide.length) return false;
      view.covered = false;
      inside.querySelectorAll(".covered").forEach((part) => part.classList.remove("covered"));
      hide([]);
      return true;
    },
  };
}
