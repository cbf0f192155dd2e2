/** [red, green, blue, alpha] of a computed colour, 0 to 255 and 0 to 1. */
function channels(colour) {
  const found = colour.match(/[\d.]+/g)?.map(Number) ?? [];
  return colour.startsWith("rgb") ? [...found.slice(0, 3), found[3] ?? 1] : null;
}

const lightness = (/** @type {number[]} */ [red, green, blue]) => (0.299 * red + 0.587 * green + 0.114 * blue) / 255;

/** "light" or "dark": the first background behind an element says it, or else the colour of its text. */
export function themeOf(el) {
  for (let at = el.parentNode ?? el; at; at = at.parentNode ?? at.host) {
    if (!(at instanceof Element)) continue;
    const colour = channels(getComputedStyle(at).backgroundColor);
    if (colour && colour[3] > 0.5) return lightness(colour) < 0.5 ? "dark" : "light";
  }
  const ink = channels(getComputedStyle(el).color);
  return ink && lightness(ink) > 0.5 ? "dark" : "light";
}

/** Call `changed()` whenever the page may have another theme; returns what ends it. */
export function watchTheme(changed) {
  const soon = () => requestAnimationFrame(changed);
  const observer = new MutationObserver(soon);
  const attributes = { attributes: true, attributeFilter: ["class", "style", "theme", "data-theme", "data-jp-theme-light", "data-vscode-theme-kind"] };
  for (const node of [document.documentElement, document.body]) observer.observe(node, attributes);
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", soon);
  return () => (observer.disconnect(), media.removeEventListener("change", soon));
}
