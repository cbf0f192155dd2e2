import { say } from "../../web/src/shared/say.js";
import { element } from "../../web/src/shared/element.js";
import { FREELY } from "./state.js";

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
export function tour(host, steps, { look, translate }) {
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
