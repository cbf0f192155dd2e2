import { AT_REST, COMPONENT, CONTENT, ELEMENT, LAYOUT, SHADOWED, SKELETON } from "../shared/streamlit.js";

const LOOK_EVERY = 50; // Milliseconds.
const STILL_FOR = 4; // Looks in a row that find nothing moved.
const PARTS = `${CONTENT} :is(${ELEMENT}, ${LAYOUT})`;
const VIEWS = `${CONTENT} ${ELEMENT}:not(.st-key-arrival, .st-key-browser-history) > ${COMPONENT}`;

const box = (part) => [part.offsetLeft, part.offsetTop, part.offsetWidth, part.offsetHeight].join(" ");
const standing = () => [...document.querySelectorAll(PARTS)].map(box).join();

/** Whether a view has drawn itself; each has an element of its own beside that of its style. */
const isDrawn = (view) => view.querySelector(SHADOWED)?.shadowRoot?.childElementCount > 1;

/** Whether all that the script has sent is there: styled, the views drawn, the fonts loaded. */
function isComplete() {
  const app = document.querySelector(AT_REST);
  if (!app || !getComputedStyle(app).getPropertyValue("--accent") || document.fonts.status !== "loaded") return false;
  return !document.querySelector(`${CONTENT} ${SKELETON}`) && [...document.querySelectorAll(VIEWS)].every(isDrawn);
}

/** The browser counts what moved unseen as a jump when it paints that part next: it has to forget where things stood. */
function layOutAnew() {
  const { style } = /** @type {HTMLElement} */ (document.querySelector(CONTENT));
  style.display = "none";
  document.body.getBoundingClientRect();
  style.display = "";
}

/** Show the page once it is complete and nothing in it moves any more; another page is hidden again before. */
export function arrive({ page, language }) {
  document.documentElement.lang = language; // For voices that read a page aloud, and for the shapes of Chinese letters.
  const { dataset } = document.documentElement;
  if (dataset.arriving === page) return;
  dataset.arriving = page;
  delete dataset.arrived;
  let [complete, same, before] = [false, 0, ""];
  const look = () => {
    if (dataset.arriving !== page) return;
    const now = standing();
    complete ||= isComplete();
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
