import { position } from "../shared/picture.js";
import { FULL, MASKED } from "../shared/packed.js";
import { backward } from "../shared/paragraph.js";

const WIDTH = 760;
const STAGE = { width: 560, beside: 160, rows: 250, smallest: 13 }; // Where it is read from the back row.

/** Tokens below each other, queries left and keys right; on a stage, where not each has room, every n-th is named. */
function columns(queries, keys, least) {
  const count = Math.max(queries.length, keys.length);
  const whole = least ? STAGE.width : WIDTH;
  const row = least ? Math.min(26, STAGE.rows / count) : Math.min(26, Math.max(14, 640 / count));
  const beside = least ? STAGE.beside : 210;
  const [left, right] = [beside, whole - beside];
  const y = (i) => 44 + (i + 0.5) * row;
  return {
    width: whole,
    height: 52 + count * row,
    fontSize: Math.max(least && STAGE.smallest, Math.min(16, row * 0.72)),
    named: least ? Math.ceil((STAGE.smallest * 1.15) / row) : 1,
    headings: [{ x: left - 12, y: 20, anchor: "end" }, { x: right + 12, y: 20, anchor: "start" }],
    token: (side, i) =>
      side === "query" ? { x: left - 12, y: y(i), anchor: "end" } : { x: right + 12, y: y(i), anchor: "start" },
    number: (side, i) => (side === "query" ? { x: 4, y: y(i), anchor: "start" } : { x: whole - 4, y: y(i), anchor: "end" }),
    path: (q, k) => `M${left},${y(q)}C${(left + right) / 2},${y(q)} ${(left + right) / 2},${y(k)} ${right},${y(k)}`,
  };
}

/** Tokens as two running lines, queries above keys; each line in its own reading direction. */
function lines(queries, keys, measure) {
  const fontSize = 17;
  const [top, bottom] = [64, 300];
  const gap = 10;
  const widths = { query: queries.map(measure), key: keys.map(measure) };
  const total = (side) => widths[side].reduce((sum, width) => sum + width + gap, gap);
  const width = Math.max(WIDTH, total("query"), total("key"));
  const centres = {};
  for (const [side, tokens] of [["query", queries], ["key", keys]]) {
    const backwards = backward(tokens);
    let x = gap + (width - total(side)) / 2;
    centres[side] = widths[side].map((own) => {
      const centre = x + own / 2;
      x += own + gap;
      return backwards ? width - centre : centre;
    });
  }
  const y = { query: top, key: bottom };
  return {
    width,
    height: 350,
    fontSize,
    named: 1,
    headings: [{ x: 4, y: 14, anchor: "start" }, { x: 4, y: 344, anchor: "start" }],
    token: (side, i) => ({ x: centres[side][i], y: y[side], anchor: "middle" }),
    number: (side, i) => ({ x: centres[side][i], y: y[side] + (side === "query" ? -22 : 22), anchor: "middle" }),
    path: (q, k) => {
      const [from, to, middle] = [centres.query[q], centres.key[k], (top + bottom) / 2];
      return `M${from},${top + 14}C${from},${middle} ${to},${middle} ${to},${bottom - 14}`;
    },
  };
}

/**
 * Where everything stands: positions of tokens, of their numbers, and the path of each link. `least` is the smallest
 * type on a stage, 0 elsewhere.
 */
export function layout({ queries, keys, horizontal }, least) {
  if (!horizontal) return columns(queries, keys, least);
  const context = document.createElement("canvas").getContext("2d");
  context.font = "17px sans-serif";
  return lines(queries, keys, (token) => context.measureText(token).width);
}

const MOST = 1500; // More lines than this make hovering slow and tell nothing.

/** The least byte of a row that gets a line: that of a weight, or of the strongest in the row. */
function leastOf(row, threshold) {
  if (threshold !== "strongest") return threshold * FULL;
  return Math.max(1, ...row.filter((byte) => byte !== MASKED));
}

/** The links to draw, the strongest last so that they lie on top: [{ head, q, k, weight }], and how many there were. */
export function chosenLinks({ queries, keys, head, beside, threshold }, bytes) {
  const found = [];
  for (const one of [head, ...beside]) {
    for (let q = 0; q < queries.length; q += 1) {
      const start = (one * queries.length + q) * keys.length;
      const row = bytes.subarray(start, start + keys.length);
      const least = leastOf(row, threshold);
      row.forEach((byte, k) => {
        if (byte !== MASKED && byte >= least) found.push({ head: one, q, k, weight: byte / FULL });
      });
    }
  }
  found.sort((a, b) => a.weight - b.weight);
  return { links: found.slice(-MOST), total: found.length };
}

/** Draw the links as SVG paths into `group`; returns them with what they join. */
export function drawLinks(group, links, place, { beside, colours, scale }) {
  const paths = links.map((link) => {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", place.path(link.q, link.k));
    // One head alone takes the page's accent, which the style sheet knows.
    if (beside.length) path.style.stroke = colours[link.head];
    path.setAttribute("stroke-opacity", Math.max(0.06, position(link.weight, scale)).toFixed(3));
    path.setAttribute("stroke-width", (1 + 2.5 * link.weight).toFixed(2));
    return Object.assign(path, { link });
  });
  group.replaceChildren(...paths);
  return paths;
}
