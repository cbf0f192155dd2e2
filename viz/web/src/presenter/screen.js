import { say } from "../shared/say.js";
import { add } from "../talk/add.js";

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
