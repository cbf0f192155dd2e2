import { AT_REST } from "../shared/streamlit.js";

const STEPS = Symbol.for("attenscope.history");
const OF_PRESENTER = ["present", "scene", "contrast", "embed"];
const ACTIONS = ["pointerdown", "click", "keydown"];
const RUN_BEGINS_WITHIN = 500; // Milliseconds from Back or Forward to the run that it asks for.

/** The query of an address without the parameters that make no step. */
function compared(search, scrubbed) {
  const query = new URLSearchParams(search);
  for (const name of [...scrubbed, ...OF_PRESENTER]) query.delete(name);
  query.sort();
  return query.toString();
}

/** Whether an address says nothing but what the present one says. */
function isPartOfPresent(to) {
  const present = [...new URLSearchParams(location.search)].map(String);
  return to.pathname === location.pathname && [...to.searchParams].map(String).every((pair) => present.includes(pair));
}

const isAtRest = () => document.querySelector(AT_REST) !== null;

/**
 * Put every change of the address under one rule: the first one after an action of the visitor is a step, all others
 * belong to the entry that is there. Streamlit itself makes none for what a widget writes into the address, and one for
 * each parameter that the script writes.
 *
 * An entry that Back or Forward has brought stays as it is until the visitor acts: its address says all that was seen,
 * while the run that shows it again writes parts of it, which a second Back would put into another entry. While a page
 * is arriving its address is not yet written: only a link counts as an action then.
 */
function install() {
  const steps = { begun: false, scrubbed: [], acted: false, returned: -Infinity };
  const own = { push: history.pushState.bind(history), replace: history.replaceState.bind(history) };
  const write = (state, title, url) => {
    const to = new URL(url ?? location.href, location.href);
    if (steps.returned > 0 && (!steps.acted || isPartOfPresent(to))) return;
    const differs = to.pathname !== location.pathname || compared(to.search, steps.scrubbed) !== compared(location.search, steps.scrubbed);
    const step = steps.acted && differs;
    if (step) Object.assign(steps, { acted: false, returned: -Infinity });
    own[step ? "push" : "replace"](state, title, url);
  };
  const act = ({ isTrusted, target }) => {
    const arrived = "arrived" in document.documentElement.dataset;
    if (!isTrusted || !(arrived || target.closest?.("a"))) return;
    steps.acted = true;
    if (isAtRest() && performance.now() > steps.returned + RUN_BEGINS_WITHIN) steps.returned = -Infinity;
  };
  history.pushState = history.replaceState = write;
  for (const action of ACTIONS) addEventListener(action, act, true);
  addEventListener("popstate", () => {
    Object.assign(steps, { acted: false, returned: performance.now() });
    if (!steps.begun) location.reload(); // Streamlit does not listen yet, and would go on with the entry that was left.
  });
  return steps;
}

/** The one rule of this document, installed once. */
export default function historySteps() {
  return (history[STEPS] ??= install());
}
