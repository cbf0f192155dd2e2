const TYPED = "input:not([type=range]):not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable], [role=combobox]";
const OWN_ARROWS = `${TYPED}, input[type=range], [role=slider], [role=radio], [role=option]`;
const ALWAYS = new Set(["PageDown", "PageUp", "Escape"]);

/** Whether a key is typed into a field, wherever in the page that field stands. */
export function inField(event, fields = TYPED) {
  const target = event.composedPath()[0];
  return Boolean(target?.closest?.(fields));
}

const STEPS = {
  PageDown: "next", ArrowRight: "next", ArrowDown: "next", PageUp: "previous", ArrowLeft: "previous",
  ArrowUp: "previous", Home: "first", End: "last", Escape: "close", p: "close", n: "notes", c: "contrast", f: "full",
  Backspace: "takeBack",
};

/**
 * What a key asks of the show, or null: a word of STEPS, a digit, or "enter". A clicker's keys count even while a
 * field has the focus; the others belong to the field.
 */
export function asked(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (inField(event, OWN_ARROWS) && !ALWAYS.has(event.key)) return null;
  if (/^[0-9]$/.test(event.key)) return event.key;
  if (event.key === "Enter") return "enter";
  return STEPS[event.key] ?? null;
}
