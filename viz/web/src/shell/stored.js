const ENTRIES = "files";

const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** A text that the browser keeps; "" where there is none, or it keeps nothing for pages, as in some private windows. */
export function keptText(place) {
  try {
    return localStorage.getItem(place) ?? "";
  } catch {
    return "";
  }
}

/** Keep a text where the browser does so: storage can be full or forbidden, and what is on the page stays there. */
export function keepText(place, text) {
  try {
    localStorage.setItem(place, text);
  } catch {
    // Then the page that comes next is without it.
  }
}

/**
 * What a browser keeps for pages under names, each with a key that tells whether it is still the same, in a database of
 * its own (IndexedDB); of more than `most` entries, those that were kept first go. A browser that keeps nothing for
 * pages, as in some private windows, rejects.
 */
export function stored(database, most) {
  /** Run `act` on the entries; `mode` is that of IndexedDB. */
  async function within(mode, act) {
    const opening = indexedDB.open(database, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(ENTRIES);
    const opened = await done(opening);
    try {
      return await act(opened.transaction(ENTRIES, mode).objectStore(ENTRIES));
    } finally {
      opened.close();
    }
  }
  return {
    names: () => within("readonly", (entries) => done(entries.getAllKeys())),
    /** What is kept under this name and key; undefined where there is nothing, or another's. */
    async entryOf(name, key) {
      const found = await within("readonly", (entries) => done(entries.get(name)));
      return found?.key === key ? found.bytes : undefined;
    },
    keep: (name, key, bytes) =>
      within("readwrite", async (entries) => {
        await done(entries.put({ key, bytes, at: Date.now() }, name));
        if ((await done(entries.count())) <= most) return;
        const [names, all] = await Promise.all([done(entries.getAllKeys()), done(entries.getAll())]);
        const oldest = names.map((one, i) => [all[i].at, one]).sort(([a], [b]) => a - b);
        for (const [, one] of oldest.slice(0, Math.max(names.length - most, 0))) entries.delete(one);
      }),
  };
}
