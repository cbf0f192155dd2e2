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

const parentsOf = (root) => [...new Set([...roots(root)].flatMap((inside) => [...inside.querySelectorAll(LISTED)]).map((row) => row.parentElement))];

/** How many rows each list of `root` leaves out. */
export const cutsOf = (root) => parentsOf(root).map((list) => list.querySelectorAll(":scope > .left-out").length);

/** Leave out as many rows of each list as cutsOf() has found; false where these are not the same lists. */
export function cutAgain(root, counts) {
  const lists = parentsOf(root);
  if (lists.length !== counts.length) return false;
  const rowsOf = (list) => [...list.querySelectorAll(LISTED)].filter((row) => row.parentElement === list && row.checkVisibility());
  lists.forEach((list, at) => counts[at] && leaveOut(list, rowsOf(list).slice(-counts[at])));
  return true;
}

/** Have all lists show all of their rows again. */
export function undoCuts(root) {
  for (const inside of roots(root)) {
    for (const line of inside.querySelectorAll(".left-out ~ .more")) line.remove();
    for (const row of inside.querySelectorAll(".left-out")) row.classList.remove("left-out"), (row.style.display = "");
  }
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

// The shorter side of a screen in pixels of a scene: what is 12 of them high is 1/45 of the screen, and is read from the
// back row. A scene grows beyond that where it is short, and is made smaller only where nothing else helps.
const ROWS = 540;
const LARGEST = 1.8;
const SMALLEST = 0.4;
const [MIDDLE, PROBE] = [350, 300]; // Pixels of a picture that has as much height as it is given.
const COMFORT = 260; // The same; before a picture gets less, lists are made shorter.
const LOWEST = [190, 150]; // The least it gets alone, and where two stand one below the other.
const GROWS = 0.3; // Pixels that a scene must gain with each pixel of its pictures, for them to be fitted.
const ROUNDS = 5;
export const SPARE = 3; // Pixels.

/** Zoom at which type of 12 pixels is 1/45 of the screen's shorter side. */
export const readable = () => Math.min(innerWidth, innerHeight) / ROWS;

/**
 * Fit a scene: at the zoom that the back row can read, its pictures get the height that is left. A scene without such
 * pictures is zoomed until it fills the room; one of words alone is scrolled rather than made smaller. `stage` says how large all of it is (`tall()`) and the room (`room()`),
 * in the scene's own pixels, sets `zoom` and `picture` (a height), and leaves rows of lists out (`cut(pixels)`); each
 * resolves once nothing moves. `largest` is how far it may grow beyond the readable zoom, `floor`.
 */
export async function fitScene(stage) {
  const floor = stage.floor ?? readable();
  await stage.zoom(floor);
  await stage.picture(PROBE);
  const low = stage.tall();
  await stage.picture(MIDDLE);
  const grown = (stage.tall() - low) / (MIDDLE - PROBE);
  if (grown > GROWS) await stage.picture(COMFORT);
  for (let round = 0; round < ROUNDS && stage.tall() > stage.room() + SPARE; round += 1)
    if (!(await stage.cut(stage.tall() - stage.room()))) break;
  if (grown > GROWS) await fillPictures(stage, grown);
  if (grown <= GROWS) await fillByZoom(stage, floor, [floor, floor * (stage.largest ?? LARGEST)]);
  else if (stage.tall() > stage.room() + SPARE) await fillByZoom(stage, floor, [floor * SMALLEST, floor]);
}

async function fillPictures(stage, grown) {
  let height = COMFORT;
  for (let round = 0; round < ROUNDS; round += 1) {
    const left = stage.room() - stage.tall();
    if (left >= 0 && left < SPARE) return;
    const next = Math.max(LOWEST[grown > 1.5 ? 1 : 0], height + Math.floor((left - 1) / grown));
    if (next === height) return;
    height = next;
    await stage.picture(height);
  }
}

async function fillByZoom(stage, zoom, [least, most]) {
  // What wraps needs less height as it gets more width, so a step by the share can go too far and the next one all the
  // way back: once a zoom that fits and one that does not are known, it lies between them.
  let [fits, exceeds] = [null, null];
  for (let round = 1; round <= ROUNDS; round += 1) {
    const share = stage.room() / stage.tall();
    if (stage.tall() <= stage.room() + SPARE) fits = zoom;
    else exceeds = zoom;
    const next = fits && exceeds ? (fits + exceeds) / 2 : Math.min(Math.max(zoom * share, least), most);
    if ((zoom === fits && share < 1.1) || Math.abs(next / zoom - 1) < 0.02) break;
    zoom = next;
    await stage.zoom(zoom);
  }
  if (fits && stage.tall() > stage.room() + SPARE) await stage.zoom(fits);
}
