import { isShortcut } from "../shared/events.js";
import { mounted, unmount } from "../shared/mounted.js";
import { unpack } from "../shared/packed.js";
import { drawn, pictureHeight } from "../shared/picture.js";
import { LANGUAGE, written } from "../shared/say.js";
import { leaveOutCovered, moveInside, picture, scales } from "./drawing.js";

const DRAG = 6; // Pixels that a pointer moves before a click becomes a box.

/** Let a box be drawn with the mouse; `chosen` hears of its left, right, low and high in the coordinates of the axes. */
function brushing(view, at, scale, chosen) {
  let from = null;
  const corners = (to) => [0, 1].map((i) => [Math.min(from[i], to[i]), Math.max(from[i], to[i])]);
  view.plot.onpointerdown = (event) => {
    if (event.button === 0 && event.pointerType === "mouse") from = at(event);
  };
  view.plot.onpointermove = (event) => {
    if (!from) return;
    const to = at(event);
    if (!view.box.isConnected && Math.hypot(to[0] - from[0], to[1] - from[1]) < DRAG) return;
    if (!view.box.isConnected) {
      view.svg.append(view.box);
      view.plot.setPointerCapture(event.pointerId);
    }
    const [[left, right], [top, bottom]] = corners(to);
    for (const [name, value] of Object.entries({ x: left, y: top, width: right - left, height: bottom - top }))
      view.box.setAttribute(name, value);
  };
  view.plot.onpointerup = (event) => {
    if (from && view.box.isConnected) {
      const [[left, right], [top, bottom]] = corners(at(event));
      view.brushed = true;
      chosen([...[left, right].map(scale().valueX), ...[bottom, top].map(scale().valueY)]);
    }
    from = null;
    view.box.remove();
  };
  view.plot.onpointercancel = () => {
    from = null;
    view.box.remove();
  };
}

function build(root, view) {
  root.className = "curves";
  const [title, readout, plot] = ["title", "readout", "plot"].map((name) => {
    const made = document.createElement("div");
    made.className = name;
    root.append(made);
    return made;
  });
  plot.tabIndex = 0;
  plot.setAttribute("role", "img");
  const svg = drawn("svg", {});
  const ring = drawn("circle", { class: "ring", r: 7 });
  const box = drawn("rect", { class: "box" });
  plot.append(svg);
  const observer = new ResizeObserver(() => view.draw?.());
  observer.observe(plot);
  return { title, readout, plot, svg, ring, box, dispose: () => observer.disconnect() };
}

/** A colour and what it is, beside the title. */
function entry([name, colour]) {
  const made = document.createElement("span");
  made.className = "entry";
  const dot = document.createElement("span");
  dot.className = "dot";
  dot.style.background = colour;
  made.append(dot, name);
  return made;
}

/** The marks with their numbers, which stand behind the header one after another. */
function numbered(marks, body) {
  const numbers = new Float32Array(body.slice().buffer);
  let next = 0;
  const take = (count) => numbers.subarray(next, (next += count));
  return marks.map((mark) => ({ ...mark, points: take(2 * mark.count), values: take(mark.columns * mark.count) }));
}

/** Python's own way of writing a number into a text: {x}, {0:.4f}, {0:,.1f}, {1:.1e}; and {name}. */
function filled({ says, points, values, columns, names }, at) {
  return says.replace(/\{(\w+)(?::(,?)\.(\d)([ef]))?\}/g, (_, name, comma, digits, form) => {
    if (name === "name") return names[at];
    const value = name === "x" ? points[2 * at] : values[at * columns + Number(name)];
    if (form === "e") return written(value.toExponential(digits));
    const fixed = { minimumFractionDigits: digits ?? 0, maximumFractionDigits: digits ?? 0, useGrouping: Boolean(comma) };
    return value.toLocaleString(LANGUAGE, fixed).replaceAll("-", "−");
  });
}

/** The point nearest to (x, y) in pixels, as mark and number; null where there is none to be read. */
function nearest(marks, scale, x, y) {
  let [found, least] = [null, Infinity];
  marks.forEach(({ says, points }, mark) => {
    for (let at = 0; says && at < points.length / 2; at += 1) {
      const distance = Math.hypot(scale.x(points[2 * at]) - x, scale.y(points[2 * at + 1]) - y);
      if (distance < least) [found, least] = [{ mark, at }, distance];
    }
  });
  return found;
}

/** The point that an arrow key leads to: along the mark, or to the next mark that can be read; null where none can. */
function beside(marks, from, key) {
  const readable = marks.map((_, mark) => mark).filter((mark) => marks[mark].says && marks[mark].count);
  if (!from) return readable.length ? { mark: readable[0], at: 0 } : null;
  const within = (at, mark) => Math.min(Math.max(at, 0), marks[mark].count - 1);
  const along = { ArrowLeft: -1, ArrowRight: 1 }[key];
  if (along) return { mark: from.mark, at: within(from.at + along, from.mark) };
  const row = readable.indexOf(from.mark) + { ArrowUp: -1, ArrowDown: 1 }[key];
  const mark = readable[Math.min(Math.max(row, 0), readable.length - 1)];
  return { mark, at: within(from.at, mark) };
}

export default function curves({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const marks = numbered(header.marks, body);
  const view = mounted(parentElement, "curves", build);
  let scale = null;
  view.title.replaceChildren(header.title, ...header.legend.map(entry));
  view.plot.setAttribute("aria-label", header.title);
  view.plot.style.height = pictureHeight(header.height);
  view.draw = () => {
    const { clientWidth: width, clientHeight: height } = view.plot;
    scale = scales({ ...header, height }, width);
    view.svg.setAttribute("width", width);
    view.svg.setAttribute("height", height);
    view.svg.replaceChildren(...picture(header, marks, scale), view.ring);
    const notes = [...view.svg.querySelectorAll(".note")];
    moveInside(notes, width);
    leaveOutCovered(notes);
  };
  const read = (point) => {
    view.at = point;
    view.readout.textContent = point ? filled(marks[point.mark], point.at) : "";
    view.ring.style.display = point ? "" : "none";
    if (!point) return;
    const { points, colour } = marks[point.mark];
    const place = { cx: scale.x(points[2 * point.at]), cy: scale.y(points[2 * point.at + 1]), stroke: colour };
    for (const [name, value] of Object.entries(place)) view.ring.setAttribute(name, value);
  };
  const at = (event) => {
    const box = view.plot.getBoundingClientRect();
    const grown = box.width / view.plot.clientWidth; // On the whole screen the frame is drawn larger than it is laid out.
    return [(event.clientX - box.left) / grown, (event.clientY - box.top) / grown];
  };
  const under = (event) => nearest(marks, scale, ...at(event));
  if (header.brush) brushing(view, at, () => scale, (box) => setTriggerValue("box", box));
  view.draw();
  read(null);
  view.plot.onmousemove = (event) => read(under(event));
  view.plot.onmouseleave = view.plot.onblur = () => read(null);
  view.plot.onclick = (event) => {
    const point = under(event);
    if (point && !view.brushed) setTriggerValue("point", point); // A box that is let go of is no click.
    view.brushed = false;
  };
  view.plot.onkeydown = (event) => {
    if (isShortcut(event)) return;
    if (event.key === "Enter" && view.at) setTriggerValue("point", view.at);
    else if (event.key.startsWith("Arrow")) read(beside(marks, view.at, event.key));
    else return;
    event.preventDefault();
  };
  view.root.picture = { of: view.root, without: ".readout, .ring" };
  view.root.dataset.painted = header.title;
  return () => unmount(parentElement);
}
