const SVG_NAMES = "http://www.w3.org/2000/svg";

function drawn(tag, attributes, text = "") {
  const made = document.createElementNS(SVG_NAMES, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

/** All panels as one SVG, for saving: the canvases as images, titles and notes where they stand on the page. */
export function asPicture({ root, views }) {
  const frame = root.getBoundingClientRect();
  const svg = drawn("svg", { width: frame.width, height: frame.height, viewBox: `0 0 ${frame.width} ${frame.height}` });
  for (const { title, note, plot, canvas } of views) {
    if (plot.isConnected) {
      const box = canvas.getBoundingClientRect();
      const place = { x: box.left - frame.left, y: box.top - frame.top, width: box.width, height: box.height };
      svg.append(drawn("image", { ...place, href: canvas.toDataURL() }));
    }
    for (const text of [title, note]) {
      const box = text.getBoundingClientRect();
      const style = getComputedStyle(text);
      const look = { fill: style.color, "font-size": style.fontSize, "font-weight": style.fontWeight, "font-family": "sans-serif" };
      svg.append(drawn("text", { x: box.left - frame.left, y: box.top - frame.top + 14, ...look }, text.textContent));
    }
  }
  return svg;
}
