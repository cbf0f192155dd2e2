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
