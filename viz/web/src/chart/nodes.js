import { walk } from "../shared/walk.js";

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
  box.onkeydown = (event) => walk(event, nodes, buttons);
  root.append(box);
  return { box, buttons, nodes };
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
