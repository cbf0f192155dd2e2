import { arrowKeys } from "../shared/mounted.js";

/** One button for each of the chart's nodes, so that whoever uses no mouse can choose them; the mouse passes through. */
export function buildNodes(root, label, nodes, choose) {
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
  box.onkeydown = (event) => move(event, nodes, buttons);
  root.append(box);
  return { box, buttons, nodes };
}

/** Up and down within a column, left and right to the nearest node of the next one; Home and End to either end. */
function move(event, nodes, buttons) {
  const from = nodes[buttons.indexOf(event.target)];
  const across = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const down = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!from || (!across && !down)) return arrowKeys(event, buttons, 1);
  const distance = ({ row, column }) => {
    if (across) return column === from.column + across ? Math.abs(row - from.row) : Infinity;
    return column === from.column && (row - from.row) * down > 0 ? Math.abs(row - from.row) : Infinity;
  };
  const nearest = nodes.reduce((best, one) => (distance(one) < distance(best) ? one : best));
  event.preventDefault();
  if (distance(nearest) === Infinity) return;
  const to = buttons[nodes.indexOf(nearest)];
  for (const button of buttons) button.tabIndex = button === to ? 0 : -1;
  to.focus();
}

/** Put every button where the chart has its node. */
export function placeNodes({ box, buttons, nodes }, plot) {
  const [from, to] = [plot.getBoundingClientRect(), box.getBoundingClientRect()];
  const { xaxis, yaxis } = plot._fullLayout;
  nodes.forEach(({ row, column }, i) => {
    buttons[i].style.left = `${from.left - to.left + xaxis._offset + xaxis.d2p(column)}px`;
    buttons[i].style.top = `${from.top - to.top + yaxis._offset + yaxis.d2p(row)}px`;
  });
}
