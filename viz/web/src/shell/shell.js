import { mounted, unmount } from "../shared/mounted.js";
import { unpack } from "../shared/packed.js";
import { keepText, keptText, stored } from "./stored.js";
import { APP, AT_REST, CLOSES_DRAWER, CONTENT, ELEMENT, LAYOUT, isDrawn } from "./streamlit.js";
import historySteps from "./history.js";

const LOOK_EVERY = 50; // Milliseconds.
const VIEWS_WITHIN = 5_000; // Milliseconds; a page is not kept out of sight for a view whose script does not come.
const NARROW = "(max-width: 768px)"; // Where Streamlit lays its drawer over the page.
const STILL_FOR = 4; // Looks in a row that find nothing moved.
const ELEMENTS = `${CONTENT} :is(${ELEMENT}, ${LAYOUT})`;

const box = (part) => [part.offsetLeft, part.offsetTop, part.offsetWidth, part.offsetHeight].join(" ");
const standing = () => [...document.querySelectorAll(ELEMENTS)].map(box).join();

/** Whether all that the script has sent is there: styled, the fonts loaded, and the views drawn, if that is not too late. */
function isComplete(since) {
  const app = document.querySelector(AT_REST);
  if (!app || !getComputedStyle(app).getPropertyValue("--accent") || document.fonts.status !== "loaded") return false;
  return isDrawn(document) || performance.now() > since + VIEWS_WITHIN;
}

/** The browser counts what moved unseen as a jump when it paints that part next: it has to forget where things stood. */
function layOutAnew() {
  const { style } = /** @type {HTMLElement} */ (document.querySelector(CONTENT));
  style.display = "none";
  document.body.getBoundingClientRect();
  style.display = "";
}

/** Show the page once it is complete and nothing in it moves any more; another page is hidden again before. */
function arrive({ page, language }) {
  document.documentElement.lang = language; // For voices that read a page aloud, and for the shapes of Chinese letters.
  const { dataset } = document.documentElement;
  if (dataset.arriving === page) return;
  // On a phone the list of pages lies over the page that was chosen in it.
  const closes = /** @type {HTMLElement | null} */ (document.querySelector(CLOSES_DRAWER));
  if (dataset.arriving && matchMedia(NARROW).matches) closes?.click();
  dataset.arriving = page;
  delete dataset.arrived;
  const since = performance.now();
  let [complete, same, before] = [false, 0, ""];
  const look = () => {
    if (dataset.arriving !== page) return;
    const now = standing();
    complete ||= isComplete(since);
    same = complete && now === before ? same + 1 : 0;
    before = now;
    if (same < STILL_FOR) setTimeout(look, LOOK_EVERY);
    else {
      layOutAnew();
      dataset.arrived = page;
    }
  };
  look();
}

/**
 * One action of a visitor is one step of the browser's history; a change of the parameters `scrubbed` alone is none, and
 * those `ofSentence` mean nothing for another one.
 */
function keepSteps({ scrubbed, ofSentence }) {
  Object.assign(historySteps(), { begun: true, scrubbed, ofSentence });
}

/** Tells Python when the page's colour scheme is not the one it drew for: Streamlit does not run again on its own. */
function watchTheme({ drawn }, parent, tell) {
  const app = document.querySelector(APP);
  const view = mounted(parent, "theme", (root, made) => {
    const observer = new MutationObserver(() => made.compare());
    observer.observe(app, { attributes: true, attributeFilter: ["class"] });
    return { told: drawn, dispose: () => observer.disconnect() };
  });
  view.compare = () => {
    const shown = getComputedStyle(app).colorScheme;
    if (shown === view.told) return;
    view.told = shown; // Once for each change, whatever the answer.
    tell("shown", shown);
  };
  view.compare();
}

const LONGEST_WAIT = 500; // Milliseconds by which a text may be submitted later, for what is drawn of it before.

/**
 * Enter submits the sentence in a box of several lines, as Control+Enter does; once what hears of it before has drawn
 * what it has (sentence/preview.js): a run of the page would come between.
 */
