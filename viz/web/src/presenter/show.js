import { add } from "./add.js";
import { ballot, guessesSaid } from "./ballot.js";
import { choiceAt } from "./chosen.js";
import { openFrame } from "./frame.js";
import { asked, inField } from "./keys.js";
import { guessesOf } from "./guesses.js";
import { openNotes } from "./notes.js";
import { buildScreen, isDark } from "./screen.js";
import { typedNumber } from "./typed.js";

const AHEAD = [0, 1, 2, -1]; // Scenes kept ready around the one that is shown, the most wanted first.
const SETTLES = 250; // Milliseconds a new scene has for itself.
const UNSEEN = 100; // Milliseconds after which nothing more is painted where the page is not in sight.

/** Once what was changed until now is on the screen. */
const painted = () =>
  new Promise((done) => {
    requestAnimationFrame(() => setTimeout(done));
    setTimeout(done, UNSEEN);
  });

/**
 * The scenes on the whole screen. Each is the app's own page in a frame; the next ones are built out of sight before
 * they are asked for, so a key only changes which frame is seen. Where the scene asked for is not built yet, its title
 * and number stand there at once, and the scene before it is dimmed. `moved(scene)` hears which one is asked for, and
 * `closed(scene)` of the end.
 */
export function openShow(root, { scenes, title, at, contrast, numbered }, { moved, closed }) {
  const screen = buildScreen(root, numbered);
  const frames = new Map();
  const guesses = guessesOf(title, scenes);
  const poll = ballot(add(screen.box, "div", ""), count);
  const show = { at: -1, wanted: -1, started: performance.now(), notes: null };
  const number = typedNumber({
    shown: (digits) => (screen.place.textContent = `→ ${digits}`),
    arrived: (one) => (scenes[one - 1] ? go(one - 1) : describe()),
  });
  const listen = (target) => target.addEventListener("keydown", pressed, true);
  const hear = (target) => (listen(target), target.addEventListener("click", clicked, true));

  function pressed(event) {
    if (event.key === "Escape" && inField(event)) return (event.preventDefault(), event.composedPath()[0].blur());
    const what = asked(event);
    if (what === null || (!numbered && !["close", "contrast", "full"].includes(what))) return;
    if (what === "enter" && !number.begun()) return;
    event.preventDefault();
    event.stopPropagation();
    if (/^\d$/.test(what)) (asking() ? count : number.digit)(Number(what));
    else if (what === "enter") number.finish();
    else if (what === "close") ACTIONS.close();
    else ACTIONS[what](event.timeStamp + event.view.performance.timeOrigin - performance.timeOrigin);
  }
  const asking = () => show.at === show.wanted && scenes[show.at]?.guess.length > 0 && !frames.get(show.at).revealed;
  function count(choice) {
    if (asking()) guesses.add(show.at, choice);
    describe();
  }
  /** A click on a part of the picture that is a choice counts it, and does nothing else. */
  function clicked(event) {
    const choice = asking() ? choiceAt(event, scenes[show.at]) : 0;
    if (!choice) return;
    event.preventDefault();
    event.stopPropagation();
    count(choice);
  }

  /** Keep the frames around `at`; one is built after the other, so that they do not slow each other down. */
  async function prepare() {
    const around = show.wanted;
    const near = AHEAD.map((step) => around + step).filter((one) => scenes[one]);
    for (const [index, frame] of frames)
      if (!near.includes(index) && index !== show.at) frame.element.remove(), frames.delete(index);
    for (const index of near) {
      if (!frames.has(index)) frames.set(index, openFrame(screen.box, scenes[index], hear));
      await frames.get(index)?.ready;
      if (show.wanted !== around || !screen.dialog.isConnected) return;
    }
    screen.dialog.dataset.ready = around + 1;
  }
  async function go(to, pressedAt = performance.now()) {
    if (!scenes[to] || to === show.wanted) return describe();
    if (show.wanted >= 0) moved(to);
    show.wanted = to;
    const dropped = () => show.wanted !== to || !screen.dialog.isConnected; // Another scene was asked for, or none.
    if (!frames.get(to)?.done) {
      describe();
      await painted(); // While a page starts, its scripts keep the browser from painting anything else.
      if (dropped()) return;
      prepare();
      await frames.get(to).ready;
      if (dropped()) return;
    }
    swap(to, pressedAt);
    clearTimeout(show.later);
    show.later = setTimeout(prepare, SETTLES); // Not while the scene is being painted.
  }
  function swap(to, pressedAt) {
    screen.dialog.classList.remove("waiting");
    delete screen.dialog.dataset.took;
    for (const [index, { element: frame }] of frames) {
      frame.classList.toggle("seen", index === to);
      frame.toggleAttribute("inert", index !== to);
      frame.setAttribute("aria-hidden", String(index !== to));
    }
    show.at = to;
    describe();
    requestAnimationFrame(() => setTimeout(() => (screen.dialog.dataset.took = (performance.now() - pressedAt).toFixed(1))));
  }
  /** All words are of the scene that is asked for. */
  function describe() {
    const at = show.wanted;
    const [scene, drawing] = [scenes[at], at !== show.at];
    const covered = !drawing && !frames.get(at).revealed;
    screen.dialog.classList.toggle("drawing", drawing);
    screen.dialog.setAttribute("aria-busy", String(drawing));
    screen.title.textContent = scene.title;
    screen.point.textContent = scene.point;
    const guessed = scene.guess.length ? guessesSaid(guesses.total(at)) : "";
    screen.place.textContent = [guessed, `${at + 1} / ${scenes.length}`].filter(Boolean).join(" · ");
    poll(drawing ? [] : scene.guess, guesses.counts(at), covered);
    if (!drawing) Object.assign(screen.dialog.dataset, { scene: at + 1, revealed: !covered });
    show.notes?.follow({ scene, at, count: scenes.length, following: scenes[at + 1], drawing, covered, guessed });
  }
  const ACTIONS = {
    next(time) {
      const frame = frames.get(show.at);
      if (!frame || frame.revealed || show.wanted !== show.at) return go(Math.min(show.wanted + 1, scenes.length - 1), time);
      frame.revealed = true;
      frame.cover();
      describe();
    },
    previous: (time) => go(Math.max(show.wanted - 1, 0), time),
    first: (time) => go(0, time),
    last: (time) => go(scenes.length - 1, time),
    takeBack() {
      if (asking()) guesses.takeBack(show.at);
      describe();
    },
    contrast: () => screen.dialog.classList.toggle("contrast"),
    full: () => (document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen()),
    notes() {
      if (show.notes?.open) return show.notes.focus();
      show.notes = openNotes(show, title, listen);
      describe();
    },
    /** Also without a word, where other scenes are to take the place of these. */
    close(tell = true) {
      const before = tell && screen.dialog.isConnected;
      screen.dialog.remove();
      frames.clear();
      removeEventListener("keydown", pressed, true);
      number.stop();
      clearTimeout(show.later);
      show.notes?.close();
      if (before) closed(show.at);
    },
  };
  screen.dialog.classList.toggle("waiting", !numbered);
  screen.dialog.classList.toggle("contrast", contrast || matchMedia("(prefers-contrast: more)").matches);
  screen.dialog.oncancel = (event) => (event.preventDefault(), ACTIONS.close());
  listen(window);
  screen.dialog.showModal();
  screen.dialog.classList.toggle("dark", isDark(screen.dialog));
  go(Math.min(at, scenes.length - 1));
  return { close: ACTIONS.close };
}
