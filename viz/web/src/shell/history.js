import { AT_REST, MENU } from "./streamlit.js";

const STEPS = Symbol.for("attenscope.history");
const OF_PRESENTER = ["present", "scene", "contrast", "embed"];
const ACTIONS = ["pointerdown", "click", "keydown"];
const RUN_BEGINS_WITHIN = 500; // Milliseconds from Back, Forward or another sentence; without a run until then it asks for none.
const SENT_WITHIN = 100; // Milliseconds until Streamlit sends what stands in a box that is left, or that a menu is closed.

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

const sentenceOf = (search) => new URLSearchParams(search).get("sentence");

/**
 * The present address without what it still says of the sentence before: what belongs to that one, and a head that the
 * page itself had chosen for it.
 */
function withoutSentenceBefore(searchBefore, ofSentence) {
  const [query, before] = [new URLSearchParams(location.search), new URLSearchParams(searchBefore)];
  for (const name of ofSentence) if (query.get(name) === before.get(name)) query.delete(name);
  if ("headPicked" in document.documentElement.dataset) for (const name of ["layer", "head"]) query.delete(name);
  return `${location.pathname}?${query}`;
}

/** Note in `steps` when a run begins. */
function watchRuns(steps) {
  const note = (records) => {
    if (records.some(({ target }) => !target.matches(AT_REST))) steps.runBegan = performance.now();
  };
  new MutationObserver(note).observe(document, { subtree: true, attributeFilter: ["data-test-script-state"] });
}

/** Whether the run that was asked for at a time has ended. */
const hasRunSince = (time, { runBegan }) =>
  document.querySelector(AT_REST) !== null && (runBegan > time || performance.now() > time + RUN_BEGINS_WITHIN);

/**
 * Put every change of the address under one rule: the first one after an action of the visitor is a step, all others
 * belong to the entry that is there. Streamlit itself makes none for what a widget writes into the address, and one for
 * each parameter that the script writes.
 *
 * An entry that Back or Forward has brought stays as it is until the visitor acts: its address says all that was seen,
 * while the run that shows it again writes parts of it, which a second Back would put into another entry. While a page
 * is arriving its address is not yet written: only a link counts as an action then.
 *
 * A page that is left while it reads another sentence has not yet written what it would show of it. What stood in a box
 * that is left by a click on a link is sent after the click, as is that an open menu closes, and would bring the page
 * back, or leave nothing of either: the link waits.
 */
function install() {
  const steps = { begun: false, scrubbed: [], ofSentence: [], acted: false, returned: -Infinity, boxLeft: -Infinity, pressed: Infinity, reading: null, runBegan: -Infinity };
  watchRuns(steps);
  const own = { push: history.pushState.bind(history), replace: history.replaceState.bind(history) };
  const write = (state, title, url) => {
    const to = new URL(url ?? location.href, location.href);
    if (steps.returned > 0 && (!steps.acted || isPartOfPresent(to))) return;
    const differs = to.pathname !== location.pathname || compared(to.search, steps.scrubbed) !== compared(location.search, steps.scrubbed);
    const step = steps.acted && differs;
    if (sentenceOf(to.search) !== sentenceOf(location.search)) steps.reading = { since: performance.now(), before: location.search };
    if (step) Object.assign(steps, { acted: false, returned: -Infinity });
    own[step ? "push" : "replace"](state, title, url);
  };
  const act = ({ isTrusted, target }) => {
    const arrived = "arrived" in document.documentElement.dataset;
    if (!isTrusted || !(arrived || target.closest?.("a"))) return;
    steps.acted = true;
    if (hasRunSince(steps.returned, steps)) steps.returned = -Infinity;
    if (steps.reading && hasRunSince(steps.reading.since, steps)) steps.reading = null;
  };
  const noteLeftBox = ({ target }) => {
    if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement) steps.boxLeft = performance.now();
  };
  const notePress = () => (steps.pressed = performance.now());
  const leave = (event) => {
    const link = event.target.closest?.("a[href]");
    const otherPage = link && !link.target && !link.download && link.origin === location.origin && link.pathname !== location.pathname;
    if (!otherPage || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const boxLeft = steps.boxLeft >= Math.min(steps.pressed, performance.now() - SENT_WITHIN); // By this press, however busy the page is.
    const menu = !link.closest(MENU) && document.querySelector(MENU);
    if (event.isTrusted && (menu || boxLeft)) {
      menu?.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true })); // Else it closes with the click.
      event.preventDefault();
      event.stopImmediatePropagation();
      setTimeout(() => link.click(), SENT_WITHIN);
      return;
    }
    const { reading, ofSentence } = steps;
    if (reading && !hasRunSince(reading.since, steps)) own.replace(history.state, "", withoutSentenceBefore(reading.before, ofSentence));
    Object.assign(steps, { acted: true, reading: null });
  };
  history.pushState = history.replaceState = write;
  for (const action of ACTIONS) addEventListener(action, act, true);
  addEventListener("click", leave, true);
  addEventListener("focusout", noteLeftBox, true);
  addEventListener("pointerdown", notePress, true);
  addEventListener("popstate", () => {
    Object.assign(steps, { acted: false, returned: performance.now(), reading: null });
    if (!steps.begun) location.reload(); // Streamlit does not listen yet, and would go on with the entry that was left.
  });
  return steps;
}

/** The one rule of this document, installed once. */
export default function historySteps() {
  return (history[STEPS] ??= install());
}
