import { FULL, MASKED } from "../shared/packed.js";
import { position } from "../shared/colours.js";

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
