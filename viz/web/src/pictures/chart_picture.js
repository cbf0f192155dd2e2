import { drawn } from "../shared/picture.js";

/** Plotly's own ink on light cells; the style sheets of pages and files have the same rule. */
const DARK_NUMBERS = '.heatmap-label text[style*="rgb(68, 68, 68)"]';

/** The layers of a plotly chart in one SVG, without what only answers the mouse; `clear`: and without its paper. */
export function chartPicture(plot, clear = false) {
  const { width, height } = plot.getBoundingClientRect();
  const joined = drawn("svg", { width, height });
  for (const layer of plot.querySelectorAll(".main-svg")) {
    const copy = layer.cloneNode(true);
    copy.querySelectorAll(".hoverlayer, .draglayer, .zoomlayer").forEach((part) => part.remove());
    if (clear) copy.querySelectorAll(".bglayer").forEach((part) => part.remove());
    copy.style.background = "none";
    copy.querySelectorAll(DARK_NUMBERS).forEach((number) => (number.style.fill = "#000"));
    joined.append(copy);
  }
  return joined;
}
