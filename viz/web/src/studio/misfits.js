import { say, sayMany } from "../shared/say.js";
import { roots } from "../stage/parts.js";
import { MAIN } from "../shared/streamlit.js";

// Pixels of a scene, which is laid out for a screen 540 of them high: 160 of a screen of 720.
const LOWEST_CHART = 120;
const CHARTS = ".js-plotly-plot .cartesianlayer .bglayer rect, .js-plotly-plot .cartesianlayer .plot, .heatmap > canvas, .curves svg";
const SPARE = 2; // Pixels.
const HIGHER = 1.02; // Than the screen: less is white.

const isCut = (element) => {
  const { overflowX, overflowY, textOverflow, webkitLineClamp } = getComputedStyle(element);
  const across = overflowX === "hidden" && textOverflow === "ellipsis" && element.scrollWidth > element.clientWidth + SPARE;
  return across || (overflowY === "hidden" && webkitLineClamp !== "none" && element.scrollHeight > element.clientHeight + SPARE);
};

/** What of a fitted scene has no room, as numbers; `grown` is how many pixels one of a scene is in this frame. */
export function misfitsOf({ element, unnamed }, grown) {
  const page = element.contentDocument;
  const all = [...roots(page)];
  const find = (selector) => all.flatMap((root) => [...root.querySelectorAll(selector)]).filter((one) => one.checkVisibility());
  const charts = find(CHARTS).filter((one) => one.getBoundingClientRect().height * grown < LOWEST_CHART);
  const unnamedTokens = find("[data-unnamed]").reduce((sum, one) => sum + Number(one.dataset.unnamed), 0);
  const main = page.querySelector(MAIN);
  return {
    charts: charts.length,
    names: unnamed + unnamedTokens,
    rows: all.reduce((sum, root) => sum + root.querySelectorAll(".left-out").length, 0),
    texts: find("p, span, td, th, div").filter((one) => one.childElementCount === 0 && isCut(one)).length,
    over: main.scrollHeight > HIGHER * main.clientHeight,
  };
}

export const isMisfit = (found) => Object.values(found).some(Boolean);

/** The same in words. */
export function misfitsSaid({ charts, names, rows, texts, over }) {
  return [
    charts && sayMany("{count} chart is lower than 160 pixels on a screen of 720", "{count} charts are lower than 160 pixels on a screen of 720", charts),
    names && sayMany("{count} name has no room", "{count} names have no room", names),
    rows && sayMany("{count} row of a list has no room", "{count} rows of lists have no room", rows),
    texts && sayMany("{count} text is cut", "{count} texts are cut", texts),
    over && say("it is higher than the screen"),
  ].filter(Boolean).join("; ");
}
