import { say } from "../../web/src/shared/say.js";
import { addressed } from "../../web/src/shared/address.js";
import { connections, explanation, translation } from "./asking.js";
import { mapOf } from "./attention_map.js";
import { forThisDevice } from "./connection.js";
import { frame, VIEWS } from "./frame.js";
import { headInWords } from "./head_views.js";
import { hearing } from "./hearing.js";
import { pictures } from "./pictures.js";
import { FREELY, begun, pinName } from "./state.js";
import { switches } from "./switches.js";

/** The colours of the page itself, by the names of the theme that components use. */
function paint({ ink, accent, line, background, soft }, scheme) {
  const names = { "--st-text-color": ink, "--st-primary-color": accent, "--st-border-color": line, "--st-background-color": background, "--soft": soft };
  for (const [name, colour] of Object.entries(names)) document.documentElement.style.setProperty(name, colour);
  document.documentElement.style.colorScheme = scheme;
}

/** What the address asks to be shown first: `#sentence=He left.&view=links&theme=dark`. */
function askedFirst({ palettes }) {
  const asked = addressed();
  const dark = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const one = (name, options, otherwise) => (options.includes(asked.get(name)) ? asked.get(name) : otherwise);
  return {
    sentence: asked.get("sentence"),
    scheme: one("theme", Object.keys(palettes), dark),
    view: one("view", Object.keys(VIEWS), "heatmap"),
  };
}

/** The page: what it shows, and all that changes it. */
export function application(given, components) {
  const header = { ...given, models: given.models.map(forThisDevice) };
  const { sentence: firstSentence, ...first } = askedFirst(header);
  const state = begun(first);
  const of = connections(header.models);
  const redraw = () => {
    const palette = header.palettes[state.scheme];
    paint(palette, state.scheme);
    parts.view.show(state.view);
    parts.kind.show(state.kind);
    if (!state.run) return;
    const pinned = state.pins[pinName(state.kind, "query")] ?? null;
    parts.see.textContent = state.view === "decode" ? "" : headInWords(mapOf(state.run, state.kind), state.place, pinned);
    parts.kind.row.hidden = state.view === "decode";
    board(state);
    drawn.draw({ ...state, palette, model: header.models[state.at].name });
    if ((state.pins.target ?? null) !== null) explain(state);
    document.body.dataset.drawn = state.number;
  };
  const explain = explanation(of, redraw);
  const change = (fields) => queueMicrotask(() => (Object.assign(state, fields), redraw())); // Once a click is over.
  const sentence = (text) => {
    parts.box.value = text;
    return translate({ text, ...FREELY });
  };
  const open = (at) => {
    parts.model.value = at;
    parts.show(header.models[at]);
    Object.assign(state, { at, off: [] });
    parts.says.textContent = say("The model is being read …");
    return sentence((state.number === 0 && firstSentence) || header.models[at].examples[0]);
  };
  const parts = frame(header, {
    sentence,
    model: open,
    search: (beam) => translate({ beam, ...FREELY }, { keep: true }),
    theme: () => change({ scheme: state.scheme === "dark" ? "light" : "dark" }),
    kind: (kind) => change({ kind }),
    view: (view) => change({ view, step: state.pins.target ?? 0 }),
    tour: {
      look: change,
      translate(fields) {
        parts.box.value = fields.text;
        return translate(fields, { keep: true });
      },
    },
  });
  const ask = translation(state, { busy: parts.main, says: parts.says }, of, redraw);
  const translate = (fields, how) => {
    const asked = ask(fields, how);
    parts.search.value = state.beam;
    return asked;
  };
  const act = hearing(state, { change, translate });
  const resources = { components, styles: header.styles };
  const board = switches(parts.switches, resources, act);
  const drawn = pictures(parts, resources, act);
  redraw();
  return { open, connection: () => of(state.at) };
}
