import { COLUMN } from "../shell/streamlit.js";

// Where the parts of viz/talk/scenes.py stand: in the page, and inside the views drawn in the browser.
const column = (key) => `${COLUMN}:has(${key})`;
const WHERE = {
  sentence: [".st-key-sentence", ".sentence > .source"],
  translation: [".st-key-translation", ".st-key-again", ".versions .after", ".sentence > :is(.target, .says, svg)"],
  heads: [column(".st-key-overview"), column(".st-key-changes")],
  picture: [column(".st-key-head-picture"), column(".st-key-compared"), ".st-key-picture", ".st-key-fault-pair"],
  "next token": [".candidates", ".text [data-state=predicted]", ".legend .predicted"],
  attention: [".text > svg"],
  matrix: [".below > .matrix"],
  candidates: [".below > .candidates"],
  player: [".player", ".where"],
  decoding: [".st-key-decode-player"],
  tree: [".st-key-tree"],
  best: [".st-key-best", ".st-key-versions"],
  verdict: [".st-key-verdict", ".st-key-fault-lead", `${column(".st-key-fault-lead")} ${COLUMN}`],
};

// Names over charts say which is which, and so does the colour of wrong weights.
const UNNAMED = `
  .js-plotly-plot .annotation-text { visibility: hidden !important; }
  .js-plotly-plot .heatmaplayer { filter: grayscale(1); }`;

const BESIDE_A_TREE = `
  :root:has(.st-key-tree) :is(.st-key-decode-player, .st-key-best),
  .slide:is(:has(> [data-role=tree]), :has(:not([hidden]) > [data-role=tree])) [data-role=decoding] { display: none !important; }
  :root:has(.st-key-tree) .st-key-sentence { display: block !important; }`;

// A scene of Explore without its other pictures (PICTURES_BESIDE_SENTENCE in viz/export/parts.py): the sentence is the
// picture, with the links between its words, in place of both texts.
const SENTENCE_ALONE = `
  :root:has(.st-key-sentence-picture) :is(.st-key-sentence:not(:has(textarea)), .st-key-translation) { display: none !important; }
  .st-key-sentence-picture { display: flex !important; }`;

// Views of their own, where the page's style does not reach, as a scene: they use the room there is, and nothing that is
// read is smaller than 12 pixels of the scene (fit.js).
const GRID = "minmax(0, 1fr)";

