import { handOut } from "../shared/hand_out.js";
import { say } from "../shared/say.js";
import { mounted, unmount } from "../shared/mounted.js";
import { composed } from "./compose.js";

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
  try {
    const picture = composed(frame.contentDocument, data);
    if (data.asked.kind === "svg") handOut(new Blob([picture.text], { type: "image/svg+xml" }), `${data.name}.svg`);
    else handOut(await asPng(picture, data.scale), `${data.name}.png`);
  } finally {
    frame.remove();
  }
}

function build(root) {
  root.className = "buttons";
  const [png, svg] = ["PNG", "SVG"].map((kind) => {
    const button = document.createElement("button");
    button.textContent = kind;
    button.setAttribute("aria-label", say("Save as {kind}", { kind }));
    root.append(button);
    return button;
  });
  return { png, svg, asked: 0, taken: 0 };
}

export default function save({ data, parentElement, setTriggerValue }) {
  const view = mounted(parentElement, "save", build);
  const ask = (kind) => {
    view[kind].setAttribute("aria-busy", "true");
    view.asked += 1;
    setTriggerValue("take", { kind, number: view.asked });
  };
  view.png.onclick = () => ask("png");
  view.svg.onclick = () => ask("svg");
  if (data.page && data.asked.number === view.asked && view.taken < view.asked) {
    view.taken = view.asked;
    take(data).finally(() => [view.png, view.svg].forEach((one) => one.removeAttribute("aria-busy")));
  }
  return () => unmount(parentElement);
}
