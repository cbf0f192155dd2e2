import { element } from "../shared/element.js";
import { mounted, unmount } from "../shared/mounted.js";

/** Put a text into the clipboard, also where the page is not served securely and the browser offers no clipboard. */
async function copy(text) {
  if (navigator.clipboard && isSecureContext) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

function build(root, words) {
  root.className = "menu";
  const [present, link] = [element("button", "", words.present), element("button", "", words.copy)];
  // The key is heard by components/presenter, which knows what the page is.
  present.onclick = () => {
    // A browser that has no such screen for pages, as on some phones, shows the page in its window.
    document.documentElement.requestFullscreen?.().catch(() => {});
    document.dispatchEvent(new KeyboardEvent("keydown", { key: "p", bubbles: true }));
  };
  link.onclick = async () => {
    await copy(location.href);
    link.textContent = words.copied;
  };
  root.append(link, present);
  return {};
}

export default function pageMenu({ data, parentElement }) {
  mounted(parentElement, "menu", (root) => build(root, data));
  return () => unmount(parentElement);
}