/** Of a scene in the app and in a talk's file. */
export const ON_STAGE = `
  .decode-player { --small: 0.85rem; --size: 1.6rem; padding-top: 0 !important; }
  .decode-player .text { padding-top: 0.9rem; }
  .decode-player .target { margin-top: 2.6rem !important; }
  .decode-player .line { line-height: 1.6; }
  :is(.decode-player .line, .texts p) { text-wrap: balance; } /* No piece stands alone in a line of its own. */
  .decode-player .below { grid-template-columns: ${GRID} minmax(17rem, 0.55fr) !important; gap: 2rem !important; margin-top: 0.5rem; }
  .decode-player .candidate { height: calc(1.7 * var(--small)); }
  .decode-player .candidate:nth-last-child(-n + 3):not(.chosen) { display: none; }
  .decode-player .reading { margin-top: 0.1rem; min-height: 0; }
  .decode-player .player { margin-top: 0.3rem; }
  .decode-player .where { display: none; }
  .decode-player .target .piece:first-child, .special { font-size: max(0.7em, 12px); }
  .line[data-size="large"] { font-size: 1.4rem; line-height: 1.35; }
  .decode-player .frame { height: max(8rem, calc(var(--picture, 350px) - 9rem)); }
  /* Tiles take the height beside the picture, until they are twice as high as they are wide; under them a card may stand. */
  .overview { container-type: inline-size; }
  .overview .grid:not(.ordered) .tile {
    --wide: calc((100cqw - 1.6rem) / var(--heads) - 7px);
    aspect-ratio: auto;
    height: clamp(var(--wide), (var(--tiles, var(--picture, 350px)) - 1.5rem) / var(--layers) - 7px, 2 * var(--wide));
  }
  .sentence { text-align: center; padding: 1rem 0; }
  .sentence .words { justify-content: center; font-size: 2rem !important; }
  .sentence .between { height: 7rem; }
  .texts { padding-top: 0; }
  @media (min-aspect-ratio: 1) { .texts { grid-template-columns: auto auto; } } /* The longer text has more of the line. */
  .texts h3 { min-height: 0; }
  .texts .hint { display: none; }
  .links .scroll { max-width: none; }
  .links :is(.heading, .numbers text) { font-size: inherit; }
  .links .scroll > svg { height: var(--picture, 350px); }
  .beam-tree .scroll { height: var(--picture, 350px); overflow-y: hidden; }
  .value { font-size: 12px; }
  .version { grid-template-columns: 6rem ${GRID} repeat(3, 6.2rem) !important; padding: 0.2rem 0.6rem !important; }
  .masks .readout { display: none; }
  @media (min-aspect-ratio: 1) { .masks .panels { grid-template-columns: repeat(4, ${GRID}) !important; } }
  .snapshots .pictures { grid-template-columns: minmax(0, 0.7fr) ${GRID} !important; }
  .snapshots .tick .name { font-size: 12px; }
  .snapshots .written { height: auto; font-size: 1.25rem; margin: 0; }
  .snapshots .track { padding-top: 1.4rem; padding-bottom: 1.2rem; }
  .snapshots .play { margin-top: 0.8rem; }
  .snapshots .frame { grid-template-rows: 4.8rem max(5rem, calc(var(--picture, 350px) - 6.6rem)); }
  .snapshots .grid { max-width: max(9rem, calc(var(--picture, 350px) - 2rem)); }
  .snapshots .reading { display: none; }
  .pipeline { display: flex; flex-wrap: wrap; gap: 0.3rem 2rem; align-items: center; }
  .pipeline .lead { flex: 1 1 17rem; position: relative; top: 0; container-type: inline-size; }
  .pipeline .words { display: block; max-width: none; min-height: 0; }
  .pipeline .moves { display: none; }
  .pipeline .table {
    flex: 2.6 1 30rem;
    min-width: 0;
    max-width: none;
    column-gap: 0.5rem;
    grid-template-columns: minmax(3.6rem, 1.1fr) repeat(2, minmax(0, 1.5fr)) repeat(3, 2.6rem) minmax(3.8rem, 1fr) minmax(2.8rem, 1.5fr);
    grid-template-rows: auto 1.6rem repeat(var(--keys), max(1.2rem, calc((var(--picture, 350px) - 5.2rem) / var(--keys)))) 2rem;
  }
  /* Where the words stand above the table, as those of two beside each other, the equation and the numbers say it. */
  @container (min-width: 24rem) { .says { display: none; } }
  .pipeline .heading { white-space: normal; line-height: 1.1; }
  /* The place of what comes in later steps: where it all leads is seen from the first. */
  .pipeline .later:is(.heading, .cell) { visibility: visible; }
  .pipeline .later.cell { color: transparent; background: color-mix(in srgb, var(--st-text-color) 5%, transparent); clip-path: inset(14% 0); }
  .pipeline .later.cell > * { visibility: hidden; }
`;

/** Of the app, where a scene is not operated; in a saved file everything can be. */
export const NOT_OPERATED = `
  select { appearance: none; border: 0 !important; pointer-events: none; }
  .forbid, .wide, .speed { display: none !important; }
`;

