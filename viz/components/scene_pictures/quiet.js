const PAUSE = 1200; // Milliseconds without a key, a click or a movement of the mouse.
const LOOKS = 100; // Milliseconds.
const INPUT = ["keydown", "pointerdown", "pointermove", "wheel"];

let last = performance.now();
for (const name of INPUT) addEventListener(name, () => (last = performance.now()), { capture: true, passive: true });

const isShown = () => new URLSearchParams(location.search).get("present") === "1";

/** Whether nobody works on the page, no talk is shown, and the page itself waits for nothing. */
function rests() {
  const app = document.querySelector('[data-testid="stApp"]');
  return performance.now() - last > PAUSE && !document.hidden && !isShown() && app?.dataset.testScriptState === "notRunning";
}

/** Wait until what is drawn in the background keeps nobody waiting; false once the view is gone. */
export async function quiet({ root }) {
  while (root.isConnected && !rests()) await new Promise((done) => setTimeout(done, LOOKS));
  return root.isConnected;
}
