import { listed, say, sentences } from "../../web/src/shared/say.js";
import { FREELY, arrive, changesText } from "./state.js";

const textOf = (id) => document.getElementById(id)?.textContent ?? "";

const NEEDED = {
  "WebAssembly SIMD": () => typeof WebAssembly === "object" && WebAssembly.validate(Uint8Array.from(atob(textOf("kernel")), (one) => one.charCodeAt(0))),
  Workers: () => typeof Worker === "function",
  DecompressionStream: () => typeof DecompressionStream === "function",
};

/** What this browser lacks of what the file needs; "" if nothing. */
export function lacking() {
  const names = Object.keys(NEEDED).filter((name) => !NEEDED[name]());
  if (!names.length) return "";
  return say("This browser cannot run the model, as it lacks: {names}. A current Chromium, Firefox or Safari has all of it.", { names: listed(names) });
}

/** A model as this device is to fetch it: on a phone in fewer bits, where the folder has it so. */
export function forThisDevice({ phone, ...model }) {
  const isPhone = navigator.userAgentData?.mobile ?? /Mobi/.test(navigator.userAgent);
  return phone && isPhone ? { ...model, ...phone } : model;
}

/** A sentence to show, as opposed to a fault of the program. */
class Problem extends Error {}

/** The packed model: in the page, or, of a folder, in a file beside it. */
async function packedOf({ id, file }) {
  if (!file) {
    // The models stand behind the script.
    if (document.readyState === "loading") await new Promise((done) => addEventListener("DOMContentLoaded", done));
    const element = document.getElementById(id);
    const text = element?.textContent ?? "";
    element?.remove(); // It is needed once, and large.
    return text;
  }
  const answer = await fetch(file).catch(() => null);
  if (!answer?.ok) throw new Problem(say("{file} could not be fetched. Open this page from a web host that has the whole folder.", { file }));
  return new Uint8Array(await answer.arrayBuffer());
}

/**
 * A model in a worker of its own: `ready` resolves once it can run, `translate(text, options)` asks it, and `explain(run)`
 * what a translation rests on; null where something else was asked meanwhile.
 */
function connect(model) {
  const worker = new Worker(URL.createObjectURL(new Blob([textOf("worker")], { type: "text/javascript" })));
  const waiting = new Map();
  const ask = (message) =>
    new Promise((resolve, reject) => {
      const number = waiting.size ? Math.max(...waiting.keys()) + 1 : 1;
      waiting.set(number, { resolve, reject });
      worker.postMessage({ ...message, number });
    });
  worker.onmessage = ({ data: { number, found, problem, error } }) => {
    const { resolve, reject } = waiting.get(number);
    waiting.delete(number);
    if (problem || error) reject(problem ? new Problem(problem) : new Error(error));
    else resolve(found);
  };
  worker.onerror = ({ message }) => {
    for (const { reject } of waiting.values()) reject(new Error(message));
    waiting.clear();
  };
  const ready = packedOf(model).then((packed) => ask({ load: { packed, sha256: model.sha256, code: textOf("kernel") } }));
  return {
    ready,
    translate: (text, options) => ready.then(() => ask({ text, options })),
    explain: ({ sourceIds, ids, changes }) => ready.then(() => ask({ explain: { sourceIds, ids, changes } })),
    end: () => worker.terminate(),
  };
}

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
    if (made.has(at)) return made.get(at);
    const connection = connect(models[at]);
    made.set(at, connection);
    // A file beside the page may come at the next try; what stood in the page is used up.
    if (models[at].file) connection.ready.catch(() => (made.delete(at), connection.end()));
    return connection;
  };
}

/**
 * What asks the model for what `state` says, `show()`s it once it is there, and says what went wrong in `says`, while
 * `busy` is said to be; a later request overtakes. With `keep` the place and the pins stay, unless one that was overtaken
 * asked for another sentence, whose telling word is then shown.
 */
export function translation(state, { busy, says }, of, show) {
  let latest = 0;
  let awaited = false; // Another sentence, or that of another model, is asked for and not there yet ...
  let fresh = false; // ... and is to begin with its telling word.
  return async (fields, { keep = false } = {}) => {
    Object.assign(state, fields);
    const asksAnew = "text" in fields;
    // What was chosen in the sentence that is still shown is nothing to hold another one to.
    if (awaited && !asksAnew) Object.assign(state, FREELY);
    awaited ||= asksAnew;
    fresh = keep ? fresh && !("place" in fields) : true;
    const own = (latest += 1);
    const { at, text, beam, search, constraints, target } = state;
    busy.setAttribute("aria-busy", "true");
    const options = { ...search, beam: target ? 1 : beam, constraints, target, changes: changesText(state) };
    const found = await of(at).translate(text, options).catch((error) => error);
    if (own !== latest) return;
    busy.removeAttribute("aria-busy");
    if (found instanceof Error) {
      says.textContent = found instanceof Problem ? found.message : FAULT;
      if (!(found instanceof Problem)) console.error(found);
      return;
    }
    Object.assign(found, { at, changes: options.changes });
    if (target && !awaited) found.tree = state.run.tree; // One of its translations is looked at.
    says.textContent = note(found);
    arrive(state, found, !fresh);
    [awaited, fresh] = [false, false];
    show();
  };
}

/** What asks once what the run of a state rests on, and `show()`s it once it is there. */
export function explanation(of, show) {
  return async (state) => {
    const { run } = state;
    if (run.explained !== undefined) return;
    run.explained = null; // It is asked for.
    const found = await of(run.at).explain(run).catch(console.error);
    run.explained = found ?? undefined;
    // Null: it gave way to something else, which may change nothing of what is shown. Drawn again, the card asks again.
    if (found || (found === null && state.run === run)) show();
  };
}
