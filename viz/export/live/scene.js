import { say } from "../../web/src/shared/say.js";
import { element } from "../../web/src/shared/element.js";
import { connections, translation } from "./asking.js";
import { lacking } from "./connection.js";
import { hearing } from "./hearing.js";
import { pictures } from "./pictures.js";
import { sentenceForm } from "./sentence.js";
import { FREELY, begun } from "./state.js";

/**
 * What makes the scenes of a talk live, in a file that has their models; `lacks` says what this browser lacks for it.
 * `open(slide, says)` -> { form, host, hear, prepare }: the box for a sentence, the place of the pictures of what the
 * model wrote, which calls its `drawn(anew)` once they are there, and what is told by a picture that was saved.
 */
export function liveScenes({ models, styles }, components) {
  const of = connections(models);
  const open = ({ live, omit }, says) => {
    const { model, sentence, palette, ...settings } = live;
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
    const hear = async (name, value) => {
      await translate({ text: sentence, ...FREELY }, { keep: true });
      if (state.run) act.player(name, value);
    };
    return Object.assign(scene, { form, hear, prepare: () => of(model).ready.catch(() => {}) }); // What went wrong is said once it is asked.
  };
  return { lacks: lacking(), open };
}
