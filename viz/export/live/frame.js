import { element } from "../../web/src/shared/element.js";
import { say } from "../../web/src/shared/say.js";
import { FREELY } from "./state.js";

/** The box for a sentence: Enter, or its button, hands what is in it to `hear`. */
export function sentenceForm(hear) {
  const form = element("form", "sentence");
  const box = form.appendChild(element("textarea"));
  box.rows = 1;
  box.dir = "auto";
  box.setAttribute("aria-label", say("Sentence"));
  box.placeholder = say("Type a sentence and press Enter");
  box.spellcheck = false;
  const submit = form.appendChild(element("button", "translate", say("Translate")));
  form.onsubmit = (event) => {
    event.preventDefault();
    hear(box.value);
  };
  box.onkeydown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  };
  return { form, box, submit };
}

/** What an address of the page Explore says, as fields of the state. */
function fieldsOf({ kind, layer, head, view, pin }) {
  const fields = Object.fromEntries(Object.entries({ kind, view }).filter(([, value]) => value));
  if (layer) fields.place = { layer: layer - 1, head: head - 1 };
  if (pin !== undefined) {
    const pairs = pin.split(",").filter(Boolean).map((one) => one.split("."));
    fields.pins = Object.fromEntries(pairs.map(([place, at]) => [place, at - 1]));
  }
  return fields;
}

function pressed(text, className, act) {
  const button = element("button", className, text);
  button.type = "button";
  button.onclick = act;
  return button;
}

/**
 * The tour in `host`: its button, or the step that one is at. `look(fields)` shows something else of the translation,
 * `translate(fields)` asks for another first.
 */
function tour(host, steps, { look, translate }) {
  const begin = (at) => {
    const { sentence, ...address } = steps[at].address;
    translate({ text: sentence, beam: 1, off: [], beside: [], view: "heatmap", ...FREELY, ...fieldsOf(address) });
    show(at);
  };
  const attempt = ({ attempt: address }) => look(Object.keys(address).length ? fieldsOf(address) : { view: "decode", step: 0, pins: {} });
  const show = (at) => {
    const step = steps[at];
    if (!step) return host.replaceChildren(...(steps.length ? [pressed(say("Start here"), "begins", () => begin(0))] : []));
    const panel = element("section", "tour");
    panel.setAttribute("aria-label", say("Tour"));
    const says = element("p", "", `${at + 1}/${steps.length} `);
    says.append(element("strong", "", step.title), ` ${step.text}`);
    const buttons = element("div", "chips");
    buttons.append(pressed(step.button, "", () => attempt(step)));
    if (at) buttons.append(pressed(say("Back"), "", () => begin(at - 1)));
    if (at + 1 < steps.length) buttons.append(pressed(say("Next"), "next", () => begin(at + 1)));
    buttons.append(pressed(say("Leave"), "", () => show(null)));
    panel.append(says, buttons);
    host.replaceChildren(panel);
    buttons.firstChild.focus({ preventScroll: true });
  };
  show(null);
}

/** A row of buttons of which one is chosen: `show(value)` marks it. */
function choiceOf(label, options, choose) {
  const row = element("div", "choice");
  row.setAttribute("role", "group");
  row.setAttribute("aria-label", label);
  const buttons = Object.entries(options).map(([value, text]) => {
    const button = row.appendChild(element("button", "", text));
    button.type = "button";
    button.onclick = () => choose(value);
    return [value, button];
  });
  return { row, show: (chosen) => buttons.forEach(([value, button]) => button.setAttribute("aria-pressed", value === chosen)) };
}

function selectOf(label, options, choose) {
  const select = element("select");
  select.setAttribute("aria-label", label);
  for (const [value, text] of Object.entries(options)) {
    const option = select.appendChild(element("option", "", text));
    option.value = value;
  }
  select.onchange = () => choose(select.value);
  return select;
}

function chips(texts, say) {
  const row = element("div", "chips");
  for (const text of texts) {
    const chip = row.appendChild(element("button", "", text));
    chip.type = "button";
    chip.onclick = () => say(text);
  }
  return row;
}

const KINDS = { encoder: say("Encoder"), decoder: say("Decoder"), cross: say("Cross") };
export const VIEWS = { heatmap: say("Heatmap"), links: say("Links"), text: say("Text"), decode: say("Step by step") };
const SEARCHES = { 1: say("Greedy"), 4: say("Beam 4") };

function facts(known) {
  const details = element("details");
  const list = element("dl");
  for (const [name, value] of Object.entries(known)) list.append(element("dt", "", name), element("dd", "", value));
  details.append(element("summary", "", say("What this was made from")), list);
  return details;
}

/** All that stands on the page but the pictures; `act` hears what a visitor does. */
export function frame(header, act) {
  const main = element("main", window.parent === window ? "live" : "live framed"); // The page around it has a title.
  const head = main.appendChild(element("header"));
  head.append(element("h1", "", header.title));
  const names = Object.fromEntries(header.models.map(({ title }, at) => [at, title]));
  const model = selectOf(say("Model"), names, (at) => act.model(Number(at)));
  model.hidden = header.models.length < 2;
  const search = selectOf(say("Decoding"), SEARCHES, (width) => act.search(Number(width)));
  const theme = element("button", "theme", say("Light / dark"));
  theme.type = "button";
  theme.onclick = act.theme;
  head.append(model, search, theme);
  const { form, box, submit } = sentenceForm(act.sentence);
  const says = element("p", "says");
  says.setAttribute("role", "status");
  const [guide, examples, translation, see] = ["guide", "", "translation", "see"].map((name) => element(name === "see" ? "p" : "div", name));
  const kind = choiceOf(say("Attention"), KINDS, act.kind);
  const view = choiceOf(say("View"), VIEWS, act.view);
  const controls = element("div", "controls");
  controls.append(view.row, kind.row);
  const pictures = element("div", "pictures");
  const switches = element("details", "switches");
  switches.append(element("summary", "", say("Heads off")));
  const foot = element("footer");
  const start = element("div", "start");
  start.append(guide, examples);
  main.append(form, start, says, translation, see, controls, pictures, switches, foot);
  document.getElementById("starting").replaceWith(main); // The models stand behind it.
  const show = ({ examples: texts, facts: known, tour: steps }) => {
    tour(guide, steps, act.tour);
    examples.replaceChildren(chips(texts, act.sentence));
    foot.replaceChildren(facts({ ...known, [say("saved")]: header.made }));
  };
  return { main, box, submit, says, translation, see, kind, view, pictures, switches, model, search, controls, show };
}
