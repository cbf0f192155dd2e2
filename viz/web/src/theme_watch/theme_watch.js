import { mounted, unmount } from "../shared/mounted.js";
import { APP } from "../shared/streamlit.js";

/** Tells Python when the page's colour scheme is not the one it drew for: Streamlit does not run again on its own. */
export default function themeWatch({ data, parentElement, setTriggerValue }) {
  const app = document.querySelector(APP);
  const view = mounted(parentElement, "theme", (root, made) => {
    const observer = new MutationObserver(() => made.compare());
    observer.observe(app, { attributes: true, attributeFilter: ["class"] });
    return { told: data.drawn, dispose: () => observer.disconnect() };
  });
  view.compare = () => {
    const shown = getComputedStyle(app).colorScheme;
    if (shown === view.told) return;
    view.told = shown; // Once for each change, whatever the answer.
    setTriggerValue("shown", shown);
  };
  view.compare();
  return () => unmount(parentElement);
}
