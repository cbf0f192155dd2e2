import { arrowKeys } from "./mounted.js";

/** Up and down within a column, left and right to the nearest node of the next one; Home and End to either end. */
export function walk(event, nodes, buttons) {
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
