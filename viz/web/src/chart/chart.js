import { mounted, unmount, walk } from "../shared/mounted.js";

/** One button for each of the chart's nodes, so that whoever uses no mouse can choose them; the mouse passes through. */
function buildNodes(root, label, nodes, choose) {
  const box = document.createElement("div");
  box.className = "nodes";
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", label);
  const buttons = nodes.map((node, i) => {
    const button = document.createElement("button");
    button.setAttribute("aria-label", node.name);
    button.tabIndex = i ? -1 : 0;
    button.onclick = () => choose(node);
    return button;
  });
  box.append(...buttons);
  box.onkeydown = (event) => walk(event, nodes, buttons);
  root.append(box);
  return { box, buttons, nodes };
}

/** Put every button where the chart has its node. */
function placeNodes({ box, buttons, nodes }, plot) {
  const [from, to] = [plot.getBoundingClientRect(), box.getBoundingClientRect()];
  const { xaxis, yaxis } = plot._fullLayout;
  nodes.forEach(({ row, column }, i) => {
    buttons[i].style.left = `${from.left - to.left + xaxis._offset + xaxis.d2p(column)}px`;
    buttons[i].style.top = `${from.top - to.top + yaxis._offset + yaxis.d2p(row)}px`;
  });
}

const painted = (plot) => plot?.querySelector(".cartesianlayer .hm image, .cartesianlayer .point, .cartesianlayer .js-line");

/** A copy of the drawing that stands still where the drawing stands. */
function still(plot, root) {
  const [from, to] = [plot.getBoundingClientRect(), root.getBoundingClientRect()];
  const copy = document.createElement("div");
  copy.className = "still";
  copy.setAttribute("aria-hidden", "true");
  Object.assign(copy.style, { left: `${from.left - to.left}px`, top: `${from.top - to.top}px` });
  copy.style.width = `${from.width}px`;
  copy.style.height = `${from.height}px`;
  for (const drawing of plot.querySelectorAll(".main-svg")) copy.append(drawing.cloneNode(true));
  return copy;
}

const SAME_COLUMN = 2; // Pixels between the middles of numbers that stand below each other, at most.

/** Leave out the numbers in the cells of a heatmap where one would stand on the next. */
function fitNumbers(plot) {
  for (const map of plot.querySelectorAll(".hm")) {
    const labels = [...map.querySelectorAll(".heatmap-label")];
    for (const label of labels) label.style.display = "";
    const boxes = labels.map((label) => label.getBoundingClientRect());
    const middles = boxes.map(({ left, width }) => left + width / 2).sort((one, other) => one - other);
    const steps = middles.slice(1).map((at, i) => at - middles[i]);
    const step = Math.min(...steps.filter((one) => one > SAME_COLUMN));
    const meet = boxes.some(({ width }) => width > step);
    for (const label of labels) label.style.display = meet ? "none" : "";
  }
}

/** Keep as many names of slanted columns as can be read: where they would lie on each other, every second or third. */
function fitColumnNames(plot) {
  const axes = Map.groupBy(plot.querySelectorAll('[class^="x"][class$="tick"] > text'), (name) => name.parentElement.className.baseVal);
  for (const named of axes.values()) {
    const placed = named.map((name) => /translate\(([\d.]+),.*rotate\((-?[\d.]+)/.exec(name.getAttribute("transform")));
    const [first, second] = placed.map((place) => Number(place?.[1]));
    const turned = Number(placed[0]?.[2] ?? 0);
    const apart = (second - first) * Math.abs(Math.sin((turned * Math.PI) / 180));
    const every = apart > 0 ? Math.ceil((Number.parseFloat(getComputedStyle(named[0]).fontSize) * 0.9) / apart) : 1;
    named.forEach((name, i) => {
      name.style.display = i % every ? "none" : "";
    });
  }
}

/**
 * Watches the chart beside this component. Streamlit mounts a chart anew whenever its data changes, which leaves a
 * blank for a few frames: until the next one is painted, the last one's copy covers it.
 */
function watch(root, frame, view) {
  if (!frame) return () => {}; // Another view was chosen before this one was up.
  let seen = null;
  let copy = null;
  const look = () => {
    const plot = frame.querySelector(".js-plotly-plot");
    if (plot && plot === seen) return;
    if (!painted(plot)) {
      if (copy && !copy.isConnected) root.append(copy);
      return;
    }
    copy?.remove();
    seen = plot;
    const fit = () => (fitNumbers(plot), fitColumnNames(plot), view.place?.(plot));
    fit();
    copy = still(plot, root);
    plot.on("plotly_afterplot", fit); // Drawn anew where the window is another.
    plot.on("plotly_click", ({ points: [point] }) => view.send({ row: point.y, column: point.x }));
  };
  const observer = new MutationObserver(look);
  observer.observe(frame, { childList: true, subtree: true });
  look();
  return () => observer.disconnect();
}

/** The nodes that keys go to, built anew when the chart's nodes are others. */
function reach(view, { label, nodes }) {
  const identity = JSON.stringify(nodes);
  if (!nodes.length || view.identity === identity) return;
  view.identity = identity;
  view.reached?.box.remove();
  view.reached = buildNodes(view.root, label, nodes, ({ row, column }) => view.send({ row, column }));
  view.place = (plot) => placeNodes(view.reached, plot);
  const plot = view.frame?.querySelector(".js-plotly-plot");
  if (painted(plot)) view.place(plot);
}

export default function chart({ data, parentElement, setTriggerValue }) {
  const view = mounted(parentElement, data.frame, (root, made) => {
    const frame = document.querySelector(`.st-key-${data.frame}`);
    return { frame, dispose: watch(root, frame, made) };
  });
  view.send = (cell) => setTriggerValue("cell", cell);
  reach(view, data);
  return () => unmount(parentElement);
}
