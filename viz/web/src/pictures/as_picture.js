import { drawn, plain } from "../shared/picture.js";
import { edges, writtenText } from "./written.js";

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

/**
 * Elements as an SVG in the coordinates of the page: backgrounds, edges and texts, canvases as images, drawings as they
 * are. What matches `without`, and what stands in it, is left out; so is what only a style sheet adds (::before).
 */
export function asPicture(root, without = "template") {
  const svg = viewOf(root.getBoundingClientRect());
  svg.setAttribute("font-family", getComputedStyle(root).fontFamily);
  svg.setAttribute("overflow", "visible");
  for (const element of root.children) picturedAt(svg, element, without);
  return svg;
}

/** An SVG that shows this box of the page and nothing beside it. */
function viewOf({ x, y, width, height }) {
  return drawn("svg", { x, y, width, height, viewBox: `${x} ${y} ${width} ${height}` });
}

/** The elements in an element, or in its shadow root where it has one. */
const insideOf = (element) => [...(element.shadowRoot ?? element).children];

function picturedAt(parent, element, without) {
  if (element.matches(without)) return;
  if (getComputedStyle(element).display === "contents") return insideOf(element).forEach((one) => picturedAt(parent, one, without));
  if (!element.checkVisibility()) return;
  if (getComputedStyle(element).transform === "none") picturedStraight(parent, element, without);
  else picturedTurned(parent, element, without);
}

/** What the style sheet moves or turns is measured and drawn straight, and moved or turned in the picture. */
function picturedTurned(parent, element, without) {
  const { transform, transformOrigin } = getComputedStyle(element);
  const [across, down] = transformOrigin.split(" ").map(parseFloat);
  const before = element.style.transform;
  element.style.transform = "none";
  const box = element.getBoundingClientRect();
  const [x, y] = [box.x + across, box.y + down];
  const group = drawn("g", { transform: `translate(${x} ${y}) ${transform} translate(${-x} ${-y})` });
  picturedStraight(group, element, without);
  element.style.transform = before;
  parent.append(group);
}

function picturedStraight(parent, element, without) {
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  if (element.matches(".js-plotly-plot")) return parent.append(movedTo(chartPicture(element), box));
  if (element.namespaceURI === parent.namespaceURI) return parent.append(movedTo(standing(element), box));
  const group = style.opacity === "1" ? parent : parent.appendChild(drawn("g", { opacity: style.opacity }));
  const seen = style.visibility === "visible";
  if (seen) group.append(...behind(style, box), ...edges(style, box), ...content(element, style, box));
  if (element.tagName === "SELECT") return;
  const cut = style.overflowX === "hidden" && element.firstElementChild; // A text that is cut off is written shorter.
  const inside = cut ? group.appendChild(viewOf(box)) : group;
  for (const node of (element.shadowRoot ?? element).childNodes) {
    if (node.nodeType === Node.ELEMENT_NODE) picturedAt(inside, node, without);
    else if (seen && node.nodeType === Node.TEXT_NODE) inside.append(...writtenText(node, style, box));
  }
}

function movedTo(picture, { x, y }) {
  picture.setAttribute("x", x);
  picture.setAttribute("y", y);
  return picture;
}

/** An element's background: one colour, or a flat gradient that a style sheet makes less high than the element. */
function behind(style, { x, y, width, height }) {
  const rx = parseFloat(style.borderRadius) || 0;
  if (style.backgroundColor !== "rgba(0, 0, 0, 0)") return [drawn("rect", { x, y, width, height, rx, fill: plain(style.backgroundColor) })];
  const flat = style.backgroundImage.match(/^linear-gradient\((\w+\([^)]*\)), \1\)$/);
  if (!flat) return [];
  const share = parseFloat(style.backgroundSize.split(" ")[1]) / 100 || 1;
  return [drawn("rect", { x, y: y + (height * (1 - share)) / 2, width, height: height * share, fill: plain(flat[1]) })];
}

/** What an element shows besides its children. */
function content(element, style, { x, y, width, height }) {
  if (element.tagName === "CANVAS") {
    const look = `image-rendering:${style.imageRendering}`;
    return [drawn("image", { x, y, width, height, href: element.toDataURL(), preserveAspectRatio: "none", style: look })];
  }
  if (element.tagName !== "SELECT") return [];
  const size = parseFloat(style.fontSize);
  const look = { x, y: y + height / 2 + size * 0.35, fill: plain(style.color), "font-size": size };
  return [drawn("text", look, element.selectedOptions[0]?.textContent ?? "")];
}

const KEPT = [
  "display", "visibility", "opacity", "fill", "stroke", "stroke-width", "stroke-linejoin", "stroke-linecap", "paint-order",
  "font-size", "font-weight", "text-decoration-line",
];

/** An SVG of the page as a picture of its own: what its style sheet says is written into the elements. */
export function standing(svg) {
  const copy = svg.cloneNode(true);
  const box = svg.getBoundingClientRect();
  const from = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(from[i]);
    element.setAttribute("style", KEPT.map((name) => `${name}:${plain(style.getPropertyValue(name))}`).join(";"));
  });
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  copy.setAttribute("overflow", getComputedStyle(svg).overflowX);
  copy.setAttribute("font-family", getComputedStyle(svg).fontFamily);
  return copy;
}
