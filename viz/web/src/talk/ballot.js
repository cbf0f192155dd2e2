import { say, sayMany } from "../shared/say.js";
import { add } from "./add.js";

function choiceOf(row, name, number, guessed) {
  const one = add(row, "button", "choice");
  add(one, "span", "key").textContent = number;
  add(one, "bdi", "name").textContent = one.title = name;
  const count = add(one, "output", "count");
  const bar = add(one, "span", "bar");
  one.onclick = () => guessed(number);
  return { one, count, bar };
}

/**
 * The choices of a scene under its picture, each with the key that counts it. While it is asked nobody sees how others
 * guessed; then each has its count and a bar, as long as its share of the largest. `guessed(choice)`, from 1, hears of
 * clicks. What it returns shows a scene's choices, or nothing.
 */
export function ballot(row, guessed) {
  row.className = "ballot";
  row.setAttribute("role", "group");
  row.setAttribute("aria-label", say("Guess first"));
  let shown = null;
  let choices = [];
  return (names, counts, open) => {
    row.hidden = !names.length;
    if (shown !== names) {
      row.replaceChildren();
      choices = names.map((name, at) => choiceOf(row, name, at + 1, guessed));
      shown = names;
    }
    const most = Math.max(...counts, 1);
    const told = !open && counts.some(Boolean);
    row.classList.toggle("told", told);
    choices.forEach(({ one, count, bar }, at) => {
      one.disabled = !open;
      count.textContent = told ? counts[at] : "";
      bar.style.width = told ? `${(100 * counts[at]) / most}%` : "0";
    });
  };
}

/** What is said of the guesses so far; "" while there is none. */
export const guessesSaid = (total) => (total ? sayMany("{count} guess", "{count} guesses", total) : "");
