import { letters } from "../browser/letters.js";
import { application } from "./application.js";
import { lacking } from "./connection.js";
import { liveScenes } from "./scene.js";

/** What scripts may use, as docs/saving.md describes it. */
function publish(app) {
  /** @type {Window["attenscope"]} */
  const own = { ready: false };
  own.translate = async (text, { beam = 1 } = {}) => {
    const { text: written, tokens, sourceTokens, logProbs, maps } = await app.connection().translate(text, { beam });
    const plain = Object.entries(maps).map(([kind, { shape, data }]) => [kind, { shape, data }]);
    return { text: written, tokens, sourceTokens, logProbs, maps: Object.fromEntries(plain) };
  };
  window.attenscope = own;
  const begin = () => {
    own.ready = true;
    document.body.dataset.ready = "yes";
  };
  app.connection().ready.then(begin, () => {}); // What went wrong stands on the page.
}

/** The page of a live file. */
async function file(header, components) {
  const missing = lacking();
  if (missing) {
    document.getElementById("starting").textContent = missing;
    return;
  }
  await letters();
  const app = application(header, components);
  const opened = app.open(0);
  publish(app);
  await opened;
}

export default { file, scenes: liveScenes };
