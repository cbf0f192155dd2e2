/** A new element at the end of `parent`, in the same document. */
export function add(parent, tag, className) {
  const made = parent.ownerDocument.createElement(tag);
  made.className = className;
  parent.append(made);
  return made;
}
