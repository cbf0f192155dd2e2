/** An element with a class and a text; what comes from a model or a person is only ever set as text. */
export function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}

/** An element for a component in `host`, in a shadow root of its own, so that no style meets another's. */
export function shadowed(host, style) {
  const root = host.attachShadow({ mode: "open" });
  root.append(element("style", "", style));
  return root.appendChild(element("div"));
}

/** Resolves once the file's own letters can be drawn, or cannot: text that is measured before is measured in others. */
export const letters = () => Promise.allSettled([...document.fonts].map((face) => face.load()));

/** Hand a file to the visitor, as if they had clicked on a link to it. */
export function handOut(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** What the address says behind its #: `scene=3`, `theme=dark`. */
export const addressed = () => new URLSearchParams(location.hash.slice(1));
