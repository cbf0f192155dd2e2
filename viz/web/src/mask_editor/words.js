import { written } from "../shared/number.js";
import { say } from "../shared/say.js";

export const HINT = say("Point at a cell, or use the arrow keys, to read it in all pictures. Sums stand at the right and below.");
export const WORDS = [
  say("blocked"),
  say("allowed"),
  say("leak: should be blocked"),
  say("blocked, should be allowed"),
  "NaN",
  say("padding query"),
];
const HOWS = ["", say("by -inf"), say("by a finite fill"), say("uniform row"), say("1 added to the score")];

/** A query or a key by its number from 1, and its token where that is known. */
export const named = (token, at) => 
  token?.trim() ? say("{number} “{token}”", { number: at + 1, token: token.trim() }) : at + 1;
/** What a cell of a picture is, and its number. */
export const told = (panel, at, words) => {
  const value = panel.values[at];
  const digits = Math.abs(value) < 0.0005 && value !== 0 ? value.toExponential(1) : String(+value.toFixed(3));
  const number = Number.isNaN(value) ? "" : ` ${written(digits)}`;
  const [state, how] = [words[panel.states[at]], HOWS[panel.marks[at]]];
  const cell = how ? say("{state} {how}", { state, how }) : state;
  return say("{picture}: {cell}", { picture: panel.title, cell }) + number;
};

/** What a sign in the cells says, beside the sign. */
export function signOf({ sign, said, colour, ink }) {
  const [made, swatch] = [document.createElement("span"), document.createElement("em")];
  swatch.textContent = sign;
  Object.assign(swatch, { className: "swatch", ariaHidden: "true" });
  Object.assign(swatch.style, { background: colour, color: ink });
  made.append(swatch, said);
  return made;
}
