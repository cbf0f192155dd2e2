import { cellAt, coloured, fitCanvas, paintCells, penOn, strokeLines } from "../shared/grid.js";
import { FULL, MASKED } from "../shared/packed.js";
import { say, written } from "../shared/say.js";
import { leastType } from "../shared/picture.js";
import { element } from "../shared/element.js";

const TALLEST = 26; // Pixels of a cell.
const WIDEST = 46;
const ROOM = 400; // Height of the whole matrix.
const GAPS_FROM = 7; // Pixels a cell needs before a gap between cells is worth its room.
const LABEL = 13; // Pixels a label needs; where cells are smaller, some are left out.

/** One head, large: queries down, keys across, each named. */
export function buildHead(root, header) {
  const box = element("div", "head-large");
  const title = element("div", "title");
  const reading = element("div", "reading");
  const frame = element("div", "frame");
  const [columns, rows] = [element("div", "columns"), element("div", "rows")];
  const canvas = element("canvas", "");
  canvas.setAttribute("role", "img");
  const axes = element("div", "axes", say("query ↓ key →"));
  frame.append(axes, columns, rows, canvas);
  box.append(title, frame, reading);
  root.append(box);
  const view = { box, title, reading, frame, columns, rows, canvas, cell: null, width: 0, height: 0 };
  canvas.onmousemove = (event) => {
    view.cell = cellAt(event.offsetX, event.offsetY, view, header.queries, header.keys);
    if (view.cell) view.onRead();
  };
  canvas.onmouseleave = () => {
    view.cell = null;
    reading.textContent = "";
  };
  return view;
}

/** Name the cells, as many as have room; how many have none. */
function names(parent, texts, cell, side, label) {
  const step = Math.ceil(label / cell);
  const made = texts.map((text, i) => {
    if (i % step) return null;
    const name = element("span", "", text);
    name.dir = "auto";
    name.style[side] = `${(i + 0.5) * cell}px`;
    return name;
  });
  const named = made.filter(Boolean);
  parent.replaceChildren(...named);
  return texts.length - named.length;
}

/** Fit the cells into the room there is. */
export function layHead(view, { queries, keys, rows, columns }) {
  const room = Math.max(view.frame.clientWidth - view.rows.offsetWidth - 40, 60);
  const staged = leastType(view.frame) > 0; // There the style sheet says how high the matrix is.
  view.width = staged ? room / keys : Math.min(WIDEST, room / keys);
  view.height = staged ? view.rows.clientHeight / queries : Math.min(TALLEST, ROOM / queries);
  fitCanvas(view.canvas, view.width * keys, view.height * queries);
  const unnamed = names(view.rows, rows, view.height, "top", LABEL) + names(view.columns, columns, view.width, "left", LABEL * Math.SQRT2); // Slanted.
  view.frame.dataset.unnamed = unnamed;
}

/** Paint the weights (queries x keys, bytes). */
export function showHead(view, bytes, table, { queries, keys, background }) {
  if (!view.width) return; // Not laid out yet.
  const pen = penOn(view.canvas, view.width * keys, view.height * queries);
  paintCells(pen, coloured(bytes, table), keys, view.width * keys, view.height * queries);
  view.canvas.setAttribute("aria-label", view.title.textContent);
  if (Math.min(view.width, view.height) >= GAPS_FROM) strokeLines(pen, keys, [0, queries], view, background, 2);
}

/** The cell under the pointer in words: its weight now, at the random start and at the end. */
export function readCell(view, cells, stop, { keys, rows, columns, moments }) {
  const [query, key] = view.cell;
  const weight = (one) => written((cells[one][query * keys + key] / FULL).toFixed(2));
  const pair = `“\u2068${rows[query]}\u2069” → “\u2068${columns[key]}\u2069”`;
  const last = moments.length - 1;
  view.reading.textContent =
    cells[stop][query * keys + key] === MASKED
      ? say("{pair}: masked, it may not look there", { pair })
      : say("{pair}: {now} now · {first} at random · {last} at the end", {
          pair,
          now: weight(stop),
          first: weight(0),
          last: weight(last),
        });
}
