import { FULL, MASKED } from "../shared/packed.js";
import { position } from "../shared/colours.js";

const MOST = 1500; // More lines than this make hovering slow and tell nothing.

/** The links to draw, the strongest last so that they lie on top: [{ head, q, k, weight }], and how many there were. */
export function chosenLinks({ queries, keys, head, beside, threshold }, bytes) {
  const size = queries.length * keys.length;
  const found = [];
  for (const one of [head, ...beside]) {
    for (let at = 0; at < size; at += 1) {
      const byte = bytes[one * size + at];
      if (byte === MASKED || byte < threshold * FULL) continue;
      found.push({ head: one, q: Math.floor(at / keys.length), k: at % keys.length, weight: byte / FULL });
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
