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
