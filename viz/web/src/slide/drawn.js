import { element } from "../shared/element.js";
import { pictureHeight } from "../shared/picture.js";
import { leaveOutCovered } from "../stage/fit.js";
import { library } from "./inflate.js";

/** The room that a chart takes; it is drawn into it once the slide is fitted. */
export function chart(host, part, view) {
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", part.alt);
  const { height = 450 } = part.figure.layout;
  host.style.height = pictureHeight(height);
  view.charts.push(() => drawn(host, part, view.file.header.talk));
  return () => {};
}

/** How a chart moves, as components say it of themselves (save/film.js). */
const filmOf = (moments, draw) => ({ count: moments.length, seconds: 1.5, show: async (at) => void (await draw(moments[at])) });

const isResized = ({ width, height }, { clientWidth, clientHeight }) => width !== clientWidth || height !== clientHeight;

/** Plotly finds the mouse under a transform but not under a zoom: inside a slide that is zoomed, its own box is not. */
async function drawn(host, { figure, moments }, projected) {
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

function made([tag, inside]) {
  const one = document.createElementNS(MATHML, tag);
  one.append(...(typeof inside === "string" ? [inside] : inside.map(made)));
  return one;
}

/** Steps of a calculation below each other, set by the browser itself. */
export function formula(host, { math }) {
  host.classList.add("formula");
  host.append(made(math));
  return () => {};
}

function rowOf(cells, tags) {
  const row = element("tr");
  row.append(...cells.map(([text, look], at) => element(tags[Math.min(at, tags.length - 1)], look, text)));
  return row;
}

/** A table whose first column names its row; a cell is a text and the class that says how it looks. */
export function table(host, { headings, rows, name }) {
  const [made, head, body] = ["table", "thead", "tbody"].map((tag) => element(tag));
  made.setAttribute("aria-label", name);
  head.append(rowOf(headings.map((text) => [text, ""]), ["th"]));
  body.append(...rows.map((cells) => rowOf(cells, ["th", "td"])));
  head.querySelectorAll("th").forEach((one) => (one.scope = "col"));
  body.querySelectorAll("th").forEach((one) => (one.scope = "row"));
  made.append(head, body);
  host.classList.add("table");
  host.append(made);
  return () => {};
}
