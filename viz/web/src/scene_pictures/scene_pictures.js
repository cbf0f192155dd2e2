import { mounted, unmount } from "../shared/mounted.js";
import { stored } from "../shared/stored.js";
import { preview } from "./preview.js";
import { hearInput, quiet } from "./quiet.js";
import { taken } from "./studio.js";

const kept = stored("attenscope-pictures", 150);
const ROW = '[data-testid="stRadioOption"]';
const AROUND = 300; // Pixels above and below the window in which a scene is drawn before it is scrolled to.

/** What a scene's picture depends on: its view, what it leaves out, the colours and letters, and the app that draws it. */
const keyOf = ({ address, omit }, { server, scheme }) => JSON.stringify([server, scheme, document.documentElement.lang, address, omit]);

/** The picture that this browser has kept; undefined where there is none, or it keeps nothing for pages. */
const keptPicture = (key) => kept.entryOf(key, key).catch(() => undefined);

/** The rows of the list whose scenes are to be drawn now, as their numbers. */
function inSight(list) {
  const rows = [...document.querySelectorAll(`.st-key-${list} ${ROW}`)];
  const near = ({ top, bottom }) => bottom > -AROUND && top < innerHeight + AROUND;
  return [...rows.keys()].filter((at) => near(rows[at].getBoundingClientRect()));
}

/** A scene with all its parts. The tree of a beam search takes the place of other parts: without it these are there. */
const whole = (scene) => scene && { ...scene, omit: scene.omit.filter((part) => part === "tree") };

/** Show in the list, and of the scene that is edited, what there is. */
function dress({ data, pictures, sheet, edited }) {
  const rule = (scene, at) => {
    const address = scene && pictures.get(keyOf(scene, data))?.address;
    return address ? `.st-key-${data.list} ${ROW}:has([value="${at}"]) > div::before { background-image: url(${address}); }` : "";
  };
  sheet.replaceSync(data.scenes.map(rule).join("\n"));
  const scene = data.scenes[data.at];
  edited(scene, scene && pictures.get(keyOf(whole(scene), data)), data.parts);
}

/** The next scene that has no picture yet, the one that is edited first. */
function wanted({ data, pictures }) {
  const rows = [data.at, ...inSight(data.list)].map((at) => data.scenes[at]);
  return [whole(rows[0]), ...rows].find((scene) => scene && !pictures.has(keyOf(scene, data)));
}

function isNext(view, key) {
  const scene = wanted(view);
  return Boolean(scene) && keyOf(scene, view.data) === key;
}

async function add(view, scene) {
  const key = keyOf(scene, view.data);
  let picture = await keptPicture(key);
  if (!picture) {
    const awaited = key === keyOf(whole(view.data.scenes[view.data.at] ?? scene), view.data);
    if (!(await quiet(view, awaited)) || !isNext(view, key)) return; // Another talk may have come meanwhile.
    picture = await taken(scene);
    if (key !== keyOf(scene, view.data)) return; // Its colours have changed meanwhile.
    if (picture) await kept.keep(key, key, picture).catch(() => {});
  }
  // A page that does not come is not asked for again while the scene stays as it is.
  view.pictures.set(key, picture && { places: picture.places, address: URL.createObjectURL(picture.small), large: URL.createObjectURL(picture.large) });
  if (view.root.isConnected) dress(view);
}

/** Draw what is missing, one scene after the other. */
async function work(view) {
  if (view.working) return;
  view.working = true;
  try {
    for (let scene = wanted(view); scene && view.root.isConnected; scene = wanted(view)) await add(view, scene);
  } finally {
    view.working = false;
  }
}

function build(root, view) {
  const sheet = new CSSStyleSheet();
  const edited = preview(root, (lists) => view.tell("parts", lists));
  const input = hearInput();
  const look = () => work(view);
  document.adoptedStyleSheets.push(sheet);
  addEventListener("scroll", look, true);
  addEventListener("resize", look);
  const dispose = () => {
    input.stop();
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    removeEventListener("scroll", look, true);
    removeEventListener("resize", look);
    view.pictures.forEach((picture) => picture && [picture.address, picture.large].forEach((one) => URL.revokeObjectURL(one)));
  };
  return { sheet, edited, input, pictures: new Map(), working: false, dispose };
}

export default function scenePictures({ data, parentElement, setTriggerValue }) {
  const view = mounted(parentElement, "scene_pictures", build);
  Object.assign(view, { data, tell: setTriggerValue });
  dress(view);
  work(view);
  return () => unmount(parentElement);
}
