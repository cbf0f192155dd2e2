const SVG = "http://www.w3.org/2000/svg";

/** An SVG element; a text in it is never read as markup. */
export function drawn(tag, attributes, text = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

let pen = null;

/** A colour as every drawing program reads it: color-mix() and color() as rgb(). */
export function plain(colour) {
  if (!colour.startsWith("color")) return colour;
  pen ??= document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
  return `rgba(${red}, ${green}, ${blue}, ${(alpha / 255).toFixed(3)})`;
}
