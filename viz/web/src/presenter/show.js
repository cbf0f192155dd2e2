import { say } from "../shared/say.js";
import { asked, inField, liveFrames } from "../studio/frame.js";
import { keptScene, openKept } from "../studio/kept.js";
import { add, ballot, countedDigits, guessesOf, guessesSaid } from "../talk/ballot.js";
import { choiceAt } from "../talk/chosen.js";
import { openNotes } from "../talk/notes.js";
import { buildScreen, isDark } from "./rehearse.js";

const TYPING = 1500; // Milliseconds after a digit until the number counts as typed.

/** A number of two digits at most as it is typed: `shown(text)` hears of each digit, `arrived(number)` of its end. */
export function typedNumber({ shown, arrived }) {
  let [typed, timer] = ["", 0];
  const finish = () => {
    const number = Number(typed);
    clearTimeout(timer);
    typed = "";
    arrived(number);
  };
  const digit = (one) => {
    typed = (typed + one).slice(-2);
    shown(typed);
    clearTimeout(timer);
    timer = setTimeout(finish, TYPING);
  };
  return { digit, finish, begun: () => Boolean(typed), stop: () => clearTimeout(timer) };
}

// Scenes kept ready around the one that is shown, the most wanted first: pictures, and pages.
const AHEAD = { kept: [0, 1, 2, -1], live: [0, 1, -1] };
const SETTLES = 250; // Milliseconds a new scene has for itself.
const HURRIES = 3000; // Milliseconds: who asks for the next scene sooner sees kept pictures, and no page is begun.
const RESTED = 1500; // Milliseconds without a key after which one is begun all the same.
const UNSEEN = 100; // Milliseconds after which nothing more is painted where the page is not in sight.

/** Once what was changed until now is on the screen. */
const painted = () =>
  new Promise((done) => {
    requestAnimationFrame(() => setTimeout(done));
    setTimeout(done, UNSEEN);
  });

const isOpen = ({ hide, guess }) => !hide.length && !guess.length;

/**
 * The scenes on the whole screen. Each is the app's own page in a frame, `live`; the next ones are built out of sight
 * before they are asked for, so a key only changes which frame is seen. Where it is not built yet, what was `kept` of it
 * is shown until it is (its key is `keyOf(scene)`); where nothing was, its title and number stand there at once, and the
 * scene before it is dimmed. `script` is one that pages load ahead. `moved(scene)` hears which one is asked for, and `closed(scene)` of the end.
 */
