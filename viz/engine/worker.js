import { say } from "../web/src/shared/say.js";
import { unpack } from "../web/src/shared/packed.js";
import { InputError, engine } from "./engine.js";

const binary = (base64) => {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length); // Ten times as fast as Uint8Array.from.
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes;
};

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const DAMAGED = say("This file is not whole: it was cut off or changed on its way. Please download it again.");

/** Whether the bytes have this SHA-256. Where the browser cannot tell, gzip has compared its own sum already. */
async function isWhole(bytes, sha256) {
  if (!globalThis.crypto?.subtle) return true;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("") === sha256;
}

async function load({ packed, sha256, code }) {
  let bytes;
  try {
    bytes = await inflated(typeof packed === "string" ? binary(packed) : packed);
  } catch {
    throw new InputError(DAMAGED);
  }
  if (!(await isWhole(bytes, sha256))) throw new InputError(DAMAGED);
  return engine(unpack(bytes), binary(code));
}

/** What a generator returns in the end, messages being heard while it works; null once it is not `wanted` any more. */
async function finished(work, wanted) {
  for (let part = work.next(); ; part = work.next()) {
    if (part.done) return part.value;
    await new Promise((done) => setTimeout(done));
    if (!wanted()) return null;
  }
}

let running = null;
let latest = 0;

/**
 * One model: first `{ load: { packed, sha256, code } }`, then texts, `{ text, options }`, and translations to be explained,
 * `{ explain }`, each answered by `{ found }` or `{ problem }`, a sentence; any other error by `{ error }`. An explanation
 * gives way to whatever is asked after it: what it has `found` is then null.
 */
export default async function serve(port) {
  port.onmessage = async ({ data: { number, load: given, explain, text, options } }) => {
    const own = (latest += 1);
    try {
      if (given) running = await load(given);
      const found = given
        ? { config: running.config }
        : explain
          ? await finished(running.explain(explain), () => own === latest)
          : running.translate(text, options);
      port.postMessage({ number, found });
    } catch (error) {
      port.postMessage(error instanceof InputError ? { number, problem: error.message } : { number, error: String(error instanceof Error ? error.stack : error) });
    }
  };
}
