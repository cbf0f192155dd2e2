import { mounted, unmount } from "../shared/mounted.js";
import { unpack } from "../shared/packed.js";
import { stored } from "../shared/stored.js";

const { entryOf, keep } = stored("attenscope", 40);

const asBase64 = (bytes) =>
  new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(/** @type {string} */ (reader.result).split(",")[1]);
    reader.readAsDataURL(new Blob([bytes]));
  });

/** Ask for the first file that is not kept here yet, then give back the first that is lost there: one at a time. */
async function exchange(view, { known, lost, sent }, body, tell) {
  if (sent) await keep(sent, known[sent], body);
  for (const key of Object.values(known)) view.given.delete(key); // It may be lost again.
  for (const [name, key] of Object.entries(known)) {
    if (view.asked.has(key) || (await entryOf(name, key))) continue;
    view.asked.add(key);
    return tell("wanted", { name });
  }
  for (const [name, key] of Object.entries(lost)) {
    const bytes = view.given.has(key) ? null : await entryOf(name, key);
    if (!bytes) continue;
    view.given.add(key);
    return tell("found", { name, data: await asBase64(bytes) });
  }
  return null;
}

export default function keptFiles({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const view = mounted(parentElement, "kept_files", () => ({ asked: new Set(), given: new Set(), doing: Promise.resolve() }));
  const bytes = body.slice();
  // A browser that keeps nothing for pages, as in some private windows, has the files while the server has them.
  view.doing = view.doing.then(() => exchange(view, header, bytes, setTriggerValue)).catch(() => {});
  return () => unmount(parentElement);
}
