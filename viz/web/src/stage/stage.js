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
