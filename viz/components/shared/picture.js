const SVG = "http://www.w3.org/2000/svg";

/** An SVG element; a text in it is never read as markup. */
export function drawn(tag, attributes, text = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });

/** A colour as every drawing program reads it: color-mix() and color() as rgb(). */
function plain(colour) {
  if (!colour.startsWith("color")) return colour;
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
  return `rgba(${red}, ${green}, ${blue}, ${(alpha / 255).toFixed(3)})`;
}

/** An SVG of the page as a picture of its own: what its style sheet says is written into the elements. */
export function standing(svg) {
  const copy = svg.cloneNode(true);
  const box = svg.getBoundingClientRect();
  const from = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(from[i]);
    const kept = ["display", "fill", "stroke", "opacity", "font-size", "font-weight", "text-decoration-line"];
    element.setAttribute("style", kept.map((name) => `${name}:${plain(style.getPropertyValue(name))}`).join(";"));
  });
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  copy.setAttribute("font-family", getComputedStyle(svg).fontFamily);
  return copy;
}

/**
 * Elements as an SVG: every text on its background, canvases as images, drawings as they are, each where it stands in
 * `root`. What matches `without`, and what stands in it, is left out.
 */
export function asPicture(root, without = "template") {
  const frame = root.getBoundingClientRect();
  const svg = drawn("svg", { width: frame.width, height: frame.height, "font-family": getComputedStyle(root).fontFamily });
  for (const element of root.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    if (style.visibility === "hidden" || !box.width || element.closest(without)) continue;
    if (element.namespaceURI === SVG) {
      if (element.tagName === "svg") svg.append(movedTo(standing(element), box.left - frame.left, box.top - frame.top));
      continue;
    }
    const place = { x: box.left - frame.left, y: box.top - frame.top, width: box.width, height: box.height };
    svg.append(...behind(style, place));
    if (element.tagName === "CANVAS") {
      svg.append(drawn("image", { ...place, href: element.toDataURL(), preserveAspectRatio: "none" }));
    }
    if (element.tagName === "SELECT") svg.append(chosenText(element, style, place));
    for (const node of element.childNodes) if (node.nodeType === Node.TEXT_NODE) write(svg, node, style, frame);
  }
  return svg;
}

/** An element's background: one colour, or a flat gradient that a style sheet makes less high than the element. */
function behind(style, { x, y, width, height }) {
  const rx = parseFloat(style.borderRadius) || 0;
  if (style.backgroundColor !== "rgba(0, 0, 0, 0)") return [drawn("rect", { x, y, width, height, rx, fill: plain(style.backgroundColor) })];
  const flat = style.backgroundImage.match(/^linear-gradient\((\w+\([^)]*\)), \1\)$/);
  if (!flat) return [];
  const share = parseFloat(style.backgroundSize.split(" ")[1]) / 100 || 1;
  return [drawn("rect", { x, y: y + (height * (1 - share)) / 2, width, height: height * share, fill: plain(flat[1]) })];
}

function movedTo(picture, x, y) {
  picture.setAttribute("x", x);
  picture.setAttribute("y", y);
  picture.setAttribute("overflow", "visible");
  return picture;
}

function chosenText(select, style, { x, y, height }) {
  const size = parseFloat(style.fontSize);
  const look = { x, y: y + height / 2 + size * 0.35, fill: plain(style.color), "font-size": size };
  return drawn("text", look, select.selectedOptions[0]?.textContent ?? "");
}

/** One text node, a line of the page after another. */
function write(svg, node, style, frame) {
  const range = document.createRange();
  range.selectNodeContents(node);
  const box = range.getBoundingClientRect();
  if (!node.data.trim() || !box.width) return;
  const size = parseFloat(style.fontSize);
  const look = { fill: plain(style.color), opacity: style.opacity, "font-size": size, "font-weight": style.fontWeight };
  const middle = box.top - frame.top + box.height / 2;
  // Where the page's font is missing another one's letters are made narrower, not pushed into each other.
  const fitted = { textLength: box.width, lengthAdjust: "spacingAndGlyphs" };
  svg.append(drawn("text", { x: box.left - frame.left, y: middle + size * 0.35, ...fitted, ...look }, node.data));
}