function submitOnEnter({ box }, parent) {
  mounted(parent, box, () => {
    const hear = (event) => {
      const plain = event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.metaKey;
      if (!plain || event.isComposing || !event.target.closest?.(`.st-key-${box} textarea`)) return;
      event.preventDefault();
      event.stopPropagation();
      const waits = [];
      event.target.dispatchEvent(new CustomEvent("attenscope-submit", { bubbles: true, detail: waits }));
      const { dataset } = document.documentElement;
      const submit = () => {
        delete dataset.submitting;
        event.target.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true }));
      };
      if (!waits.length) return submit();
      dataset.submitting = ""; // For who waits until the page rests.
      Promise.race([Promise.all(waits), new Promise((done) => setTimeout(done, LONGEST_WAIT))]).then(submit);
    };
    document.addEventListener("keydown", hear, true);
    return { dispose: () => document.removeEventListener("keydown", hear, true) };
  });
}

/** What is pasted into a box, dropped or dictated, is submitted at once, as Control+Enter does: the page speaks of it. */
function submitPaste({ box }, parent) {
  mounted(parent, box, () => {
    const submit = ({ target, inputType, data }) => {
      const whole = inputType === "insertText" ? data?.length > 1 : /^insertFrom|^insertReplacement/.test(inputType);
      if (!whole || !target.closest?.(`.st-key-${box} textarea`)) return;
      setTimeout(() => target.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true })));
    };
    document.addEventListener("input", submit, true);
    return { dispose: () => document.removeEventListener("input", submit, true) };
  });
}

/** A text is kept while there is one, and given back, once, where there is none. */
function keepDraft({ name, text }, parent, tell) {
  const place = `attenscope-${name}`;
  const view = mounted(parent, name, () => ({}));
  if (text) keepText(place, text);
  else if (!view.told && keptText(place)) tell("found", { text: keptText(place) });
  view.told = !text; // A server that was started again has no text, on a page that is still open.
}

const { entryOf, keep: keepFile } = stored("attenscope", 40);

const asBase64 = (bytes) =>
  new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(/** @type {string} */ (reader.result).split(",")[1]);
    reader.readAsDataURL(new Blob([bytes]));
  });

/** Ask for the first file that is not kept here yet, then give back the first that is lost there: one at a time. */
async function exchange(view, { known, lost, sent }, body, tell) {
  if (sent) await keepFile(sent, known[sent], body);
  for (const key of Object.values(known)) view.given.delete(key); // It may be lost again.
  for (const [name, key] of Object.entries(known)) {
    if (view.asked.has(key) || (await entryOf(name, key))) continue;
    view.asked.add(key);
    return tell("wanted", { name });
  }
  for (const [name, key] of Object.entries(lost)) {
    const bytes = view.given.has(key) ? null : await entryOf(name, key);
    if (!bytes) continue;
    view.given.add(key);
    return tell("found", { name, data: await asBase64(bytes) });
  }
  return null;
}

/** The files beside a talk are kept, and given back when the server has lost them. */
function keepFiles(header, parent, tell, body) {
  const view = mounted(parent, "files", () => ({ asked: new Set(), given: new Set(), doing: Promise.resolve() }));
  const bytes = body.slice();
  // A browser that keeps nothing for pages, as in some private windows, has the files while the server has them.
  view.doing = view.doing.then(() => exchange(view, header, bytes, tell)).catch(() => {});
}

const PARTS = { arrival: arrive, draft: keepDraft, enter: submitOnEnter, files: keepFiles, history: keepSteps, paste: submitPaste, theme: watchTheme };

/** What a page needs around Streamlit: mounted for one part at a time, each of which draws nothing. */
export default function shell({ data, parentElement, setTriggerValue }) {
  const { header, body } = data instanceof Uint8Array ? unpack(data) : { header: data, body: null };
  PARTS[header.part](header, parentElement, setTriggerValue, body);
  return () => unmount(parentElement);
}
