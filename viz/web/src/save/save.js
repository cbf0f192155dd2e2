import { handOut } from "../shared/element.js";
import { mounted, unmount } from "../shared/mounted.js";
import { say } from "../shared/say.js";
import { composed } from "./compose.js";

const LAST = 2; // Seconds for which the last picture stands, besides.
const LARGEST = 2; // Times its size in the page: beyond that a film is large and plays badly.

/** The view of a page that moves, as components and charts say it: how many pictures, the seconds of each, and `show(at)`. */
function filmOf(page) {
  const roots = [...page.querySelectorAll(".part")].flatMap((host) => [host, ...(host.shadowRoot?.querySelectorAll("*") ?? [])]);
  return roots.find((root) => root.film)?.film;
}

const painted = (page) => new Promise((done) => page.defaultView.requestAnimationFrame(() => page.defaultView.requestAnimationFrame(done)));

/** Every picture of the page's film, for src/moving/film.js. */
async function pictures(page, scale) {
  const film = filmOf(page);
  const grown = Math.min(scale, LARGEST);
  const found = [];
  for (let at = 0; at < film.count; at += 1) {
    await film.show(at);
    await painted(page);
    const { text, width, height } = composed(page, { clear: false });
    const seconds = film.seconds + (at === film.count - 1 ? LAST : 0);
    const address = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    found.push({ address, size: [Math.round(width * grown), Math.round(height * grown)], seconds });
  }
  return found;
}

/** The page's film as a Blob; `encoder` is the script src/moving/film.js, which only who makes a film is sent. */
async function filmed(page, { scale, encoder, asked: { kind } }) {
  const address = URL.createObjectURL(new Blob([`export default ${encoder};`], { type: "text/javascript" }));
  try {
    const { default: film } = await import(address);
    const fill = page.defaultView.getComputedStyle(page.body).backgroundColor;
    return new Blob([await film({ kind, pictures: await pictures(page, scale), fill })], { type: kind === "gif" ? "image/gif" : "video/webm" });
  } finally {
    URL.revokeObjectURL(address);
  }
}

const NAMES = { png: "PNG", svg: "SVG", webm: "WebM", gif: "GIF" };
const MOVING = ["webm", "gif"];
const WINDOW = [1280, 720]; // What a view is drawn in: as large as a projector.

async function asPng({ text, width, height }, scale) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/** The page in a frame that nobody sees, once all in it is drawn. */
async function framed(page, width) {
  const frame = document.createElement("iframe");
  frame.title = say("A picture being taken");
  frame.setAttribute("aria-hidden", "true");
  frame.style.cssText = `position: fixed; left: -20000px; top: 0; border: 0; width: ${Math.max(width, WINDOW[0])}px; height: ${WINDOW[1]}px`;
  frame.srcdoc = page;
  document.body.append(frame);
  const ready = () => frame.contentDocument?.body?.dataset.ready;
  while (!ready()) await new Promise((done) => setTimeout(done, 30));
  for (let i = 0; i < 2; i += 1) await new Promise((done) => frame.contentWindow.requestAnimationFrame(done));
  return frame;
}

async function take(data) {
  const frame = await framed(data.page, data.width);
  const { kind } = data.asked;
  try {
    handOut(await made(frame.contentDocument, data), `${data.name}.${kind}`);
  } finally {
    frame.remove();
  }
}

function made(page, data) {
  if (MOVING.includes(data.asked.kind)) return filmed(page, data);
  const picture = composed(page, data);
  return data.asked.kind === "svg" ? new Blob([picture.text], { type: "image/svg+xml" }) : asPng(picture, data.scale);
}

function build(root) {
  root.className = "buttons";
  const buttons = Object.entries(NAMES).map(([kind, name]) => {
    const button = document.createElement("button");
    button.textContent = name;
    button.setAttribute("aria-label", say("Save as {kind}", { kind: name }));
    root.append(button);
    return [kind, button];
  });
  return { buttons: Object.fromEntries(buttons), asked: 0, taken: 0 };
}

/** A browser encodes video only for pages that it trusts: over https, or of this machine. */
function showMoving({ webm, gif }, moves) {
  webm.hidden = gif.hidden = !moves;
  webm.disabled = !("VideoEncoder" in globalThis);
  webm.title = webm.disabled ? say("This browser makes WebM over https or on this machine alone") : "";
}

export default function save({ data, parentElement, setTriggerValue }) {
  const view = mounted(parentElement, "save", build);
  showMoving(view.buttons, data.moves);
  for (const [kind, button] of Object.entries(view.buttons))
    button.onclick = () => {
      button.setAttribute("aria-busy", "true");
      view.asked += 1;
      setTriggerValue("take", { kind, number: view.asked });
    };
  if (data.page && data.asked.number === view.asked && view.taken < view.asked) {
    view.taken = view.asked;
    take(data).finally(() => Object.values(view.buttons).forEach((one) => one.removeAttribute("aria-busy")));
  }
  return () => unmount(parentElement);
}
