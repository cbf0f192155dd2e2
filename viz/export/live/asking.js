import { listed, say, sentences } from "../../web/src/shared/say.js";
import { Problem, connect } from "./connection.js";
import { arrive, changesText } from "./state.js";

const FAULT = say("Something went wrong in this page that should not. Please open it again.");

function note({ unknown, stopped }) {
  const pieces = listed(unknown.map((token) => say("“{token}”", { token })));
  return sentences(
    unknown.length ? say("The vocabulary has no pieces for {pieces}.", { pieces }) : "",
    stopped === "length" ? say("The translation was cut off at the length limit.") : "",
  );
}

/** One worker a model, begun when it is first asked for: `of(at)` is that of the model with this number. */
export function connections(models) {
  const made = new Map();
  return (at) => {
    if (!made.has(at)) made.set(at, connect(models[at]));
    return made.get(at);
  };
}

/**
 * What asks the model for what `state` says, `show()`s it once it is there, and says what went wrong in `says`, while
 * `busy` is said to be; a later request overtakes.
 */
export function translation(state, { busy, says }, of, show) {
  let latest = 0;
  return async (fields, { keep = false } = {}) => {
    Object.assign(state, fields);
    const own = (latest += 1);
    const { text, beam, search, constraints, target } = state;
    busy.setAttribute("aria-busy", "true");
    const options = { ...search, beam: target ? 1 : beam, constraints, target, changes: changesText(state) };
    const found = await of(state.at).translate(text, options).catch((error) => error);
    if (own !== latest) return;
    busy.removeAttribute("aria-busy");
    if (found instanceof Error) {
      says.textContent = found instanceof Problem ? found.message : FAULT;
      if (!(found instanceof Problem)) console.error(found);
      return;
    }
    found.changes = options.changes;
    if (target) found.tree = state.run.tree; // One of its translations is looked at.
    says.textContent = note(found);
    arrive(state, found, keep);
    show();
  };
}

/** What asks once what the run of a state rests on, and `show()`s it once it is there. */
export function explanation(of, show) {
  return async ({ run, at }) => {
    if (run.explained !== undefined) return;
    run.explained = null; // It is asked for.
    const found = await of(at).explain(run).catch(console.error);
    run.explained = found ?? undefined; // It gave way to something else: asked again when the card is drawn again.
    if (found) show();
  };
}
