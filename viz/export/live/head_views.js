import { say, written } from "../../web/src/shared/say.js";
import { pack } from "../../web/src/shared/packed.js";
import { fine, labelText, piecesOf, pooled, quantised, quoted, readable, rowInWords, specialPlaces } from "./attention_map.js";

// What the `encode_...` functions of viz/web make of a map, in the browser.
export const KIND_NAMES = { encoder: say("Encoder self-attention"), decoder: say("Decoder self-attention"), cross: say("Cross-attention") };
const QUERIES = { encoder: say("The sentence, attending"), decoder: say("The translation, attending"), cross: say("The translation") };
const KEYS = { encoder: say("The sentence, attended to"), decoder: say("The translation so far"), cross: say("The sentence") };
const LONGEST = 11;
// As viz/figures/text_alternatives.py: the relative difference below which two weights tie.
const TIE = 1e-6;

/** What overview.js reads. `off` are the heads switched off, [kind, layer, head] each. */
export function overviewData(map, { layer, head }, palette, off = []) {
  const { queries, keys, weights, allowed } = pooled(map);
  const { kind, layers, heads } = map;
  const changed = off.filter(([own]) => own === kind).map(([, ...place]) => place[0] * heads + place[1]);
  const sizes = { layers, heads, paths: [], queries, keys, layer, head };
  const { stops, scale, masked } = palette;
  const header = { ...sizes, label: say("{kind}: all layers and heads", { kind: KIND_NAMES[kind] }), stops, scale, masked, changed, switches: null, order: [] };
  return pack(header, quantised(weights, allowed));
}

/** Where the pinned row of a head looks, or else its strongest link. */
export function headInWords(map, { layer, head }, query) {
  if (query !== null) return say("Pinned: {row}", { row: rowInWords(map.rows[query], map.columns, map.row(layer, head, query)) });
  const weights = map.weights(layer, head);
  const largest = weights.reduce((most, one) => Math.max(most, one), 0); // As arguments, those of a long text are too many.
  const ties = [...weights.keys()].filter((at) => weights[at] >= largest * (1 - TIE));
  const best = ties[0];
  const [row, column] = [Math.floor(best / map.keys), best % map.keys];
  const link = { query: quoted(map.rows[row]), key: quoted(map.columns[column]), weight: written(largest.toFixed(2)), layer: layer + 1, head: head + 1 };
  if (ties.length > 1) {
    return say("Layer {layer}, head {head}: {count} links tie as its strongest, {weight}; the first is {query} → {key}.", { ...link, count: ties.length });
  }
  return say("Layer {layer}, head {head}: its strongest link is {query} → {key}, {weight}.", link);
}

const named = (map, { layer, head }) => ({ kind: KIND_NAMES[map.kind], layer: layer + 1, head: head + 1 });

const COLOURS = ["background", "ink", "soft", "line", "accent", "masked", "hatch"];

export function heatmapData(map, place, palette, pinned, model) {
  const { layer, head } = place;
  const [rows, columns] = [map.rows, map.columns];
  const header = {
    title: say("{kind} · layer {layer}, head {head}", named(map, place)),
    model,
    follows: KIND_NAMES[map.kind],
    special: specialPlaces(map),
    alt: headInWords(map, place, pinned[0]),
    rows: rows.map(readable),
    columns: columns.map(readable),
    rowLabels: rows.map((token) => labelText(token, LONGEST)),
    columnLabels: columns.map((token) => labelText(token, LONGEST)),
    roles: [[], []],
    roleNames: {},
    breaks: [],
    top: 1,
    scale: palette.scale,
    stops: palette.stops,
    colours: Object.fromEntries(COLOURS.map((name) => [name, palette[name]])),
    pinned,
    pins: true,
    numbers: false,
  };
  return pack(header, fine(map.weights(layer, head), map.allowed(layer)));
}

export function linksData(map, place, palette, pinned, beside = []) {
  const { layer, head } = place;
  const header = {
    queries: map.rows.map((token) => labelText(token)),
    keys: map.columns.map((token) => labelText(token)),
    alt: headInWords(map, place, pinned[0]),
    label: say("{kind}, layer {layer}, as lines from queries to keys", named(map, place)),
    head,
    beside,
    colours: Array.from({ length: map.heads }, (_, at) => palette.heads[at % palette.heads.length]),
    threshold: "strongest",
    horizontal: false,
    fixed: false,
    scale: palette.scale,
    pinned,
    pattern: say("{kind}, layer {layer}, as lines from queries to keys", { kind: KIND_NAMES[map.kind], layer: "{layer}" }),
  };
  return pack(header, quantised(map.weights(layer, 0, map.heads), map.allowed(layer)));
}

export function textData(map, place, palette, pinned) {
  const { layer, head } = place;
  const [weights, allowed] = [map.weights(layer, head), map.allowed(layer)];
  const header = {
    query: { title: QUERIES[map.kind], tokens: piecesOf(map.rows, map.special) },
    key: { title: KEYS[map.kind], tokens: piecesOf(map.columns, map.special) },
    alt: headInWords(map, place, pinned[0]),
    label: say("{kind}, layer {layer}, head {head}, as shaded text", named(map, place)),
    stops: palette.stops,
    scale: palette.scale,
    masked: palette.masked,
    inks: [palette.ink, palette.background],
    pinned,
    fixed: false,
    pattern: say("{kind}, layer {layer}, head {head}, as shaded text", { kind: KIND_NAMES[map.kind], layer: "{layer}", head: "{head}" }),
  };
  const [sums, counts] = [new Float64Array(map.keys), new Float64Array(map.keys)];
  weights.forEach((weight, at) => {
    if (!allowed(at)) return;
    sums[at % map.keys] += weight;
    counts[at % map.keys] += 1;
  });
  const means = sums.map((sum, at) => sum / Math.max(counts[at], 1));
  const parts = [quantised(weights, allowed), quantised(means, (at) => counts[at] > 0)];
  const body = new Uint8Array(parts[0].length + parts[1].length);
  body.set(parts[0]);
  body.set(parts[1], parts[0].length);
  return pack(header, body);
}
