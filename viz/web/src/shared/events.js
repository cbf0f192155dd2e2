/**
 * The widget that an element stands in; null outside of any. A notebook shows many on one page, each of a trace of its
 * own: what one of them tells is not meant for another.
 */
export function widgetOf(node) {
  for (let at = node; at; at = at.parentNode ?? at.host) if (at.dataset?.widget !== undefined) return at;
  return null;
}

/** How one view tells the others that a head was chosen, and hands over its bytes, before Python has heard of it. */
const HEAD_CHOSEN = "attenscope-head";

/**
 * Tell from the view in `root`. `head`: { layer, head, rows, columns, bytes, ofLayer, isSent }, its bytes and its layer's,
 * as component_scripts.py quantises them, and whether it is the head that Python has sent last: of that one no answer
 * comes, and each view goes back to what it was sent.
 */
export const announceHead = (root, head) =>
  document.dispatchEvent(new CustomEvent(HEAD_CHOSEN, { detail: { ...head, widget: widgetOf(root) } }));

/** Call `heard(head)` at every announcement to the view in `root`; returns what ends it. */
export function hearHeads(root, heard) {
  const listener = ({ detail }) => detail.widget === widgetOf(root) && heard(detail);
  document.addEventListener(HEAD_CHOSEN, listener);
  return () => document.removeEventListener(HEAD_CHOSEN, listener);
}

/** The label of a view of another head: `pattern` is its label with {layer} and {head} in place of the numbers. */
export const relabelled = (pattern, { layer, head }) => pattern.replace("{layer}", layer + 1).replace("{head}", head + 1);

const SCALES = ["sqrt", "linear", "log"]; // As in figures/palette.py.
/** What is chosen in a control of the page, by its key; Streamlit marks the chosen option, or a switch that is on. */
const CHOSEN = {
  scale: (control) => SCALES[control.querySelector("[data-selected] input")?.value],
  hide: (control) => control.querySelector("[data-selected]") !== null,
};

/**
 * What a visitor changes in the page's controls, heard in the browser before Python has heard of it: `heard` holds a
 * function for each control that matters, which is called with what is chosen now. Returns what ends it.
 */
export function hearChoices(heard) {
  const observer = new MutationObserver((changes) => {
    for (const [key, tell] of Object.entries(heard)) {
      const control = changes.map(({ target }) => /** @type {Element} */ (target).closest(`.st-key-${key}`)).find(Boolean);
      const chosen = control && CHOSEN[key](control);
      if (chosen !== undefined && chosen !== null) tell(chosen);
    }
  });
  observer.observe(document.body, { subtree: true, attributeFilter: ["data-selected"] });
  return () => observer.disconnect();
}

// The step that the decode player of a page is at, from 0, while there is one: a card of another word is out of date.
const STEP = "decodingStep";

/** Say at which step the player is; null once it is gone. */
export function tellStep(step) {
  if (step === null) delete document.documentElement.dataset[STEP];
  else document.documentElement.dataset[STEP] = step;
  document.dispatchEvent(new Event(STEP));
}

/** Have `hear(step)` hear of the step, null where there is no player, now and whenever it changes; returns its end. */
export function hearStep(hear) {
  const tell = () => {
    const step = document.documentElement.dataset[STEP];
    hear(step === undefined ? null : Number(step));
  };
  document.addEventListener(STEP, tell);
  tell();
  return () => document.removeEventListener(STEP, tell);
}

const BUSY = "input, textarea, select, button, [role=radio], [role=slider], [role=combobox], [role=option], [contenteditable]";

/** Whether a key is pressed with one that makes it the browser's, as Alt and an arrow that go back. */
export const isShortcut = ({ altKey, ctrlKey, metaKey }) => altKey || ctrlKey || metaKey;

/** Keys work wherever no other control has the focus, so that a speaker need not click first; in a widget, inside it. */
export function listenToKeys(root, player, last) {
  const keys = {
    ArrowLeft: () => player.go(player.step - 1),
    ArrowRight: () => player.go(player.step + 1),
    Home: () => player.go(0),
    End: () => player.go(last),
    " ": player.toggle,
    f: player.wide,
  };
  const listen = (event) => {
    const target = event.composedPath()[0];
    if (event.defaultPrevented) return; // Arrow keys that have moved the focus do no more.
    if (isShortcut(event) || !keys[event.key] || !root.isConnected) return;
    const presses = event.key === " " || event.key === "f";
    const busy = target.matches?.("select") || (presses ? target.closest?.("button, a, input:not([type=range])") : target.matches?.("input"));
    if (root.contains(target) ? busy : widgetOf(root) || target.closest?.(presses ? `a, ${BUSY}` : BUSY)) return; // A link has no use for arrows.
    event.preventDefault();
    keys[event.key]();
  };
  document.addEventListener("keydown", listen);
  return () => document.removeEventListener("keydown", listen);
}
