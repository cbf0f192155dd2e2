import { stored } from "../shell/stored.js";
import { cover, roots } from "../stage/parts.js";

// A page as a text of its own, without its scripts: what a browser shows of it with no server.
const DROPPED = "script, noscript, link, iframe, template, title, meta";
const VOID = new Set(["area", "br", "col", "hr", "img", "input", "source", "wbr"]);
const PAINTED = "data-painted-as";

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");

const rulesOf = (sheet) => [...sheet.cssRules].filter((rule) => rule.constructor.name !== "CSSFontFaceRule").map((rule) => rule.cssText).join("\n");

/** A style as text: what was written into it, or the rules that a script has put into it. */
const styleText = (style) => (style.sheet ? rulesOf(style.sheet) : style.textContent);

/** What a form holds, which is no attribute of it. */
function held(element) {
  if (element.tagName === "TEXTAREA") return escaped(element.value);
  return null;
}

function attributes(element) {
  const found = [...element.attributes].filter(({ name }) => !name.startsWith("on") && name !== "srcdoc");
  if (element.tagName === "CANVAS") found.push({ name: PAINTED, value: element.width && element.height ? element.toDataURL() : "" });
  if (element.tagName === "INPUT") found.push({ name: "value", value: element.value });
  if (element.tagName === "OPTION" && element.selected) found.push({ name: "selected", value: "" });
  return found.map(({ name, value }) => ` ${name}="${escaped(value)}"`).join("");
}

function written(node, skipped) {
  if (node.nodeType === Node.TEXT_NODE) return escaped(node.data);
  if (node.nodeType !== Node.ELEMENT_NODE || node.matches(DROPPED)) return "";
  const tag = node.localName;
  if (tag === "style") return `<style>${styleText(node)}</style>`;
  const open = `<${tag}${attributes(node)}>`;
  if (VOID.has(tag)) return open;
  return `${open}${shadow(node, skipped)}${held(node) ?? inside(node, skipped)}</${tag}>`;
}

const inside = (node, skipped) => [...node.childNodes].map((one) => written(one, skipped)).join("");

function shadow({ shadowRoot }, skipped) {
  if (!shadowRoot) return "";
  const sheets = shadowRoot.adoptedStyleSheets.filter((sheet) => sheet !== skipped).map((sheet) => `<style>${rulesOf(sheet)}</style>`);
  return `<template shadowrootmode="open">${sheets.join("")}${inside(shadowRoot, skipped)}</template>`;
}

/** A page as it stands, as HTML; `letters` is a sheet with its fonts. What covers its parts is left to whoever shows it. */
export function snapshotOf(page, letters) {
  const root = page.documentElement;
  const linked = [...page.styleSheets].filter(({ ownerNode }) => ownerNode?.localName === "link").map(rulesOf);
  const adopted = page.adoptedStyleSheets.filter((sheet) => sheet !== page.covering).map(rulesOf);
  const sheets = [letters, ...linked].map((text) => `<style>${text}</style>`).join("");
  const styles = [...page.head.querySelectorAll("style")].map((style) => `<style>${styleText(style)}</style>`).join("");
  const last = adopted.map((text) => `<style>${text}</style>`).join("");
  return `<!doctype html><html${attributes(root)}><head><meta charset="utf-8">${sheets}${styles}${last}</head>${written(page.body, page.covering)}</html>`;
}

/** Paint the canvases of a page that was made of such a text. */
async function paintCanvases(roots) {
  const canvases = roots.flatMap((root) => [...root.querySelectorAll(`canvas[${PAINTED}]`)]);
  await Promise.all(canvases.map(async (canvas) => {
    const image = new Image();
    image.src = canvas.getAttribute(PAINTED);
    canvas.removeAttribute(PAINTED);
    if (image.getAttribute("src")) await image.decode().then(() => canvas.getContext("2d").drawImage(image, 0, 0), () => {});
  }));
}

const scenes = stored("attenscope-scenes", 150);
const BALLOT = 8.4; // Units that the choices of a scene that asks are high (ballot.css).
const CHANGED = "attenscope-scenes"; // An event of the document.

/** What a scene's picture depends on: its view, what it leaves out, the colours and words, and the app that draws it. */
export const keyOf = ({ address, omit, guess }, { server, scheme }) =>
  JSON.stringify([server, scheme, document.documentElement.lang, address, omit, guess?.length > 0]);

/**
 * A scene as it was rehearsed: its page as `html` of `width` by `height` pixels, a `small` picture of it, and what of it
 * has no room, as `misfits`. Undefined where there is none, or this browser keeps nothing for pages.
 */
export const keptScene = (key) => scenes.entryOf(key, key).catch(() => undefined);

export const keptKeys = () => scenes.names().catch(() => []);

/** Keep a scene; resolves to whether it was: a browser's storage can be full, or closed to pages. */
export async function keepScene(key, scene) {
  const isKept = await scenes.keep(key, key, scene).then(() => true, () => false);
  if (isKept) document.dispatchEvent(new Event(CHANGED));
  return isKept;
}

const REHEARSING = "rehearsing";

/** Say that scenes are being rehearsed, or are not any more: nothing else is drawn out of sight meanwhile. */
export const tellRehearsing = (on) => document.documentElement.toggleAttribute(`data-${REHEARSING}`, on);
export const isRehearsing = () => REHEARSING in document.documentElement.dataset;

/** Have `hear` hear whenever a scene has been kept; returns its end. */
export function hearKept(hear) {
  document.addEventListener(CHANGED, hear);
  return () => document.removeEventListener(CHANGED, hear);
}

/** As large as the box has room, in its middle: it was laid out for a screen that may have had another shape. */
function place(element, box, { width, height }) {
  const unit = Math.min(innerHeight / 100, 0.005625 * innerWidth); // As in presenter.css.
  const room = box.clientHeight - (element.classList.contains("asks") ? BALLOT * unit : 0);
  const zoom = Math.min(box.clientWidth / width, room / height);
  const [left, top] = [(box.clientWidth / zoom - width) / 2, (room / zoom - height) / 2];
  element.style.cssText = `zoom: ${zoom}; --zoom: ${zoom}; inset: auto; left: ${left}px; top: ${top}px; width: ${width}px; height: ${height}px`;
}

/** A kept scene in a frame of its own, as openFrame() gives a live one; nothing of it asks a server. */
export function openKept(box, scene, kept, listen) {
  const element = document.createElement("iframe");
  element.title = scene.title;
  element.classList.toggle("asks", scene.guess.length > 0);
  element.setAttribute("aria-hidden", "true");
  const frame = { element, revealed: false, done: false };
  const put = () => place(element, box, kept);
  const sized = new ResizeObserver(put);
  frame.cover = () => cover(element.contentDocument, frame.revealed ? [] : scene.hide, scene.omit);
  frame.remove = () => (sized.disconnect(), element.remove());
  frame.ready = new Promise((ready) => {
    element.onload = async () => {
      const page = element.contentDocument;
      listen(element.contentWindow);
      frame.cover();
      await Promise.all([page.fonts.ready, paintCanvases([...roots(page)])]);
      frame.done = true;
      ready(true);
    };
  });
  element.srcdoc = kept.html;
  box.append(element);
  put();
  sized.observe(box);
  return frame;
}
