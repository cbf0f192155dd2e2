const STEPS = Symbol.for("attenscope.history");
const OF_PRESENTER = ["present", "scene", "contrast", "embed"];
const ACTIONS = ["pointerdown", "click", "keydown"];

/** The query of an address without the parameters that make no step. */
function compared(search, scrubbed) {
  const query = new URLSearchParams(search);
  for (const name of [...scrubbed, ...OF_PRESENTER]) query.delete(name);
  query.sort();
  return query.toString();
}

/**
 * Put every change of the address under one rule: the first one after an action of the visitor is a step, all others
 * belong to the entry that is there. Streamlit itself makes none for what a widget writes into the address, and one for
 * each parameter that the script writes.
 */
function install() {
  const steps = { scrubbed: [], acted: false };
  const own = { push: history.pushState.bind(history), replace: history.replaceState.bind(history) };
  const write = (state, title, url) => {
    const to = new URL(url ?? location.href, location.href);
    const differs = to.pathname !== location.pathname || compared(to.search, steps.scrubbed) !== compared(location.search, steps.scrubbed);
    const step = steps.acted && differs;
    if (step) steps.acted = false;
    return own[step ? "push" : "replace"](state, title, url);
  };
  history.pushState = history.replaceState = write;
  for (const action of ACTIONS) addEventListener(action, (event) => (steps.acted ||= event.isTrusted), true);
  addEventListener("popstate", () => (steps.acted = false));
  return steps;
}

export default function addressHistory({ data }) {
  history[STEPS] ??= install();
  history[STEPS].scrubbed = data.scrubbed;
}
