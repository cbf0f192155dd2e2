import { widgetOf } from "./widget.js";

const BUSY = "input, textarea, select, button, a, [role=radio], [role=slider], [role=combobox], [role=option], [contenteditable]";

/** Keys work wherever no other control has the focus, so that a speaker need not click first; in a widget, inside it. */
export function listenToKeys(root, player, last) {
  const keys = {
    ArrowLeft: () => player.go(player.step - 1),
    ArrowRight: () => player.go(player.step + 1),
    Home: () => player.go(0),
    End: () => player.go(last),
    " ": player.toggle,
    f: player.wide,
  };
  const listen = (event) => {
    const target = event.composedPath()[0];
    if (event.defaultPrevented) return; // Arrow keys that have moved the focus do no more.
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key] || !root.isConnected) return;
    const presses = event.key === " " || event.key === "f";
    const busy = target.matches?.("select") || (presses ? target.closest?.("button, a, input:not([type=range])") : target.matches?.("input"));
    if (root.contains(target) ? busy : widgetOf(root) || target.closest?.(BUSY)) return;
    event.preventDefault();
    keys[event.key]();
  };
  document.addEventListener("keydown", listen);
  return () => document.removeEventListener("keydown", listen);
}
