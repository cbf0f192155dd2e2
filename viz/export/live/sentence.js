import { say } from "../../web/src/shared/say.js";
import { element } from "../../web/src/shared/element.js";

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
