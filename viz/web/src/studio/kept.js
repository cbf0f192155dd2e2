import { stored } from "../shared/stored.js";
import { cover, roots } from "../stage/parts.js";
import { paintCanvases } from "./snapshot.js";

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

export async function keepScene(key, scene) {
  await scenes.keep(key, key, scene);
  document.dispatchEvent(new Event(CHANGED));
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
