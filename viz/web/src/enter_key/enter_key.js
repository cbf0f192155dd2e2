import { mounted, unmount } from "../shared/mounted.js";

export default function enterKey({ data: { box }, parentElement }) {
  mounted(parentElement, box, () => {
    const submit = (event) => {
      const plain = event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.metaKey;
      if (!plain || event.isComposing || !event.target.closest?.(`.st-key-${box} textarea`)) return;
      event.preventDefault();
      event.stopPropagation();
      event.target.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true }));
    };
    document.addEventListener("keydown", submit, true);
    return { dispose: () => document.removeEventListener("keydown", submit, true) };
  });
  return () => unmount(parentElement);
}
