import { addressed } from "../../web/src/shared/element.js";

/** The scene that the address asks for, from 0: `#scene=3` is the third. */
export const asked = () => Math.max(Number(addressed().get("scene")) || 1, 1) - 1;

/** Say in the address which scene is shown, from 0: a reload comes back to it. */
export function writeScene(scene) {
  const now = addressed();
  now.set("scene", scene + 1);
  history.replaceState(null, "", `#${now}`);
}