export function openShow(root, { scenes, title, at, contrast, numbered, keyOf, script }, { moved, closed }) {
  const screen = buildScreen(root, numbered);
  const revealed = scenes.map(isOpen);
  const guesses = guessesOf(title, scenes);
  const poll = ballot(add(screen.box, "div", ""), count);
  const show = { at: -1, wanted: -1, seen: null, started: performance.now(), asked: performance.now(), uncovered: -Infinity, failed: false, notes: null };
  const pictures = new Map();
  const pictureOf = (index) => pictures.get(index) ?? pictures.set(index, numbered && scenes[index] ? keptScene(keyOf(scenes[index])) : null).get(index);
  const number = typedNumber({
    shown: (digits) => (screen.place.textContent = `→ ${digits}`),
    arrived: (one) => (scenes[one - 1] ? go(one - 1) : describe()),
  });
  const counted = countedDigits();
  const listen = (target) => target.addEventListener("keydown", pressed, true);
  const hear = (target) => (listen(target), target.addEventListener("click", clicked, true));

  function pressed(event) {
    if (event.key === "Escape" && inField(event)) return (event.preventDefault(), event.composedPath()[0].blur());
    const what = asked(event);
    if (what === null || (!numbered && !["close", "contrast", "full"].includes(what))) return;
    if (what === "enter" && !number.begun() && !(asking() && counted.begun())) return;
    event.preventDefault();
    event.stopPropagation();
    if (/^\d$/.test(what)) (asking() ? countDigit : number.digit)(Number(what));
    else if (what === "enter") (number.begun() ? number.finish : jump)();
    else if (what === "close") ACTIONS.close();
    else ACTIONS[what](event.timeStamp + event.view.performance.timeOrigin - performance.timeOrigin);
  }
  const asking = () => show.at === show.wanted && scenes[show.at]?.guess.length > 0 && !revealed[show.at];
  function count(choice) {
    if (asking()) guesses.add(show.at, choice);
    describe();
  }
  function countDigit(digit) {
    const before = guesses.total(show.at);
    count(digit);
    counted.add(digit, guesses.total(show.at) > before);
  }
  /** To the scene whose number was just counted as a guess. */
  function jump() {
    const found = counted.take((to) => Boolean(scenes[to - 1]));
    if (!found) return;
    for (let at = 0; at < found.guessed; at += 1) guesses.takeBack(show.at);
    if (found.number - 1 === show.at) describe();
    else go(found.number - 1);
  }
  /** A click on a part of the picture that is a choice counts it, and does nothing else. */
  function clicked(event) {
    const choice = asking() ? choiceAt(event, scenes[show.at]) : 0;
    if (!choice) return;
    event.preventDefault();
    event.stopPropagation();
    count(choice);
  }

  const fits = new Map(); // By the number of a scene: how it was fitted on this screen, or when it was rehearsed.
  async function optionsOf(index) {
    const picture = await pictureOf(index);
    // Who has no picture of it waits for the scene alone.
    return { fitted: fits.get(index) ?? picture?.fitted ?? null, script: picture ? script : "" };
  }
  const live = liveFrames(screen.box, scenes, hear, optionsOf);
  const frames = { live: live.shown, kept: new Map() };
  const around = (of) => AHEAD[of].map((step) => show.wanted + step).filter((one) => scenes[one]);
  async function openPicture(index) {
    const picture = await pictureOf(index);
    if (picture && !frames.kept.has(index)) frames.kept.set(index, openKept(screen.box, scenes[index], picture, hear));
    return frames.kept.get(index);
  }
  function leave(of, index) {
    if (of === frames.live) return live.leave(index);
    of.get(index).remove();
    of.delete(index);
  }
  /** The frames of a `kind`, of the scenes around the one that is asked for, one built after the other; the others leave. */
  async function keep(kind, open, arrived) {
    const [wanted, near, of] = [show.wanted, around(kind), frames[kind]];
    for (const [index, frame] of of)
      if (!near.includes(index) && frame !== show.seen) {
        leave(of, index);
        if (!frames.live.has(index)) revealed[index] = isOpen(scenes[index]);
      }
    for (const index of near) {
      const frame = await open(index);
      await frame?.ready;
      if (show.wanted !== wanted || !screen.dialog.isConnected) return false;
      if (!frame || of.get(index) !== frame) continue; // It shows another scene by now.
      if (frame.done) arrived?.(index);
      else leave(of, index);
    }
    return true;
  }
  /** A page is there: if it is that of the scene that is shown, it takes the place of its picture. */
  function arrived(index) {
    fits.set(index, frames.live.get(index).fitted);
    if (index === show.at && show.seen !== frames.live.get(index)) see(index);
  }
  /** Build the pages. */
  async function prepare() {
    const { wanted } = show;
    if (await keep("live", live.open, arrived)) screen.dialog.dataset.ready = wanted + 1;
  }
  /** Those for which frames are there, each at the cost of the least needed: they come even while somebody hurries. */
  function goLive() {
    const near = around("live");
    const goTo = (index) => live.goTo(index, near.slice(near.indexOf(index) + 1).filter((one) => frames.live.get(one) !== show.seen));
    return keep("live", goTo, arrived);
  }
  /** Unless a key has come meanwhile that uncovers a scene: who presses it may go on at once. */
  function prepareRested() {
    const since = performance.now() - show.uncovered;
    if (since < RESTED && frames.kept.size) show.later = setTimeout(prepareRested, RESTED - since);
    else prepare();
  }
  const best = (index) => [frames.live.get(index), frames.kept.get(index)].find((frame) => frame?.done);
  async function go(to, pressedAt = performance.now()) {
    if (!scenes[to] || (to === show.wanted && !show.failed)) return describe();
    if (show.wanted >= 0) moved(to);
    const isHurried = pressedAt - show.asked < HURRIES;
    Object.assign(show, { wanted: to, asked: pressedAt, failed: false });
    clearTimeout(show.later);
    // A page that is still being built would keep the next pictures waiting with its scripts.
    if (isHurried && frames.kept.size)
      for (const [index, frame] of frames.live) if (!frame.done && !(frame.arrived && index === to)) leave(frames.live, index);
    const dropped = () => show.wanted !== to || !screen.dialog.isConnected; // Another scene was asked for, or none.
    if (!best(to)) {
      describe();
      const opening = openPicture(to);
      await painted(); // While a page starts, its scripts keep the browser from painting anything else.
      const picture = await opening;
      if (dropped()) return;
      if (!picture) prepare();
      await (picture ?? (await live.open(to))).ready;
      if (dropped()) return;
    }
    if (!best(to)) return fail();
    swap(to, pressedAt);
    const later = (act, time) => !dropped() && (show.later = setTimeout(act, time));
    await painted();
    if (dropped()) return;
    goLive();
    // While somebody goes through pictures, no page that is begun keeps the browser from it.
    later(() => keep("kept", openPicture).then(() => later(prepareRested, isHurried && frames.kept.size ? RESTED : 0)), SETTLES);
  }
  function see(index) {
    show.seen = best(index);
    show.seen.revealed = revealed[index];
    show.seen.cover();
    for (const frame of [...frames.live.values(), ...frames.kept.values()]) {
      const isSeen = frame === show.seen;
      frame.element.classList.toggle("seen", isSeen);
      frame.element.toggleAttribute("inert", !isSeen);
      frame.element.setAttribute("aria-hidden", String(!isSeen));
    }
    screen.dialog.dataset.from = show.seen === frames.live.get(index) ? "live" : "kept";
  }
  function swap(to, pressedAt) {
    screen.dialog.classList.remove("waiting");
    delete screen.dialog.dataset.took;
    Object.assign(show, { at: to, began: performance.now() });
    see(to);
    describe();
    requestAnimationFrame(() => setTimeout(() => (screen.dialog.dataset.took = (performance.now() - pressedAt).toFixed(1))));
  }
  /** Neither page nor picture: it is tried again when it is asked for again. */
  function fail() {
    show.failed = true;
    screen.point.textContent = say("This scene does not come: the app does not answer.");
  }
  /** All words are of the scene that is asked for. */
  function describe() {
    const at = show.wanted;
    const [scene, drawing] = [scenes[at], at !== show.at];
    const covered = !drawing && !revealed[at];
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
      if (show.wanted !== show.at || revealed[show.at]) return go(Math.min(show.wanted + 1, scenes.length - 1), time);
      revealed[show.at] = true;
      show.uncovered = performance.now();
      see(show.at);
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
      show.notes = openNotes(show, title, listen, scenes, pictureOf);
      describe();
    },
    /** Also without a word, where other scenes are to take the place of these. */
    close(tell = true) {
      const before = tell && screen.dialog.isConnected;
      screen.dialog.remove();
      live.remove();
      frames.kept.forEach((frame) => frame.remove());
      removeEventListener("keydown", pressed, true);
      document.removeEventListener("fullscreenchange", leaveWithScreen);
      if (!numbered && document.fullscreenElement) document.exitFullscreen();
      number.stop();
      clearTimeout(show.later);
      show.notes?.close();
      if (before) closed(show.at);
    },
  };
  /** A page alone goes with the full screen that it was given: Escape ends both. */
  const leaveWithScreen = () => numbered || document.fullscreenElement || ACTIONS.close();
  document.addEventListener("fullscreenchange", leaveWithScreen);
  /** Who has no keyboard taps; elsewhere the style sheet hides them. */
  const taps = add(screen.dialog, "div", "taps");
  const now = (act) => () => act(performance.now());
  const named = [...(numbered ? [["‹", say("Back"), now(ACTIONS.previous)], ["›", say("Next"), now(ACTIONS.next)]] : []), ["×", say("Leave full screen"), () => ACTIONS.close()]];
  for (const [sign, name, act] of named) {
    const button = add(taps, "button", "");
    Object.assign(button, { textContent: sign, ariaLabel: name, onclick: act });
  }
  screen.dialog.classList.toggle("waiting", !numbered);
  screen.dialog.classList.toggle("contrast", contrast || matchMedia("(prefers-contrast: more)").matches);
  screen.dialog.oncancel = (event) => (event.preventDefault(), ACTIONS.close());
  listen(window);
  screen.dialog.showModal();
  screen.dialog.classList.toggle("dark", isDark(screen.dialog));
  go(Math.min(at, scenes.length - 1));
  return { close: ACTIONS.close };
}
