import { drawn, leastType } from "../shared/picture.js";
import { mounted, unmount, walk } from "../shared/mounted.js";

const ROW = 44; // Pixels from one candidate to the next below it.
const LOWEST = 27; // The same where the style sheet says how high the tree is.
const NARROWEST = 46; // Pixels of a step: where there are more than fit, the tree is scrolled.
const MARGIN = { top: 26, bottom: 26, side: 24 };

const place = (node, step, row) => ({ x: MARGIN.side + (node.column + 0.5) * step, y: MARGIN.top + (node.row + 0.5) * row });

const MARKS = {
  alive: () => drawn("circle", { class: "mark", r: 5 }),
  finished: () => drawn("rect", { class: "mark", x: -5, y: -5, width: 10, height: 10 }),
  pruned: () => drawn("path", { class: "mark", d: "M-3.5 -3.5L3.5 3.5M3.5 -3.5L-3.5 3.5" }),
};

function nodeOf(node) {
  const group = drawn("g", { class: `node ${node.fate}`, role: "button", tabindex: -1, "aria-label": node.name });
  group.classList.toggle("best", node.best);
  group.append(drawn("circle", { class: "reach", r: 12 }), MARKS[node.fate](), drawn("title", {}, node.note));
  if (node.fate !== "pruned") group.append(drawn("text", { y: -11, "text-anchor": "middle" }, node.text));
  return group;
}

function legend(fates) {
  const row = document.createElement("div");
  row.className = "legend";
  for (const [fate, name] of Object.entries(fates)) {
    const sign = drawn("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14, "aria-hidden": true });
    const group = drawn("g", { class: `node ${fate}` });
    group.append(MARKS[fate]());
    sign.append(group);
    const item = document.createElement("span");
    item.append(sign, name);
    row.append(item);
  }
  return row;
}

function build(root, view, { label, nodes, fates }) {
  root.className = "beam-tree";
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  const svg = drawn("svg", { role: "group", "aria-label": label });
  const edges = nodes.map(({ parent, best }) => (parent === null ? null : drawn("path", { class: best ? "edge best" : "edge" })));
  const groups = nodes.map(nodeOf);
  const steps = 1 + Math.max(0, ...nodes.map(({ column }) => column));
  const numbers = Array.from({ length: steps }, (_, at) => drawn("text", { class: "step", "text-anchor": "middle" }, `${at + 1}`));
  // What is on the best way lies over the rest.
  const sorted = edges.filter(Boolean).sort((one, other) => one.classList.contains("best") - other.classList.contains("best"));
  svg.append(...sorted, ...groups, ...numbers);
  scroll.append(svg);
  root.append(scroll, legend(fates));
  root.picture = { of: svg };
  const rows = 1 + Math.max(0, ...nodes.map(({ row }) => row));
  const lay = () => {
    const step = Math.max(NARROWEST, (root.clientWidth - 2 * MARGIN.side) / Math.max(steps, 8));
    const row = leastType(root) ? Math.max(LOWEST, (scroll.clientHeight - MARGIN.top - MARGIN.bottom) / rows) : ROW;
    const [width, height] = [2 * MARGIN.side + steps * step, MARGIN.top + rows * row + MARGIN.bottom];
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    Object.assign(svg.style, { width: `${width}px`, height: `${height}px` });
    nodes.forEach((node, at) => {
      const { x, y } = place(node, step, row);
      groups[at].setAttribute("transform", `translate(${x},${y})`);
      if (!edges[at]) return;
      const from = place(nodes[node.parent], step, row);
      edges[at].setAttribute("d", `M${from.x} ${from.y}L${x} ${y}`);
    });
    numbers.forEach((number, at) => {
      number.setAttribute("x", place({ column: at, row: 0 }, step, row).x);
      number.setAttribute("y", height - 6);
    });
  };
  const observer = new ResizeObserver(lay);
  observer.observe(root);
  observer.observe(scroll);
  lay();
  return { groups, svg, dispose: () => observer.disconnect() };
}

export default function beamTree({ data, parentElement, setTriggerValue }) {
  const { nodes, chosen } = data;
  const view = mounted(parentElement, JSON.stringify(nodes), (root, made) => build(root, made, data));
  const { groups, svg } = view;
  groups.forEach((group, at) => {
    group.classList.toggle("chosen", at === chosen);
    group.setAttribute("tabindex", at === Math.max(chosen, 0) ? 0 : -1);
  });
  const choose = (at) => at >= 0 && setTriggerValue("node", { row: nodes[at].row, column: nodes[at].column });
  svg.onclick = ({ target }) => choose(groups.indexOf(target.closest(".node")));
  svg.onkeydown = (event) => {
    const at = groups.indexOf(event.target);
    if (at < 0) return;
    if (event.key !== "Enter" && event.key !== " ") return walk(event, nodes, groups);
    event.preventDefault();
    choose(at);
  };
  return () => unmount(parentElement);
}
