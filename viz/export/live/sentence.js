import { element } from "../browser/element.js";

/** The box for a sentence: Enter, or its button, hands what is in it to `say`. */
export function sentenceForm(say) {
  const form = element("form", "sentence");
  const box = form.appendChild(element("textarea"));
  box.rows = 1;
  box.dir = "auto";
  box.setAttribute("aria-label", "Sentence");
  box.placeholder = "Type a sentence and press Enter";
  box.spellcheck = false;
  const submit = form.appendChild(element("button", "translate", "Translate"));
  form.onsubmit = (event) => {
    event.preventDefault();
    say(box.value);
  };
  box.onkeydown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  };
  return { form, box, submit };
}
