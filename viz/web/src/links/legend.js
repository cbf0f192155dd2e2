import { say, sayMany } from "../shared/say.js";

function chip(text, label, pressed, colour) {
  const made = document.createElement("button");
  made.textContent = text;
  made.setAttribute("aria-label", label);
  made.setAttribute("aria-pressed", pressed);
  if (colour) made.style.setProperty("--colour", colour);
  return made;
}

/** One chip a head: the chosen one is always on, any other can be drawn beside it. */
export function drawLegend(legend, { head, beside, colours }, { drawn, total }, choose) {
  const focused = [...legend.children].indexOf(legend.getRootNode().activeElement);
  const others = colours.map((_, i) => i).filter((i) => i !== head);
  const chips = colours.map((colour, i) => {
    const on = i === head || beside.includes(i);
    const made = chip(`h${i + 1}`, say("Draw head {head} too", { head: i + 1 }), on, beside.length ? colour : "");
    made.classList.toggle("chosen", i === head);
    made.disabled = i === head;
    made.onclick = () => choose(on ? beside.filter((one) => one !== i) : [...beside, i].sort((a, b) => a - b));
    return made;
  });
  const all = chip(beside.length ? say("only one") : say("all"), say("Draw all heads, or only the chosen one"), false, "");
  all.onclick = () => choose(beside.length ? [] : others);
  const note = document.createElement("span");
  const lines = () => sayMany("{count} line", "{count} lines", total);
  note.textContent = drawn < total ? say("the strongest {drawn} of {total} lines", { drawn, total }) : lines();
  legend.replaceChildren(...chips, all, note);
  legend.children[focused]?.focus?.();
}
