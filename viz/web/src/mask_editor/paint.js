import { pixelOf } from "../shared/picture.js";
import { coloured, fitCanvas, paintCells } from "../shared/grid.js";

const STATES = { blocked: 0, allowed: 1, leak: 2, over: 3, nan: 4, dim: 5 };
const MARKS = { infinite: 1, finite: 2, uniform: 3, added: 4 };

const FILLS = ["blocked", "allowed", "leak", "over", "nan", "dim"]; // Of each state.

/** Strokes of a sign in a cell, as shares of its side: each a line from one point to another. */
const SIGNS = {
  plus: [[0.25, 0.5, 0.75, 0.5], [0.5, 0.25, 0.5, 0.75]],
  minus: [[0.25, 0.5, 0.75, 0.5]],
  cross: [[0.3, 0.3, 0.7, 0.7], [0.7, 0.3, 0.3, 0.7]],
  equals: [[0.28, 0.4, 0.72, 0.4], [0.28, 0.6, 0.72, 0.6]],
  hatch: [[0, 1, 1, 0]],
};

function strokes(pen, sign, x, y, size) {
  pen.beginPath();
  for (const [x0, y0, x1, y1] of SIGNS[sign]) {
    pen.moveTo(x + x0 * size, y + y0 * size);
    pen.lineTo(x + x1 * size, y + y1 * size);
  }
  pen.stroke();
}

/** Two rings beside each other for -inf, a dot for a finite fill, a small square for an added 1. */
function shape(pen, mark, x, y, size) {
  const [cx, cy, r] = [x + size / 2, y + size / 2, size * 0.12];
  pen.beginPath();
  if (mark === MARKS.infinite) {
    pen.arc(cx - r, cy, r, 0, 7);
    pen.moveTo(cx + 2 * r, cy);
    pen.arc(cx + r, cy, r, 0, 7);
    pen.stroke();
  } else if (mark === MARKS.finite) {
    pen.arc(cx, cy, r, 0, 7);
    pen.fill();
  } else if (mark === MARKS.added) {
    pen.strokeRect(cx - r * 1.4, cy - r * 1.4, r * 2.8, r * 2.8);
  }
}

/** What a cell is, beyond its colour, where there is room for it. */
function sign(pen, colours, state, mark, x, y, inside) {
  pen.lineWidth = Math.max(1.2, inside.size / 9);
  if (state === STATES.leak || state === STATES.over || state === STATES.nan) {
    pen.strokeStyle = state === STATES.nan ? colours.ink : colours.sign;
    strokes(pen, { [STATES.leak]: "plus", [STATES.over]: "minus", [STATES.nan]: "cross" }[state], x, y, inside.side);
    return;
  }
  if ((state === STATES.blocked || state === STATES.dim) && !mark) {
    pen.strokeStyle = colours.hatch;
    pen.lineWidth = 1;
    strokes(pen, "hatch", x, y, inside.side);
  }
  if (!mark || inside.size < 9) return;
  pen.lineWidth = state === STATES.blocked || state === STATES.dim ? 1 : Math.max(1, inside.size / 14);
  pen.strokeStyle = pen.fillStyle = colours.soft;
  if (mark === MARKS.uniform) strokes(pen, "equals", x, y, inside.side);
  else shape(pen, mark, x, y, inside.side);
}

/** The cells of a panel with lines between them, from the corner of the pen. */
function paintStates(pen, { states, marks }, { rows, columns, colours }, size) {
  const fills = Uint32Array.from(FILLS, (name) => pixelOf(colours[name]));
  paintCells(pen, coloured(states, fills), columns, columns * size, rows * size);
  const gap = size > 7 ? 1 : 0;
  for (let row = 1; row <= rows; row += 1) pen.clearRect(0, row * size - gap, columns * size, gap);
  for (let column = 1; column <= columns; column += 1) pen.clearRect(column * size - gap, 0, gap, rows * size);
  if (size < 5) return;
  const inside = { size, side: size - gap };
  states.forEach((state, at) => sign(pen, colours, state, marks[at], (at % columns) * size, Math.floor(at / columns) * size, inside));
}

const TICK = 18; // A label needs about so many pixels.

/** Cells, numbers of rows and columns, and sums, on a canvas as sharp as the screen. */
export function paintPanel(canvas, panel, header, place) {
  const { size, left, top, width, height } = place;
  const { rows, columns, colours } = header;
  fitCanvas(canvas, width, height);
  const pen = canvas.getContext("2d");
  pen.scale(devicePixelRatio, devicePixelRatio);
  pen.clearRect(0, 0, width, height);
  pen.save();
  pen.translate(left, top);
  paintStates(pen, panel, header, size);
  pen.restore();
  pen.font = `12px ${getComputedStyle(canvas).fontFamily}`;
  pen.textBaseline = "middle";
  const step = Math.max(1, Math.ceil(TICK / size));
  for (let row = 0; row < rows; row += step) label(pen, colours, row + 1, "right", left - 6, top + (row + 0.5) * size);
  for (let column = 0; column < columns; column += step) label(pen, colours, column + 1, "center", left + (column + 0.5) * size, top - 9);
  sums(pen, panel, header, place);
  frame(pen, header, place);
}

function label(pen, colours, text, align, x, y, strong = false) {
  pen.fillStyle = strong ? colours.ink : colours.soft;
  pen.textAlign = align;
  pen.fillText(text, x, y);
}

const isWhole = (sum) => /^−?\d+$/.test(sum);

/** Sums at the right and below, where a cell leaves room for one; those of rows that are no whole number are darker. */
function sums(pen, panel, { rows, columns, colours }, { size, left, top }) {
  if (size >= 14) {
    panel.rowSums.forEach((sum, row) => label(pen, colours, sum, "left", left + columns * size + 5, top + (row + 0.5) * size, !isWhole(sum)));
  }
  if (size >= 26 || (size >= 15 && panel.columnSums.every(isWhole))) {
    panel.columnSums.forEach((sum, column) => label(pen, colours, sum, "center", left + (column + 0.5) * size, top + rows * size + 9));
  }
}

/** A dashed frame around the rows and columns of a finding. */
function frame(pen, { marked, colours, rows, columns }, { size, left, top }) {
  const [queries, keys] = marked;
  if (!queries.length || !keys.length) return;
  pen.strokeStyle = colours.accent;
  pen.lineWidth = 2;
  const runs = (list, most) => {
    const found = [];
    for (const one of list.filter((at) => at < most)) {
      if (found.length && found.at(-1)[1] === one) found.at(-1)[1] = one + 1;
      else found.push([one, one + 1]);
    }
    return found;
  };
  for (const [a, b] of runs(queries, rows)) {
    for (const [c, d] of runs(keys, columns)) pen.strokeRect(left + c * size, top + a * size, (d - c) * size - 1, (b - a) * size - 1);
  }
}
