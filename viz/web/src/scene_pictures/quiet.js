import { isRehearsing } from "../studio/kept.js";
import { AT_REST } from "../shared/streamlit.js";

const PAUSE = 200; // Milliseconds without a key, a click or a movement of the mouse.
const COMES = 1000;
const LOOKS = 100; // Milliseconds.
const INPUT = ["keydown", "pointerdown", "pointermove", "wheel"];

/** Hear when somebody works on the page: `last()` is when, in milliseconds, and `stop()` ends it. */
export function hearInput() {
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
export async function quiet({ root, input }) {
  while (root.isConnected && !rests(input)) await new Promise((done) => setTimeout(done, LOOKS));
  return root.isConnected;
}
