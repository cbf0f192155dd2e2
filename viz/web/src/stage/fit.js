// The shorter side of a screen in pixels of a scene: what is 12 of them high is 1/45 of the screen, and is read from the
// back row. A scene grows beyond that where it is short, and is made smaller only where nothing else helps.
const ROWS = 540;
const LARGEST = 1.8;
const SMALLEST = 0.4;
const [MIDDLE, PROBE] = [350, 300]; // Pixels of a picture that has as much height as it is given.
const COMFORT = 260; // The same; before a picture gets less, lists are made shorter.
const LOWEST = [190, 150]; // The least it gets alone, and where two stand one below the other.
const GROWS = 0.3; // Pixels that a scene must gain with each pixel of its pictures, for them to be fitted.
const ROUNDS = 5;
const SPARE = 3; // Pixels.

/** Zoom at which type of 12 pixels is 1/45 of the screen's shorter side. */
export const readable = () => Math.min(innerWidth, innerHeight) / ROWS;

/**
 * Fit a scene: at the zoom that the back row can read, its pictures get the height that is left. A scene without such
 * pictures is zoomed until it fills the room; one of words alone is scrolled rather than made smaller. `stage` says how large all of it is (`tall()`) and the room (`room()`),
 * in the scene's own pixels, sets `zoom` and `picture` (a height), and leaves rows of lists out (`cut(pixels)`); each
 * resolves once nothing moves. `largest` is how far it may grow beyond the readable zoom, `floor`.
 */
export async function fitScene(stage) {
  const floor = stage.floor ?? readable();
  await stage.zoom(floor);
  await stage.picture(PROBE);
  const low = stage.tall();
  await stage.picture(MIDDLE);
  const grown = (stage.tall() - low) / (MIDDLE - PROBE);
  if (grown > GROWS) await stage.picture(COMFORT);
  for (let round = 0; round < ROUNDS && stage.tall() > stage.room() + SPARE; round += 1)
    if (!(await stage.cut(stage.tall() - stage.room()))) break;
  if (grown > GROWS) await fillPictures(stage, grown);
  if (grown <= GROWS) await fillByZoom(stage, floor, [floor, floor * (stage.largest ?? LARGEST)]);
  else if (stage.tall() > stage.room() + SPARE) await fillByZoom(stage, floor, [floor * SMALLEST, floor]);
}

async function fillPictures(stage, grown) {
  let height = COMFORT;
  for (let round = 0; round < ROUNDS; round += 1) {
    const left = stage.room() - stage.tall();
    if (left >= 0 && left < SPARE) return;
    const next = Math.max(LOWEST[grown > 1.5 ? 1 : 0], height + Math.floor((left - 1) / grown));
    if (next === height) return;
    height = next;
    await stage.picture(height);
  }
}

async function fillByZoom(stage, zoom, [least, most]) {
  // What wraps needs less height as it gets more width, so a step by the share can go too far and the next one all the
  // way back: once a zoom that fits and one that does not are known, it lies between them.
  let [fits, exceeds] = [null, null];
  for (let round = 1; round <= ROUNDS; round += 1) {
    const share = stage.room() / stage.tall();
    if (stage.tall() <= stage.room() + SPARE) fits = zoom;
    else exceeds = zoom;
    const next = fits && exceeds ? (fits + exceeds) / 2 : Math.min(Math.max(zoom * share, least), most);
    if ((zoom === fits && share < 1.1) || Math.abs(next / zoom - 1) < 0.02) break;
    zoom = next;
    await stage.zoom(zoom);
  }
  if (fits && stage.tall() > stage.room() + SPARE) await stage.zoom(fits);
}
