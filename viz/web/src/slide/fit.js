import { cutLists } from "../stage/cut.js";
import { roots } from "../stage/parts.js";
import { fitScene } from "../stage/fit.js";

const NARROW = "(max-width: 1000px)"; // There it is a page to scroll, as its style sheet says too, but not in a frame.

/** Whether the file stands in another page: the place it is given is then all the room there is. */
export const isFramed = () => window !== window.parent;

const painted = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

/**
 * Fit a slide of a talk into the room that `place` has for it, as the app fits a scene. Found once for every size of
 * the window and kept in `state`: who comes back sees it at once.
 */
export async function fit(place, inside, state) {
  const size = `${innerWidth} ${innerHeight} ${place.clientHeight}`;
  const put = (name, value) => inside.style.setProperty(name, value);
  const found = { zoom: 1, picture: null };
  const set = ({ zoom, picture }) => (put("zoom", zoom), put("--picture", picture));
  if (matchMedia(NARROW).matches && !isFramed()) return set(found);
  if (state.fitted === size) return set(state.found);
  inside.style.visibility = "hidden";
  const change = (what) => (Object.assign(found, what), set(found), painted());
  try {
    await fitScene({
      tall: () => inside.scrollHeight,
      // Four pictures beside each other fill the width as it is: what is zoomed leaves them less.
      largest: [...roots(inside)].some((root) => root.querySelector(".panels")) ? 1 : undefined,
      room: () => (place.clientHeight - 4) / found.zoom,
      zoom: (zoom) => change({ zoom }),
      cut: (over) => cutLists(inside, over, found.zoom) && painted(),
      picture: (height) => change({ picture: `${height}px` }),
    });
    Object.assign(state, { fitted: size, found });
  } finally {
    inside.style.visibility = "";
  }
}
