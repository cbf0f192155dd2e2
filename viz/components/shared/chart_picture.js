import { drawn } from "./picture.js";

/** The layers of a plotly chart in one SVG, without what only answers the mouse; `clear`: and without its paper. */
export function chartPicture(plot, clear = false) {
  const { width, height } = plot.getBoundingClientRect();
  const joined = drawn("svg", { width, height });
  for (const layer of plot.querySelectorAll(".main-svg")) {
    const copy = layer.cloneNode(true);
    copy.querySelectorAll(".hoverlayer, .draglayer, .zoomlayer").forEach((part) => part.remove());
    if (clear) copy.querySelectorAll(".bglayer").forEach((part) => part.remove());
    copy.style.background = "none";
    joined.append(copy);
  }
  return joined;
}
