import { say } from "../shared/say.js";
import { roots } from "./parts.js";

const LISTED = "tbody > tr, ol:not(.steps) > li, .version:not(.heading), .part.caption";
const ALWAYS_LISTED = 2; // Rows of a list that always stay.
const MORE_LINE = 22; // Pixels of the line that says how many are left out.

/** Lists and tables of `root`, each as its rows in sight. */
function listsOf(root) {
  const found = new Map();
  for (const inside of roots(root))
    for (const row of inside.querySelectorAll(LISTED))
      if (row.checkVisibility()) found.set(row.parentElement, [...(found.get(row.parentElement) ?? []), row]);
  return [...found].filter(([, rows]) => rows.length > ALWAYS_LISTED);
}

function leaveOut(list, rows) {
  for (const row of rows) row.classList.add("left-out"), (row.style.display = "none");
  const left = list.querySelectorAll(":scope > .left-out").length;
  let line = list.querySelector(":scope > .more");
  if (!line) {
    const tags = { TBODY: ["tr", "td"], OL: ["li"] }[list.tagName] ?? ["p"];
    const made = tags.map((tag) => list.ownerDocument.createElement(tag));
    if (made[1]) made[0].append(made[1]), (made[1].colSpan = 99);
    line = made[0];
    line.classList.add("more");
    line.style.cssText = "list-style: none; opacity: 0.75";
    list.append(line);
  }
  (line.firstElementChild ?? line).textContent = say("and {count} more", { count: left });
}

/**
 * Leave out the last rows of lists and tables, so that a scene is `over` pixels lower, and say there how many. `scale`
 * is how many pixels of the screen one of the scene is. Whether anything was left out.
 */
export function cutLists(root, over, scale) {
  const lists = listsOf(root);
  const bottom = (row) => row.getBoundingClientRect().bottom / scale;
  const last = Math.max(...lists.map(([, rows]) => bottom(rows.at(-1))));
  let any = false;
  for (const [list, rows] of lists) {
    const out = rows.filter((row, at) => at >= ALWAYS_LISTED && bottom(row) > last - over - MORE_LINE && !row.matches(".more"));
    if (out.length) leaveOut(list, out), (any = true);
  }
  return any;
}

const TOUCHES = 0.25; // Of a name's height: its box is higher than its letters.
const NAMES = [
  '[class^="yaxislayer"] [class$="tick"] text', '[class^="xaxislayer"] [class$="tick"] text',
  ".annotation-text", ".textpoint text, .heatmap-label",
];

const isBold = (text) => Boolean(text.querySelector('[style*="bold"]')) || Number(getComputedStyle(text).fontWeight) > 500;

/** Where a text stands, seen along its own line: slanted names are apart although the upright boxes around them are not. */
function boxOf(text) {
  const { x, y, width, height } = text.getBBox();
  const { a, b, c, d, e, f } = text.getCTM();
  const scale = Math.hypot(a, b);
  const [across, down] = [a / scale, b / scale];
  const [left, top] = [a * x + c * y + e, b * x + d * y + f];
  const [along, off] = [across * left + down * top, across * top - down * left];
  return { angle: Math.atan2(b, a).toFixed(2), left: along, right: along + scale * width, top: off, bottom: off + scale * height };
}

function meet(one, other) {
  if (one.angle !== other.angle) return false;
  const spare = TOUCHES * Math.min(one.bottom - one.top, other.bottom - other.top);
  return one.left < other.right && other.left < one.right && one.top + spare < other.bottom && other.top + spare < one.bottom;
}

/** Leave out the names and numbers in charts that would stand on another one; what is in bold stays first. How many. */
export function leaveOutCovered(root) {
  let left = 0;
  for (const inside of roots(root))
    for (const plot of inside.querySelectorAll(".js-plotly-plot"))
      for (const of of NAMES) {
        const texts = [...plot.querySelectorAll(of)].filter((text) => text.textContent.trim());
        texts.forEach((text) => (text.style.visibility = ""));
        const boxes = new Map(texts.map((text) => [text, boxOf(text)]));
        const kept = [];
        for (const text of [...texts.filter(isBold), ...texts.filter((one) => !isBold(one))]) {
          const free = kept.every((other) => !meet(boxes.get(other), boxes.get(text)));
          if (free) kept.push(text);
          else text.style.visibility = "hidden";
        }
        left += texts.length - kept.length;
      }
  return left;
}
