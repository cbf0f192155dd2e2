import { mounted, unmount } from "../shared/mounted.js";

const SVG_SPACE = "http://www.w3.org/2000/svg";
const SCALE = 2;

/** The layers of a plotly chart in one SVG, without what only answers the mouse. */
function chartPicture(plot) {
  const box = plot.getBoundingClientRect();
  const joined = document.createElementNS(SVG_SPACE, "svg");
  for (const layer of plot.querySelectorAll(".main-svg")) {
    const copy = layer.cloneNode(true);
    copy.querySelectorAll(".hoverlayer, .draglayer, .zoomlayer").forEach((part) => part.remove());
    copy.style.background = "none";
    joined.append(copy);
  }
  joined.setAttribute("width", box.width);
  joined.setAttribute("height", box.height);
  return joined;
}

/** Every picture in `frame` with its element: plotly charts, and components whose root has a `picture`. */
function pictures(frame) {
  const charts = [...frame.querySelectorAll(".js-plotly-plot")].map((plot) => [plot, chartPicture(plot)]);
  const hosts = [...frame.querySelectorAll("*")].filter((one) => one.shadowRoot);
  const roots = hosts.flatMap((host) => [...host.shadowRoot.querySelectorAll("*")]).filter((one) => one.picture);
  return [...charts, ...roots.map((root) => [root, root.picture()])];
}

/** One SVG text of everything in the frame, each picture where it stands, on the page's background. */
function composed(frame) {
  const found = pictures(frame);
  const boxes = found.map(([element]) => element.getBoundingClientRect());
  const [left, top] = [Math.min(...boxes.map((box) => box.left)), Math.min(...boxes.map((box) => box.top))];
  const width = Math.max(...boxes.map((box) => box.right)) - left;
  const height = Math.max(...boxes.map((box) => box.bottom)) - top;
  const svg = document.createElementNS(SVG_SPACE, "svg");
  for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) svg.setAttribute(name, value);
  const paper = document.createElementNS(SVG_SPACE, "rect");
  const fill = getComputedStyle(document.querySelector(".stApp")).backgroundColor;
  for (const [name, value] of Object.entries({ width, height, fill })) paper.setAttribute(name, value);
  svg.append(paper);
  found.forEach(([, picture], i) => {
    picture.setAttribute("x", boxes[i].left - left);
    picture.setAttribute("y", boxes[i].top - top);
    svg.append(picture);
  });
  return { text: new XMLSerializer().serializeToString(svg), width, height };
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function asPng({ text, width, height }) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = width * SCALE;
  canvas.height = height * SCALE;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

export default function save({ data, parentElement }) {
  const view = mounted(parentElement, "save", (root) => {
    root.className = "buttons";
    const [png, svg] = ["PNG", "SVG"].map((kind) => {
      const button = document.createElement("button");
      button.textContent = kind;
      button.setAttribute("aria-label", `Save as ${kind}`);
      root.append(button);
      return button;
    });
    return { png, svg };
  });
  const taken = () => composed(document.querySelector(`.st-key-${data.frame}`));
  view.png.onclick = async () => download(await asPng(taken()), `${data.name}.png`);
  view.svg.onclick = () => download(new Blob([taken().text], { type: "image/svg+xml" }), `${data.name}.svg`);
  return () => unmount(parentElement);
}
