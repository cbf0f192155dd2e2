import { mounted, unmount } from "../shared/mounted.js";

/** What the browser keeps; "" where it keeps nothing for pages, as in some private windows. */
function kept(place) {
  try {
    return localStorage.getItem(place) ?? "";
  } catch {
    return "";
  }
}

function keep(place, text) {
  try {
    localStorage.setItem(place, text);
  } catch {
    // Full or forbidden: the session has the text all the same.
  }
}

export default function draft({ data: { name, text }, parentElement, setTriggerValue }) {
  const place = `attenscope-${name}`;
  const view = mounted(parentElement, name, () => ({}));
  if (text) keep(place, text);
  else if (!view.told && kept(place)) setTriggerValue("found", { text: kept(place) });
  view.told = !text; // A server that was started again has no text, on a page that is still open.
  return () => unmount(parentElement);
}
