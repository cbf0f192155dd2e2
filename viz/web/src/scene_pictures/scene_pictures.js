import { mounted, unmount } from "../shared/mounted.js";
import { stored } from "../shell/stored.js";
import { AT_REST, RADIO_OPTION } from "../shell/streamlit.js";
import { hearKept, isRehearsing, keptKeys, keptScene, keyOf } from "../studio/kept.js";
import { isMisfit, taken } from "../studio/studio.js";
import { preview } from "./preview.js";

const PAUSE = 200; // Milliseconds without a key, a click or a movement of the mouse.
const COMES = 1000;
const LOOKS = 100; // Milliseconds.
const INPUT = ["keydown", "pointerdown", "pointermove", "wheel"];

/** Hear when somebody works on the page: `last()` is when, in milliseconds, and `stop()` ends it. */
function hearInput() {
  let last = performance.now() + COMES; // The visitor's own talk may come a moment after the page.
  const heard = () => (last = performance.now());
  INPUT.forEach((name) => addEventListener(name, heard, { capture: true, passive: true }));
  return { last: () => last, stop: () => INPUT.forEach((name) => removeEventListener(name, heard, { capture: true })) };
}

const isShown = () => new URLSearchParams(location.search).get("present") === "1";

/** Whether nobody works on the page, no talk is shown or rehearsed, and the page itself waits for nothing. */
function rests(input) {
  const busy = document.hidden || isRehearsing() || isShown() || !document.querySelector(AT_REST);
  return !busy && performance.now() - input.last() > PAUSE;
}

/** Wait until what is drawn in the background keeps nobody waiting; false once the view is gone. */
async function quiet({ root, input }) {
  while (root.isConnected && !rests(input)) await new Promise((done) => setTimeout(done, LOOKS));
  return root.isConnected;
}

const kept = stored("attenscope-pictures", 50);

/** The picture that this browser has kept; undefined where there is none, or it keeps nothing for pages. */
const keptPicture = (key) => kept.entryOf(key, key).catch(() => undefined);

/** A scene with all its parts. The tree of a beam search takes the place of other parts: without it these are there. */
const whole = (scene) => scene && { ...scene, guess: [], omit: scene.omit.filter((part) => part === "tree") };
const editedKey = (data) => data.scenes[data.at] && keyOf(whole(data.scenes[data.at]), data);

/** Show in the list what was rehearsed, over what came with the talk, and of the scene that is edited what there is. */
function dress({ data, pictures, rehearsed, sheet, edited }) {
  const rule = (scene, at) => {
    const { address, misfits } = (scene && rehearsed.get(keyOf(scene, data))) ?? {};
    const row = `.st-key-${data.list} ${RADIO_OPTION}:has([value="${at}"]) > div`;
    const picture = address ? `${row}::before { content: ""; background: center / contain no-repeat url(${address}); }` : "";
    return misfits && isMisfit(misfits) ? `${picture} ${row}::after { content: "!"; }` : picture;
  };
  sheet.replaceSync(data.scenes.map(rule).join("\n"));
  const scene = data.scenes[data.at];
  edited(scene, scene && pictures.get(editedKey(data)), data.parts, scene && rehearsed.get(keyOf(scene, data))?.misfits);
}

/** Take over what has been rehearsed. */
async function follow(view) {
  const there = new Set(await keptKeys());
  const keys = view.data.scenes.filter(Boolean).map((scene) => keyOf(scene, view.data));
  for (const key of keys.filter((one) => there.has(one) && !view.rehearsed.has(one))) {
    const scene = await keptScene(key);
    if (scene && view.root.isConnected) view.rehearsed.set(key, { address: URL.createObjectURL(scene.small), misfits: scene.misfits });
  }
  if (view.root.isConnected) dress(view);
}

/** Draw the scene that is edited, with all its parts, once nobody works on the page. */
async function work(view) {
  if (view.working) return;
  view.working = true;
  try {
    for (let key = editedKey(view.data); key && !view.pictures.has(key) && view.root.isConnected; key = editedKey(view.data)) {
      const scene = whole(view.data.scenes[view.data.at]);
      let picture = await keptPicture(key);
      if (!picture) {
        if (!(await quiet(view))) return;
        if (key !== editedKey(view.data)) continue; // Another one is edited meanwhile.
        picture = await taken(scene);
        if (key !== editedKey(view.data)) continue; // Its colours have changed meanwhile.
        if (picture) await kept.keep(key, key, picture).catch(() => {});
      }
      // A page that does not come is not asked for again while the scene stays as it is.
      view.pictures.set(key, picture && { places: picture.places, large: URL.createObjectURL(picture.large) });
      if (view.root.isConnected) dress(view);
    }
  } finally {
    view.working = false;
  }
}

function build(root, view) {
  const sheet = new CSSStyleSheet();
  const edited = preview(root, (lists) => view.tell("parts", lists));
  const input = hearInput();
  document.adoptedStyleSheets.push(sheet);
  const deaf = hearKept(() => follow(view));
  const dispose = () => {
    input.stop();
    deaf();
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    view.pictures.forEach((picture) => picture && URL.revokeObjectURL(picture.large));
    view.rehearsed.forEach(({ address }) => URL.revokeObjectURL(address));
  };
  return { sheet, edited, input, pictures: new Map(), rehearsed: new Map(), working: false, dispose };
}

export default function scenePictures({ data, parentElement, setTriggerValue }) {
  const view = mounted(parentElement, "scene_pictures", build);
  Object.assign(view, { data, tell: setTriggerValue });
  dress(view);
  follow(view);
  work(view);
  return () => unmount(parentElement);
}
