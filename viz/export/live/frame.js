import { say } from "../../web/src/shared/say.js";
import { element } from "../../web/src/shared/element.js";
import { sentenceForm } from "./sentence.js";
import { tour } from "./tour.js";

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
  const main = element("main", "live");
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
