const SMALLEST = 0.5;
const ROWS = 450; // Fewer pixels than these, of its own, no slide is thought to be high: words grow no further.
const ROUNDS = 5;
const NARROW = "(max-width: 1000px)"; // There it is a page to scroll, as its style sheet says too.

const painted = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

/**
 * Zoom a slide of a talk until it fills the room that `place` has for it, so that type, strokes and pictures grow
 * alike. Found once for every size of the window and kept in `state`: who comes back sees it at once.
 */
export async function fit(place, inside, state) {
  const size = `${innerWidth} ${innerHeight} ${place.clientHeight}`;
  const zoomTo = (zoom) => inside.style.setProperty("zoom", zoom);
  if (matchMedia(NARROW).matches) return zoomTo(1);
  if (state.fitted === size) return zoomTo(state.zoom);
  inside.style.visibility = "hidden";
  let zoom = 1;
  for (let round = 0; round < ROUNDS && inside.isConnected; round += 1) {
    const share = (place.clientHeight - 4) / (inside.scrollHeight * zoom);
    // What wraps needs less height as it gets more width, so a step can go too far: the later ones only make it fit.
    if (round && share >= 1 && (share < 1.08 || round === ROUNDS - 1)) break;
    zoom = Math.min(Math.max(zoom * share, SMALLEST), innerHeight / ROWS);
    zoomTo(zoom);
    await painted();
  }
  Object.assign(state, { fitted: size, zoom });
  inside.style.visibility = "";
}
