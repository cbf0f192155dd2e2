/**
 * Draw the picture of the welcome in the element that waits for it (welcome_picture.py), with the component of the
 * sentence. It goes as soon as the page itself stands there, or another page comes.
 */
export default function drawWelcome(sentence) {
  const host = /** @type {HTMLElement} */ (document.querySelector("[data-welcome]"));
  const data = Uint8Array.from(atob(host.dataset.welcome), (one) => one.charCodeAt(0));
  const draw = () => sentence({ data, parentElement: host.shadowRoot.lastElementChild, setTriggerValue: () => {} });
  draw();
  document.fonts.load('1em "Source Sans"').then(draw, () => {}); // The words, and what ends at them, stand elsewhere then.
  const root = document.documentElement;
  let first;
  const leave = () => {
    first ??= root.dataset.arriving;
    if (!("arrived" in root.dataset) && root.dataset.arriving === first) return;
    host.remove();
    observer.disconnect();
  };
  const observer = new MutationObserver(leave);
  observer.observe(root, { attributeFilter: ["data-arrived", "data-arriving"] });
  leave(); // The scripts may have come after the page.
}
