import { asPicture, chartPicture, standing } from "../pictures/as_picture.js";
import { drawn } from "../shared/picture.js";

const MARGIN = 12;

const isHeading = (host) => host.matches(".heading");

/** A heading as an SVG text, as high as it stands in the page. */
function headingPicture(host) {
  const { width, height } = host.getBoundingClientRect();
  const { fontFamily, fontSize, fontWeight, color } = getComputedStyle(host);
  const svg = drawn("svg", { width, height, overflow: "visible" });
  const look = { "font-family": fontFamily, "font-size": fontSize, "font-weight": fontWeight, fill: color };
  const text = drawn("text", { x: 0, y: height / 2, "dominant-baseline": "central", ...look });
  text.textContent = host.textContent;
  svg.append(text);
  return svg;
}

/** What a component says of its picture: it shows `of`, an SVG or any other element, but not what matches `without`. */
const takenOf = ({ of, without }) => (of.tagName === "svg" ? standing(of) : asPicture(of, without));

/** Every picture of the view with its element: headings, plotly charts, and components whose root has a `picture`. */
function pictures(page, clear) {
  const hosts = [...page.querySelectorAll(".part:is([data-role=picture], [data-role=decoding], .heading)")];
  const one = (host) => {
    if (isHeading(host)) return [[host, headingPicture(host)]];
    const plot = host.querySelector(":scope > .js-plotly-plot");
    if (plot) return [[plot, chartPicture(plot, clear)]];
    const roots = [...(host.shadowRoot?.querySelectorAll("*") ?? [])].filter((root) => root.picture);
    roots.forEach((root) => root.classList.add("pictured")); // What is left out leaves no gap.
    return roots.map((root) => [root, takenOf(root.picture)]);
  };
  return hosts.flatMap(one);
}

/** Without the headings that no picture follows. */
const withHeadings = (found) => found.filter(([element], i) => !isHeading(element) || (found[i + 1] && !isHeading(found[i + 1][0])));

/** Where each stands; a heading right above the picture that follows, without the words that stand between them. */
function boxesOf(elements) {
  const boxes = elements.map((element) => element.getBoundingClientRect());
  return boxes.map((box, i) => (isHeading(elements[i]) ? new DOMRect(box.x, boxes[i + 1].y - box.height, box.width, box.height) : box));
}

/** The page's own letters: a picture finds none but those that stand in it. */
function lettersOf(page) {
  const style = drawn("style", {});
  style.textContent = page.getElementById("font").textContent;
  return style;
}

/** The view's pictures as one SVG text, each where it stands; `clear`: on no background. */
export function composed(page, { clear }) {
  const found = withHeadings(pictures(page, clear));
  const boxes = boxesOf(found.map(([element]) => element));
  const [left, top] = [Math.min(...boxes.map((box) => box.left)), Math.min(...boxes.map((box) => box.top))];
  const size = {
    width: Math.max(...boxes.map((box) => box.right)) - left + 2 * MARGIN,
    height: Math.max(...boxes.map((box) => box.bottom)) - top + 2 * MARGIN,
  };
  const svg = drawn("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}` });
  const fill = page.defaultView.getComputedStyle(page.body).backgroundColor;
  svg.append(lettersOf(page));
  if (!clear) svg.append(drawn("rect", { ...size, fill }));
  found.forEach(([, picture], i) => {
    picture.setAttribute("x", boxes[i].left - left + MARGIN);
    picture.setAttribute("y", boxes[i].top - top + MARGIN);
    svg.append(picture);
  });
  return { text: new XMLSerializer().serializeToString(svg), ...size };
}
