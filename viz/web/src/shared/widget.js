/**
 * The widget that an element stands in; null outside of any. A notebook shows many on one page, each of a trace of its
 * own: what one of them tells is not meant for another.
 */
export function widgetOf(node) {
  for (let at = node; at; at = at.parentNode ?? at.host) if (at.dataset?.widget !== undefined) return at;
  return null;
}
