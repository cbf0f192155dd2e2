import { composed } from "./compose.js";

const LAST = 2; // Seconds for which the last picture stands, besides.
const LARGEST = 2; // Times its size in the page: beyond that a film is large and plays badly.

/** The view of a page that moves, as components say it: how many pictures, the seconds of each, and `show(at)`. */
function filmOf(page) {
  const roots = [...page.querySelectorAll(".part")].flatMap((host) => [...(host.shadowRoot?.querySelectorAll("*") ?? [])]);
  return roots.find((root) => root.film)?.film;
}

const painted = (page) => new Promise((done) => page.defaultView.requestAnimationFrame(() => page.defaultView.requestAnimationFrame(done)));

/** Every picture of the page's film, for src/moving/film.js. */
async function pictures(page, scale) {
  const film = filmOf(page);
  const grown = Math.min(scale, LARGEST);
  const found = [];
  for (let at = 0; at < film.count; at += 1) {
    film.show(at);
    await painted(page);
    const { text, width, height } = composed(page, { clear: false });
    const seconds = film.seconds + (at === film.count - 1 ? LAST : 0);
    const address = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    found.push({ address, size: [Math.round(width * grown), Math.round(height * grown)], seconds });
  }
  return found;
}

/** The page's film as a Blob; `encoder` is the script src/moving/film.js, which only who makes a film is sent. */
export async function filmed(page, { scale, encoder, asked: { kind } }) {
  const address = URL.createObjectURL(new Blob([`export default ${encoder};`], { type: "text/javascript" }));
  try {
    const { default: film } = await import(address);
    const fill = page.defaultView.getComputedStyle(page.body).backgroundColor;
    return new Blob([await film({ kind, pictures: await pictures(page, scale), fill })], { type: kind === "gif" ? "image/gif" : "video/webm" });
  } finally {
    URL.revokeObjectURL(address);
  }
}
