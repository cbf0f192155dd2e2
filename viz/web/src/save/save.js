import { asPicture, chartPicture, standing } from "../pictures/as_picture.js";
import { handOut } from "../shared/element.js";
import { mounted, unmount } from "../shared/mounted.js";
import { drawn } from "../shared/picture.js";
import { say } from "../shared/say.js";

const MARGIN = 12;
const LAST = 2; // Seconds for which the last picture stands, besides.
const LARGEST = 2; // Times its size in the page: beyond that a film is large and plays badly.

const isHeading = (host) => host.matches(".heading");

/** A heading as an SVG text, as high as it stands in the page. */
function headingPicture(host) {
  const { width, height } = host.getBoundingClientRect();
  const { fontFamily, fontSize, fontWeight, color } = getComputedStyle(host);
  const svg = drawn("svg", { width, height, overflow: "visible" });
  const look = { "font-family": fontFamily, "font-size": fontSize, "font-weight": fontWeight, fill: color };
  const text = drawn("text", { x: 0, y: height / 2, "dominant-baseline": "central", ...look });
  text.textContent = host.textContent;
  svg.append(text);
  return svg;
}

/** What a component says of its picture: it shows `of`, an SVG or any other element, but not what matches `without`. */
const takenOf = ({ of, without }) => (of.tagName === "svg" ? standing(of) : asPicture(of, without));

/** Every picture of the view with its element: headings, plotly charts, and components whose root has a `picture`. */
function pictures(page, clear) {
  const hosts = [...page.querySelectorAll(".part:is([data-role=picture], [data-role=decoding], .heading)")];
  const one = (host) => {
    if (isHeading(host)) return [[host, headingPicture(host)]];
    const plot = host.querySelector(":scope > .js-plotly-plot");
    if (plot) return [[plot, chartPicture(plot, clear)]];
    const roots = [...(host.shadowRoot?.querySelectorAll("*") ?? [])].filter((root) => root.picture);
    roots.forEach((root) => root.classList.add("pictured")); // What is left out leaves no gap.
    return roots.map((root) => [root, takenOf(root.picture)]);
  };
  return hosts.flatMap(one);
}

/** Without the headings that no picture follows. */
const withHeadings = (found) => found.filter(([element], i) => !isHeading(element) || (found[i + 1] && !isHeading(found[i + 1][0])));

/** Where each stands; a heading right above the picture that follows, without the words that stand between them. */
function boxesOf(elements) {
  const boxes = elements.map((element) => element.getBoundingClientRect());
  return boxes.map((box, i) => (isHeading(elements[i]) ? new DOMRect(box.x, boxes[i + 1].y - box.height, box.width, box.height) : box));
}

/** The page's own letters: a picture finds none but those that stand in it. */
function lettersOf(page) {
  const style = drawn("style", {});
  style.textContent = page.getElementById("font").textContent;
  return style;
}

/** The view's pictures as one SVG text, each where it stands; `clear`: on no background. */
function composed(page, { clear }) {
  const found = withHeadings(pictures(page, clear));
  const boxes = boxesOf(found.map(([element]) => element));
  const [left, top] = [Math.min(...boxes.map((box) => box.left)), Math.min(...boxes.map((box) => box.top))];
  const size = {
    width: Math.max(...boxes.map((box) => box.right)) - left + 2 * MARGIN,
    height: Math.max(...boxes.map((box) => box.bottom)) - top + 2 * MARGIN,
  };
  const svg = drawn("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}` });
  const fill = page.defaultView.getComputedStyle(page.body).backgroundColor;
  svg.append(lettersOf(page));
  if (!clear) svg.append(drawn("rect", { ...size, fill }));
  found.forEach(([, picture], i) => {
    picture.setAttribute("x", boxes[i].left - left + MARGIN);
    picture.setAttribute("y", boxes[i].top - top + MARGIN);
    svg.append(picture);
  });
  return { text: new XMLSerializer().serializeToString(svg), ...size };
}

/** The view of a page that moves, as components and charts say it: how many pictures, the seconds of each, and `show(at)`. */
function filmOf(page) {
  const roots = [...page.querySelectorAll(".part")].flatMap((host) => [host, ...(host.shadowRoot?.querySelectorAll("*") ?? [])]);
  return roots.find((root) => root.film)?.film;
}

const painted = (page) => new Promise((done) => page.defaultView.requestAnimationFrame(() => page.defaultView.requestAnimationFrame(done)));

/** Every picture of the page's film, for src/moving/film.js. */
async function filmPictures(page, scale) {
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
    return new Blob([await film({ kind, pictures: await filmPictures(page, scale), fill })], { type: kind === "gif" ? "image/gif" : "video/webm" });
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
