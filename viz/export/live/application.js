import { mapOf } from "./attention_map.js";
import { Problem, connect } from "./connection.js";
import { frame } from "./frame.js";
import { headInWords } from "./head_views.js";
import { hearing } from "./hearing.js";
import { pictures } from "./pictures.js";
import { FREELY, arrive, begun, changesText, pinName } from "./state.js";

const FAULT = "Something went wrong in this page that should not. Please open it again.";

/** The colours of the page itself, by the names of the theme that components use. */
function paint({ ink, accent, line, background, soft }, scheme) {
  const names = { "--st-text-color": ink, "--st-primary-color": accent, "--st-border-color": line, "--st-background-color": background, "--soft": soft };
  for (const [name, colour] of Object.entries(names)) document.documentElement.style.setProperty(name, colour);
  document.documentElement.style.colorScheme = scheme;
}

function note({ unknown, stopped }) {
  const missing = unknown.length ? `The vocabulary has no pieces for ${unknown.map((one) => `“${one}”`).join(", ")}. ` : "";
  return missing + (stopped === "length" ? "The translation was cut off at the length limit." : "");
}

/** One worker a model, begun when it is first asked for: `of(at)` is that of the model with this number. */
function connections(models) {
  const made = new Map();
  return (at) => {
    if (!made.has(at)) made.set(at, connect(models[at]));
    return made.get(at);
  };
}

/** Ask the model for what the state says, `show(found)` it, and say what went wrong; a later request overtakes. */
function translation(state, parts, of, show) {
  let latest = 0;
  return async (fields, { keep = false } = {}) => {
    Object.assign(state, fields);
    const own = (latest += 1);
    const { text, beam, constraints, target } = state;
    parts.main.setAttribute("aria-busy", "true");
    parts.search.value = beam;
    const asked = of(state.at).translate(text, { beam: target ? 1 : beam, constraints, target, changes: changesText(state.off) });
    const found = await asked.catch((error) => error);
    if (own !== latest) return;
    parts.main.removeAttribute("aria-busy");
    if (found instanceof Error) {
      parts.says.textContent = found instanceof Problem ? found.message : FAULT;
      if (!(found instanceof Problem)) console.error(found);
      return;
    }
    if (target) found.tree = state.run.tree; // One of its translations is looked at.
    parts.says.textContent = note(found);
    arrive(state, found, keep);
    show();
  };
}

/** The page: what it shows, and all that changes it. */
export function application(header, components) {
  const state = begun(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const of = connections(header.models);
  const redraw = () => {
    const palette = header.palettes[state.scheme];
    paint(palette, state.scheme);
    parts.view.show(state.view);
    parts.kind.show(state.kind);
    if (!state.run) return;
    const pinned = state.pins[pinName(state.kind, "query")] ?? null;
    parts.see.textContent = state.view === "decode" ? "" : headInWords(mapOf(state.run, state.kind), state.place, pinned);
    drawn.draw({ ...state, palette, model: header.models[state.at].name });
    document.body.dataset.drawn = state.number;
  };
  const change = (fields) => queueMicrotask(() => redraw(Object.assign(state, fields))); // Once a click is over.
  const sentence = (text) => {
    parts.box.value = text;
    return translate({ text, ...FREELY });
  };
  const open = (at) => {
    parts.model.value = at;
    parts.show(header.models[at]);
    Object.assign(state, { at, off: [] });
    parts.says.textContent = "The model is being read …";
    return sentence(header.models[at].examples[0]);
  };
  const parts = frame(header, {
    sentence,
    model: open,
    search: (beam) => translate({ beam, ...FREELY }, { keep: true }),
    theme: () => change({ scheme: state.scheme === "dark" ? "light" : "dark" }),
    kind: (kind) => change({ kind }),
    view: (view) => change({ view }),
  });
  const translate = translation(state, parts, of, redraw);
  const drawn = pictures(parts, { components, styles: header.styles }, hearing(state, { change, translate }));
  redraw();
  return { open, connection: () => of(state.at) };
}
