import { handOut } from "../shared/hand_out.js";

const PLACE = "attenscope-guesses ";
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

const quoted = (text) => `"${String(text).replaceAll('"', '""')}"`;

/**
 * What the audience guesses at the scenes of a talk that ask (`guess`, their choices): kept by this browser under the
 * words of the scene, wherever it stands in the talk, until it is cleared.
 */
export function guessesOf(title, scenes) {
  const words = scenes.map((scene) => JSON.stringify([title, scene.title, scene.guess]));
  /** A scene with the words of an earlier one, asked before and after, has guesses of its own. */
  const place = (at) => `${PLACE}${words.slice(0, at).filter((one) => one === words[at]).length} ${words[at]}`;
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
