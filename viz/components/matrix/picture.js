const SPACE = "http://www.w3.org/2000/svg";

function drawn(tag, attributes, text = "") {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

/** The view as one SVG, for saving: the canvas as an image, every visible text where it stands on the page. */
export function asPicture({ root, canvas, plot, title, rows, columns }) {
  const frame = root.getBoundingClientRect();
  const box = plot.getBoundingClientRect();
  const [x, y] = [box.left - frame.left, box.top - frame.top];
  const svg = drawn("svg", { width: frame.width, height: frame.height, viewBox: `0 0 ${frame.width} ${frame.height}` });
  const image = { x, y, width: box.width, height: box.height, preserveAspectRatio: "none", href: canvas.toDataURL() };
  svg.append(drawn("image", image));
  for (const text of [title, ...rows.children, ...columns.children]) {
    const at = text.getBoundingClientRect();
    const style = getComputedStyle(text);
    const place = { x: at.left - frame.left, y: at.bottom - frame.top - at.height * 0.25 };
    const look = { fill: style.color, "font-size": style.fontSize, "font-weight": style.fontWeight };
    svg.append(drawn("text", { ...place, ...look, "font-family": style.fontFamily }, text.textContent));
  }
  return svg;
}