/** The style that covers the parts `hide`, leaves out `omit`, and says `always` besides. */
export function partRules(hide, omit, always) {
  const of = (parts) => parts.flatMap((part) => WHERE[part] ?? []).join(", ");
  const wide = omit.includes("matrix") || omit.includes("candidates") ? ".decode-player .below { grid-template-columns: minmax(0, 44rem) !important; justify-content: center; }" : "";
  const unseen = [...hide, ...omit].includes("attention");
  const shade = unseen ? ".text .source .piece { color: var(--st-text-color) !important; background: none !important; }" : "";
  const met = [...hide, ...omit].includes("translation") ? ".sentence > .source button { color: inherit !important; background: none !important; }" : "";
  // The tree of a beam search needs the room: the player stands there where the tree is left out.
  const tree = always && !omit.includes("tree") ? BESIDE_A_TREE : "";
  const words = always && ["heads", "picture"].every((part) => omit.includes(part)) ? SENTENCE_ALONE : "";
  const names = hide.includes("broken or fixed") ? UNNAMED : "";
  const gone = `${always}${tree}${words}${met}${shade}${wide}${names}${omit.length ? `:is(${of(omit)}) { display: none !important; }` : ""}`;
  if (!hide.some((part) => WHERE[part])) return gone;
  const plain = ":is(span, b, svg, p, .piece)";
  return `${gone}
    :is(${of(hide)}):not(${plain}) { position: relative; }
    :is(${of(hide)}):not(${plain}) * { visibility: hidden !important; }
    :is(${of(hide)}):not(${plain})::after {
      content: "?"; position: absolute; inset: 0; display: grid; place-items: center; border-radius: 0.6rem;
      font-size: 1.5rem; opacity: 0.75; background: color-mix(in srgb, currentColor 7%, transparent);
    }
    svg:is(${of(hide)}) { visibility: hidden !important; }
    :is(${of(hide)}):is(${plain}):not(svg) {
      forced-color-adjust: none; color: transparent !important; -webkit-text-stroke: 0 !important; text-decoration: none !important;
      background: color-mix(in srgb, currentColor 0%, light-dark(#d9d8dd, #3a3845)) !important; border-radius: 0.2em;
    }
    :is(${of(hide)}):is(${plain}) * { visibility: hidden !important; }
    @media (forced-colors: active), (prefers-contrast: more) { :is(${of(hide)}):not(${plain})::after { outline: 2px dashed; outline-offset: -2px; opacity: 1; } }`;
}

export function* roots(node) {
  yield node;
  for (const one of node.querySelectorAll("*")) if (one.shadowRoot) yield* roots(one.shadowRoot);
}

/**
 * Cover the parts `hide` of a scene's document and leave out `omit`; again for views that have come since, of which it
 * returns whether there are any; none in a document whose frame has left. `always`: rules for what is on the whole screen.
 */
export function cover(document, hide, omit, always = ON_STAGE + NOT_OPERATED) {
  if (!document?.defaultView) return false;
  const { CSSStyleSheet } = document.defaultView;
  const sheet = (document.covering ??= new CSSStyleSheet());
  const rules = partRules(hide, omit, always);
  // The same rules anew would have the browser lay all of the scene out again, in the moment in which it is to be seen.
  if (document.covered !== rules) sheet.replaceSync(rules);
  document.covered = rules;
  const uncovered = [...roots(document)].filter((root) => !root.adoptedStyleSheets.includes(sheet));
  for (const root of uncovered) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
  return uncovered.length > 0;
}

const within = (inner, outer) => inner.every((at, i) => (i < 2 ? at >= outer[i] : at <= outer[i]));

/**
 * The boxes in which the parts stand that are seen on a scene's page: left, top, right and bottom, in shares of the
 * page. A part that is a colour and names has none.
 */
export function placesOf(page) {
  const { innerWidth: width, innerHeight: height } = page.defaultView;
  const all = [...roots(page)];
  const share = ({ left, top, right, bottom }) => [left / width, top / height, Math.min(right / width, 1), Math.min(bottom / height, 1)];
  const boxes = (where) =>
    all
      .flatMap((root) => [...root.querySelectorAll(where.join(", "))].filter((one) => one.checkVisibility()))
      .map((one) => share(one.getBoundingClientRect()))
      .filter(([left, top, right, bottom]) => right > left && bottom > top)
      .filter((box, at, every) => !every.some((other, i) => i !== at && within(box, other) && (i < at || !within(other, box))));
  const found = Object.entries(WHERE).map(([part, where]) => [part, boxes(where)]);
  const named = page.querySelector(".st-key-fault-pair") ? { "broken or fixed": [] } : {};
  return { ...Object.fromEntries(found.filter(([, places]) => places.length)), ...named };
}
