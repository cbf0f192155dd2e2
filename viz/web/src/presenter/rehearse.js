import { say } from "../shared/say.js";
import { openFrame } from "../studio/frame.js";
import { keepScene, keptKeys, snapshotOf } from "../studio/kept.js";
import { THUMBNAIL, blobOf, imageOf, lettersOf, misfitsOf } from "../studio/studio.js";
import { add } from "../talk/ballot.js";

/** The dialog of a show, empty: its title, the box of its frames, and the line under them. */
export function buildScreen(root, numbered) {
  const dialog = add(root, "dialog", "show");
  dialog.setAttribute("aria-label", numbered ? say("The talk") : say("This page, presented"));
  const title = add(dialog, "h1", "title");
  const box = add(dialog, "div", "frames");
  const foot = add(dialog, "div", "foot");
  const [point, place] = [add(foot, "div", "point"), add(foot, "div", "place")];
  title.setAttribute("aria-live", "polite");
  title.hidden = foot.hidden = !numbered;
  title.textContent = place.textContent = "\u00a0"; // Lines of their own from the start: scenes are fitted into what they leave.
  return { dialog, title, box, point, place };
}

/** Whether what is shown is light ink on dark paper. */
export const isDark = (shown) => getComputedStyle(shown).backgroundColor.match(/\d+/g).slice(0, 3).reduce((sum, one) => sum + Number(one), 0) < 384;

// The screen of a projector, as large as this window has it: a scene is kept as that one shows it.
const LEAST = [1280, 720];
const SHAPE = LEAST[0] / LEAST[1];
const ROWS = 540; // Pixels of a scene that such a screen is high (fit.js).

function sizeOfStage() {
  const width = Math.max(LEAST[0], Math.min(innerWidth, innerHeight * SHAPE));
  return { width, height: width / SHAPE };
}

/** A stage that nobody sees. */
function hiddenStage(root) {
  const { width, height } = sizeOfStage();
  const screen = buildScreen(root, true);
  screen.dialog.style.cssText = `--unit: ${height / 100}px; position: fixed; left: -20000px; top: 0; width: ${width}px; height: ${height}px`;
  Object.assign(screen.dialog, { inert: true, ariaHidden: "true" });
  screen.dialog.setAttribute("open", "");
  return { ...screen, floor: height / ROWS };
}

/** The frame of the stage with a scene in it: the one that is there, or a new one. */
function frameOf(stage, scene) {
  if (stage.frame?.canGoTo(scene)) stage.frame.goTo(scene);
  else {
    stage.frame?.remove();
    stage.frame = openFrame(stage.box, scene, () => {}, { floor: stage.floor });
  }
  return stage.frame;
}

/** A scene as it is shown once all is uncovered, for kept.js; null where its page does not come. */
async function drawn(stage, scene) {
  stage.title.textContent = scene.title;
  stage.point.textContent = scene.point;
  const frame = frameOf(stage, { ...scene, hide: [], live: false });
  frame.revealed = true;
  if (!(await frame.ready)) return null;
  const page = frame.element.contentDocument;
  const { innerWidth: width, innerHeight: height } = page.defaultView;
  const misfits = misfitsOf(frame, frame.element.currentCSSZoom / stage.floor);
  const html = snapshotOf(page, await lettersOf(page));
  return { html, width, height, misfits, fitted: frame.fitted, small: await blobOf(await imageOf(page), THUMBNAIL) };
}

/**
 * Draw all scenes that are not kept yet and keep them, one after the other; `told(done)` hears how many there are.
 * `isStopped()` ends it. Resolves to the numbers, from 0, of the scenes that did not come (`lost`), and to whether it
 * ended because the browser keeps no more (`isFull`).
 */
export async function rehearse(root, scenes, keyOf, { told, isStopped }) {
  const stage = hiddenStage(root);
  const lost = [];
  try {
    const keys = new Set(await keptKeys());
    for (const [at, scene] of scenes.entries()) {
      told(at - lost.length);
      const key = keyOf(scene);
      if (keys.has(key)) continue;
      const picture = await drawn(stage, scene);
      if (isStopped()) break;
      if (!picture) lost.push(at);
      else if (!(await keepScene(key, picture))) return { lost, isFull: true };
    }
    return { lost, isFull: false };
  } finally {
    stage.dialog.remove();
  }
}
