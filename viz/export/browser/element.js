/** An element with a class and a text; what comes from a model or a person is only ever set as text. */
export function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}
