const [DATABASE, FILES] = ["attenscope", "files"];
const MOST = 40; // Files; of more, those that were kept first go.

const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Run `act` on the stored files, in this browser's own database; `mode` is that of IndexedDB. */
async function within(mode, act) {
  const opening = indexedDB.open(DATABASE, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(FILES);
  const database = await done(opening);
  try {
    return await act(database.transaction(FILES, mode).objectStore(FILES));
  } finally {
    database.close();
  }
}

/** The bytes that are kept of a file under this key; undefined where there are none, or another's. */
export async function entryOf(name, key) {
  const found = await within("readonly", (files) => done(files.get(name)));
  return found?.key === key ? found.bytes : undefined;
}

export async function keep(name, key, bytes) {
  await within("readwrite", async (files) => {
    await done(files.put({ key, bytes, at: Date.now() }, name));
    const [names, all] = await Promise.all([done(files.getAllKeys()), done(files.getAll())]);
    const oldest = names.map((one, i) => [all[i].at, one]).sort(([a], [b]) => a - b);
    for (const [, one] of oldest.slice(0, Math.max(names.length - MOST, 0))) files.delete(one);
  });
}
