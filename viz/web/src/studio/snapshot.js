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
export async function paintCanvases(roots) {
  const canvases = roots.flatMap((root) => [...root.querySelectorAll(`canvas[${PAINTED}]`)]);
  await Promise.all(canvases.map(async (canvas) => {
    const image = new Image();
    image.src = canvas.getAttribute(PAINTED);
    canvas.removeAttribute(PAINTED);
    if (image.getAttribute("src")) await image.decode().then(() => canvas.getContext("2d").drawImage(image, 0, 0), () => {});
  }));
}
