import { asPicture } from "../pictures/as_picture.js";
import { drawn } from "../shared/picture.js";
import { say, sayMany } from "../shared/say.js";
import { APP, ICON, MAIN } from "../shell/streamlit.js";
import { placesOf, roots } from "../stage/parts.js";
import { openFrame } from "./frame.js";

// Pixels of a scene, which is laid out for a screen 540 of them high: 160 of a screen of 720.
const LOWEST_CHART = 120;
const CHARTS = ".js-plotly-plot .cartesianlayer .bglayer rect, .js-plotly-plot .cartesianlayer .plot, .heatmap > canvas, .curves svg";
const SPARE = 2; // Pixels.
const HIGHER = 1.02; // Than the screen: less is white.

const isCut = (element) => {
  const { overflowX, overflowY, textOverflow, webkitLineClamp } = getComputedStyle(element);
  const across = overflowX === "hidden" && textOverflow === "ellipsis" && element.scrollWidth > element.clientWidth + SPARE;
  return across || (overflowY === "hidden" && webkitLineClamp !== "none" && element.scrollHeight > element.clientHeight + SPARE);
};

/** What of a fitted scene has no room, as numbers; `grown` is how many pixels one of a scene is in this frame. */
export function misfitsOf({ element, unnamed }, grown) {
  const page = element.contentDocument;
  const all = [...roots(page)];
  const find = (selector) => all.flatMap((root) => [...root.querySelectorAll(selector)]).filter((one) => one.checkVisibility());
  const charts = find(CHARTS).filter((one) => one.getBoundingClientRect().height * grown < LOWEST_CHART);
  const unnamedTokens = find("[data-unnamed]").reduce((sum, one) => sum + Number(one.dataset.unnamed), 0);
  const main = page.querySelector(MAIN);
  return {
    charts: charts.length,
    names: unnamed + unnamedTokens,
    rows: all.reduce((sum, root) => sum + root.querySelectorAll(".left-out").length, 0),
    texts: find("p, span, td, th, div").filter((one) => one.childElementCount === 0 && isCut(one)).length,
    over: main.scrollHeight > HIGHER * main.clientHeight,
  };
}

export const isMisfit = (found) => Object.values(found).some(Boolean);

/** The same in words. */
export function misfitsSaid({ charts, names, rows, texts, over }) {
  return [
    charts && sayMany("{count} chart is lower than 160 pixels on a screen of 720", "{count} charts are lower than 160 pixels on a screen of 720", charts),
    names && sayMany("{count} name has no room", "{count} names have no room", names),
    rows && sayMany("{count} row of a list has no room", "{count} rows of lists have no room", rows),
    texts && sayMany("{count} text is cut", "{count} texts are cut", texts),
    over && say("it is higher than the screen"),
  ].filter(Boolean).join("; ");
}

export const [WIDTH, HEIGHT] = [960, 462]; // Of a scene's page, as it stands on the stage between its title and its line.
export const THUMBNAIL = 288; // Pixels across of a small picture: twice as many as it is shown in.
const KIND = { type: "image/webp", quality: 0.85 };

const asData = (blob) =>
  new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.readAsDataURL(blob);
  });

let letters = null;

/** The app's own letters for a picture, which finds none but those that stand in it. */
export function lettersOf(page) {
  const rules = [...page.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
  const isOurs = (rule) => rule instanceof page.defaultView.CSSFontFaceRule && /Source Sans"?$/.test(rule.style.fontFamily.trim());
  const faces = rules.filter((rule) => isOurs(rule) && rule.style.fontStyle !== "italic");
  const face = async ({ parentStyleSheet, style }) => {
    const [, address] = style.src.match(/url\("?([^")]+)"?\)/);
    const letter = await fetch(new URL(address, parentStyleSheet.href ?? page.baseURI));
    return `@font-face { font-family: ${style.fontFamily}; font-weight: ${style.fontWeight}; src: url(${await asData(await letter.blob())}) }`;
  };
  letters ??= Promise.all(faces.map(face)).then((found) => found.join("\n"));
  return letters;
}

/** A page as it is seen, as an SVG text. */
async function svgOf(page) {
  const picture = asPicture(page.querySelector(MAIN), `template, style, script, ${ICON}`);
  const style = drawn("style", {}, await lettersOf(page));
  const fill = page.defaultView.getComputedStyle(page.querySelector(APP)).backgroundColor;
  picture.prepend(style, drawn("rect", { width: "100%", height: "100%", fill }));
  picture.setAttribute("overflow", "hidden");
  return new XMLSerializer().serializeToString(picture);
}

/** A page as an image. */
export async function imageOf(page) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await svgOf(page))}`;
  await image.decode();
  return image;
}

export function blobOf(image, width) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height: Math.round((width * image.height) / image.width) });
  const pen = canvas.getContext("2d");
  pen.imageSmoothingQuality = "high";
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, KIND.type, KIND.quality));
}

/**
 * A scene drawn out of sight by the app itself, as the stage shows it once all that it hides is uncovered: its picture
 * and where its parts stand in it, in shares of it. Null where the page does not come.
 */
export async function taken(scene) {
  const box = document.createElement("div");
  box.setAttribute("aria-hidden", "true");
  box.inert = true;
  box.style.cssText = "position: fixed; left: -20000px; top: 0";
  document.body.append(box);
  try {
    const frame = openFrame(box, { ...scene, hide: [], guess: [], live: false }, () => {}, { floor: 1 });
    frame.element.style.cssText += `; width: ${WIDTH}px; height: ${HEIGHT}px; border: 0`;
    await frame.ready;
    const page = frame.element.contentDocument;
    if (!page?.querySelector(MAIN)) return null;
    const large = await blobOf(await imageOf(page), WIDTH);
    return page.defaultView && { large, places: placesOf(page) }; // Null too where the page Talk was left meanwhile.
  } finally {
    box.remove();
  }
}
