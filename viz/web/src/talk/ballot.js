import { handOut } from "../shared/element.js";
import { say, sayMany } from "../shared/say.js";

/** A new element at the end of `parent`, in the same document. */
export function add(parent, tag, className) {
  const made = parent.ownerDocument.createElement(tag);
  made.className = className;
  parent.append(made);
  return made;
}

const KEPT_AS = "attenscope-guesses ";
const MOST = 2000; // Guesses of one scene.

/** The browser's own storage; where it keeps nothing for pages, as in some private windows, only what is open keeps it. */
const unkept = new Map();

function read(place) {
  try {
    return localStorage.getItem(place) ?? unkept.get(place) ?? "";
  } catch {
    return unkept.get(place) ?? "";
  }
}

function write(place, text) {
  unkept.set(place, text);
  try {
    localStorage.setItem(place, text);
  } catch {
    // Full or forbidden.
  }
}

const AT_ONCE = 1500; // Milliseconds in which Enter makes digits that were counted as guesses the number of a scene.

/** Digits that were just counted as guesses: Enter right after them means the scene of that number. */
export function countedDigits(now = () => performance.now()) {
  let [typed, last] = [[], -Infinity];
  const begun = () => now() - last <= AT_ONCE;
  return {
    begun,
    /** A digit has been typed, and `counted` says whether it was one of the choices. */
    add(digit, counted) {
      typed = [...(begun() ? typed : []), { digit, counted }].slice(-2);
      last = now();
    },
    /** Of the last two digits, or the last alone, the number of a scene, and how many guesses it was; null for none. */
    take(isScene) {
      last = -Infinity;
      const numbers = [typed, typed.slice(-1)].map((some) => ({
        number: Number(some.map(({ digit }) => digit).join("")),
        guessed: some.filter(({ counted }) => counted).length,
      }));
      return numbers.find(({ number }) => isScene(number)) ?? null;
    },
  };
}

const CELL_ENDS = ",;\t\r\n\"";

/**
 * A cell of a table, as model/atomic_write.py writes one: a backslash stands where one begins, or would begin, that a
 * spreadsheet runs as a formula (CWE-1236), and a backslash in a text is doubled.
 */
function quoted(value) {
  const text = String(value).replaceAll("\\", "\\\\");
  const begins = (at) => at === 0 || CELL_ENDS.includes(text[at - 1]);
  const shown = text.replace(/[=+\-@\t\r]/g, (sign, at) => (begins(at) ? `\\${sign}` : sign));
  return `"${shown.replaceAll('"', '""')}"`;
}

/**
 * What the audience guesses at the scenes of a talk that ask (`guess`, their choices): kept by this browser under the
 * words of the scene, wherever it stands in the talk, until it is cleared.
 */
export function guessesOf(title, scenes) {
  const words = scenes.map((scene) => JSON.stringify([title, scene.title, scene.guess]));
  /** A scene with the words of an earlier one, asked before and after, has guesses of its own. */
  const place = (at) => `${KEPT_AS}${words.slice(0, at).filter((one) => one === words[at]).length} ${words[at]}`;
  const asking = [...scenes.keys()].filter((at) => scenes[at].guess.length);
  const given = (at) => {
    const kept = read(place(at)).split(",").map(Number);
    return kept.filter((one) => one >= 1 && one <= scenes[at].guess.length);
  };
  const counts = (at) => scenes[at].guess.map((_, choice) => given(at).filter((one) => one === choice + 1).length);
  const store = (at, all) => write(place(at), all.slice(0, MOST).join());
  return {
    /** How often each choice was guessed. */
    counts,
    total: (at) => given(at).length,
    any: () => asking.some((at) => given(at).length),
    /** Count a guess of the choice, from 1, if the scene has it. */
    add: (at, choice) => choice >= 1 && choice <= scenes[at].guess.length && store(at, [...given(at), choice]),
    takeBack: (at) => store(at, given(at).slice(0, -1)),
    clear: () => asking.forEach((at) => store(at, [])),
    save() {
      const rows = asking.flatMap((at) => scenes[at].guess.map((choice, i) => [at + 1, scenes[at].title, choice, counts(at)[i]]));
      const table = [["scene", "title", "choice", "guesses"], ...rows].map((row) => row.map(quoted).join(",")).join("\n");
      handOut(new Blob([`${table}\n`], { type: "text/csv" }), "guesses.csv");
    },
  };
}

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
