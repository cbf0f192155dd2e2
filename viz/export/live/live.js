import { addressed, element, letters } from "../../web/src/shared/element.js";
import { say } from "../../web/src/shared/say.js";
import { connections, explanation, forThisDevice, lacking, translation } from "./connection.js";
import { mapOf } from "./attention_map.js";
import { VIEWS, frame, sentenceForm } from "./frame.js";
import { KIND_NAMES, headInWords } from "./head_views.js";
import { FREELY, begun, hearing, pinName } from "./state.js";
import { pictures, placed } from "./pictures.js";

/** The board of all heads in `host`, to switch them off: what draws it of a state. */
function switches(host, resources, act) {
  const board = placed(host, "switchboard", resources);
  return ({ run, off }) => {
    const boards = Object.entries(run.maps).map(([kind, { shape }]) => ({ kind, name: KIND_NAMES[kind], layers: shape[0], heads: shape[1] }));
    board({ boards, off }, act.switches);
  };
}

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
function application(given, components) {
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
    drawn.draw({ ...state, palette, model: header.models[state.run.at].name });
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

/**
 * What makes the scenes of a talk live, in a file that has their models; `lacks` says what this browser lacks for it.
 * `open(slide, says)` -> { form, host, hear, prepare }: the box for a sentence, the place of the pictures of what the
 * model wrote, which calls its `drawn(anew)` once they are there, and what is told by a picture that was saved.
 */
function liveScenes({ models, styles }, components) {
  const of = connections(models);
  const open = ({ live, omit }, says) => {
    const { model, sentence, palette, saved, ...settings } = live;
    const state = begun({ ...settings, at: model, text: sentence });
    const host = element("div", "live-scene");
    const parts = { translation: null, pictures: element("div") };
    if (state.view !== "decode" && !omit.includes("translation")) parts.translation = host.appendChild(element("div"));
    host.append(parts.pictures);
    const scene = { host, drawn: (_anew) => {} };
    let count = 0;
    const redraw = () => {
      drawn.draw({ ...state, palette, model: models[model].name });
      scene.drawn(count !== state.number);
      count = state.number;
    };
    const translate = translation(state, { busy: host, says }, of, redraw);
    const change = (fields) => queueMicrotask(() => (Object.assign(state, fields), redraw())); // Once a click is over.
    const act = hearing(state, { change, translate });
    const drawn = pictures(parts, { components, styles }, act, [...omit, "card"]);
    const { form, box } = sentenceForm((text) => {
      box.blur(); // The keys turn the pages again.
      says.textContent = count ? "" : say("The model is being read …");
      return translate({ text, pins: {}, beside: [], step: 0, ...FREELY }, { keep: true });
    });
    box.value = sentence;
    form.dataset.role = "sentence";
    // The picture need not show what the model would write now: of a search it may be any way, of a branch its beginning is given.
    const hear = async (name, value) => {
      await translate({ text: sentence, ...FREELY, ...saved }, { keep: true });
      if (state.run) act.player(name, value);
    };
    return Object.assign(scene, { form, hear, prepare: () => of(model).ready.catch(() => {}) }); // What went wrong is said once it is asked.
  };
  return { lacks: lacking(), open };
}

/** What scripts may use, as docs/saving.md describes it. */
function publish(app) {
  /** @type {Window["attenscope"]} */
  const own = { ready: false };
  own.translate = async (text, { beam = 1 } = {}) => {
    const { text: written, tokens, sourceTokens, logProbs, maps } = await app.connection().translate(text, { beam });
    const plain = Object.entries(maps).map(([kind, { shape, data }]) => [kind, { shape, data }]);
    return { text: written, tokens, sourceTokens, logProbs, maps: Object.fromEntries(plain) };
  };
  window.attenscope = own;
  const begin = () => {
    own.ready = true;
    document.body.dataset.ready = "yes";
  };
  app.connection().ready.then(begin, () => {}); // What went wrong stands on the page.
}

/** The page of a live file. */
async function file(header, components) {
  const missing = lacking();
  if (missing) {
    document.getElementById("starting").textContent = missing;
    return;
  }
  await letters();
  const app = application(header, components);
  const opened = app.open(0);
  publish(app);
  await opened;
}

export default { file, scenes: liveScenes };
