import { addressed, element, letters } from "../../web/src/shared/element.js";
import { isShortcut } from "../../web/src/shared/events.js";
import { say } from "../../web/src/shared/say.js";
import { isFramed, show } from "../../web/src/slide/slide.js";
import { content, prepare, takeColours } from "../../web/src/slide/inflate.js";
import { ballot, countedDigits, guessesOf, guessesSaid } from "../../web/src/talk/ballot.js";
import { choiceAt } from "../../web/src/talk/chosen.js";
import { openNotes } from "../../web/src/talk/notes.js";
import { printable } from "./print.js";

/** The scene that the address asks for, from 0: `#scene=3` is the third. */
export const asked = () => Math.max(Number(addressed().get("scene")) || 1, 1) - 1;

/** Say in the address which scene is shown, from 0: a reload comes back to it. */
export function writeScene(scene) {
  const now = addressed();
  now.set("scene", scene + 1);
  history.replaceState(null, "", `#${now}`);
}

const RESTS_AFTER = 2500; // Milliseconds.

/** Mark the page as at rest while nobody moves the mouse or touches the screen: its buttons are then not shown. */
function rest(main) {
  let timer = 0;
  const sleep = () => main.classList.add("resting");
  const wake = () => {
    main.classList.remove("resting");
    clearTimeout(timer);
    timer = setTimeout(sleep, RESTS_AFTER);
  };
  for (const name of ["pointermove", "pointerdown"]) addEventListener(name, wake);
  sleep();
}

const TYPING = "input, select, textarea, summary";

/**
 * Keys that go through a talk. Arrows, Home and End belong to a picture that has the focus; before a click or a Tab
 * has given it the focus they turn the pages, as Page Down always does, and the digits where no guesses are counted.
 */
function listen(deck, picture, talk) {
  const turn = {
    PageDown: deck.next,
    PageUp: deck.back,
    ArrowRight: deck.next,
    ArrowDown: deck.next,
    ArrowLeft: deck.back,
    ArrowUp: deck.back,
    Home: () => deck.go(0),
    End: () => deck.go(deck.last),
    c: deck.contrast,
    f: deck.full,
    Backspace: deck.takeBack,
  };
  let typed = "";
  let timer = 0;
  const digit = (key) => {
    typed += key;
    clearTimeout(timer);
    const arrive = () => (deck.go(Number(typed) - 1), (typed = ""));
    // A second digit may follow where there are that many slides.
    if (Number(typed) * 10 > deck.last + 1) arrive();
    else timer = setTimeout(arrive, 700);
  };
  const counted = countedDigits();
  const guess = (key) => counted.add(key, deck.guess(Number(key)));
  const jump = () => {
    const found = counted.take((number) => number >= 1 && number <= deck.last + 1);
    for (let at = 0; at < (found?.guessed ?? 0); at += 1) deck.takeBack();
    return found && deck.go(found.number - 1);
  };
  const actionOf = (event) => {
    const inside = event.composedPath().includes(picture);
    if (event.key === "N" || (event.key === "n" && !talk)) return deck.notes;
    if (!talk) return null;
    if (event.key === "n") return () => deck.speak(hear);
    if (/^[0-9]$/.test(event.key)) return () => (deck.asks() ? guess(event.key) : digit(event.key));
    if (event.key === "Enter") return deck.asks() && counted.begun() ? jump : null;
    return inside && !/^(Page|Backspace|[cf]$)/.test(event.key) ? null : turn[event.key];
  };
  const onKey = (event) => {
    if (isShortcut(event)) return;
    const target = event.composedPath()[0];
    if (target.matches?.(TYPING) && !event.key.startsWith("Page")) return;
    const act = actionOf(event);
    if (!act) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // The player listens too.
    act();
  };
  const hear = (page) => page.addEventListener("keydown", onKey, { capture: true });
  hear(window);
}

/**
 * What the audience guesses at the slides of a deck, by keys, by clicks on the choices and on the parts in the picture:
 * the deck gets what counts, `said()` is what is said of it, `show()` shows it.
 */
function guessingAt(deck, file, parts) {
  const { slides, title } = file.header;
  const guesses = guessesOf(title, slides);
  const poll = ballot(parts.choices, (choice) => deck.guess(choice));
  deck.asks = () => deck.covered && slides[deck.at].guess.length > 0;
  /** Count a guess; whether it was one of the choices. */
  deck.guess = (choice) => {
    const before = guesses.total(deck.at);
    if (deck.asks()) guesses.add(deck.at, choice);
    deck.look();
    return guesses.total(deck.at) > before;
  };
  /** A click on a part of the picture that is a choice counts it, and does nothing else. */
  deck.click = (event) => {
    const choice = deck.asks() ? choiceAt(event, slides[deck.at]) : 0;
    if (!choice) return;
    event.preventDefault();
    event.stopPropagation();
    deck.guess(choice);
  };
  deck.takeBack = () => (deck.asks() && guesses.takeBack(deck.at), deck.look());
  deck.saveGuesses = guesses.save;
  deck.clearGuesses = () => (guesses.clear(), deck.look());
  return {
    said: () => (slides[deck.at].guess.length ? guessesSaid(guesses.total(deck.at)) : ""),
    show() {
      poll(slides[deck.at].guess, guesses.counts(deck.at), deck.asks());
      parts.ofGuesses?.forEach((one) => (one.hidden = !guesses.any()));
    },
  };
}

/** The frame around the slides: the title; in a line below, what to look at, what it was made from, where one is; the notes. */
function frame(talk) {
  const [main, head, picture, notes, foot] = ["main", "header", "section", "aside", "footer"].map((tag) => element(tag));
  const point = element("p", "point");
  main.className = talk ? "talk" : "";
  const heading = head.appendChild(element("h1"));
  const controls = head.appendChild(element("nav"));
  const live = element("p", "place");
  notes.hidden = true;
  notes.setAttribute("aria-label", say("Notes"));
  if (talk) live.setAttribute("aria-live", "polite");
  const choices = element("div");
  const line = element("div", "line");
  line.append(point, foot, live);
  main.append(head, picture, choices, line, notes);
  document.body.append(main);
  return { main, heading, live, controls, picture, choices, point, notes, foot };
}

/** `refit` hears when it is opened or closed: the picture above it then has less room, or more. */
function facts(foot, { facts: known, made }, refit) {
  const details = element("details");
  const list = element("dl");
  for (const [name, value] of [...Object.entries(known), [say("saved"), made]]) list.append(element("dt", "", name), element("dd", "", value));
  details.append(element("summary", "", say("What this was made from")), list);
  details.ontoggle = refit;
  foot.replaceChildren(details);
}

function button(parent, text, label, act) {
  const made = parent.appendChild(element("button", "", text));
  made.setAttribute("aria-label", label);
  made.onclick = act;
  return made;
}

/** One slide after another: `deck` is what the keys and the buttons drive. */
function deckOf(file, components, parts) {
  const { slides } = file.header;
  const deck = { at: -1, last: slides.length - 1, shown: null, speaker: null, started: performance.now(), began: performance.now() };
  const guessing = guessingAt(deck, file, parts);
  deck.look = () => {
    const said = guessing.said();
    parts.live.textContent = file.header.talk ? [said, `${deck.at + 1} / ${slides.length}`].filter(Boolean).join(" · ") : "";
    guessing.show();
    deck.tell();
  };
  deck.covered = true;
  deck.go = async (to, covered = true) => {
    const next = Math.min(Math.max(to, 0), deck.last);
    if (next === deck.at) return;
    Object.assign(deck, { at: next, began: performance.now() });
    if (file.header.talk) writeScene(next);
    deck.shown?.leave();
    const slide = slides[next];
    parts.heading.textContent = slide.title;
    deck.covered = covered;
    parts.point.textContent = slide.point;
    parts.point.hidden = !slide.point;
    parts.notes.textContent = slide.notes;
    deck.look();
    facts(parts.foot, { ...slide, made: file.header.made }, () => deck.shown?.refit());
    const going = performance.now();
    deck.shown = show(parts.picture, slide, file, components, covered);
    await deck.shown.ready;
    if (deck.at !== next) return; // Another slide was asked for meanwhile.
    document.body.dataset.slide = `${next + 1}`;
    document.body.dataset.took = (performance.now() - going).toFixed(0);
  };
  deck.next = () => {
    if (!deck.shown?.reveal() && !deck.asks()) return deck.go(deck.at + 1);
    deck.covered = false;
    return deck.look();
  };
  deck.back = () => deck.go(deck.at - 1, false);
  /** The notes in a window of their own, which follows the slides and turns them; `hear` has it listened to. */
  deck.speak = (hear) => {
    if (deck.speaker?.open) return deck.speaker.focus();
    deck.speaker = openNotes(deck, file.header.title, hear, slides, () => null); // A file keeps no small pictures.
    return deck.tell();
  };
  deck.tell = () => {
    const [scene, following] = [slides[deck.at], slides[deck.at + 1]];
    const guessed = guessing.said();
    deck.speaker?.follow({ scene, following, at: deck.at, count: slides.length, covered: deck.asks(), guessed });
  };
  deck.contrast = () => parts.main.classList.toggle("contrast");
  deck.full = () => (document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen());
  deck.notes = () => {
    parts.notes.hidden = !parts.notes.hidden;
    deck.shown?.refit();
  };
  return deck;
}

/** The slides of this page; `live`, if any is, makes scenes of them that run a model (../live/scene.js). */
export default async function page(components, live = null) {
  takeColours();
  const [file] = await Promise.all([content(), letters()]);
  file.live = live?.(file.header, components);
  const { talk, slides } = file.header;
  document.documentElement.classList.toggle("framed", isFramed());
  const parts = frame(talk);
  const deck = deckOf(file, components, parts);
  if (talk) {
    button(parts.controls, "←", say("Back"), deck.back);
    button(parts.controls, "→", say("Next"), deck.next);
  }
  if (slides.some(({ notes }) => notes)) button(parts.controls, say("notes"), say("Show or hide the notes"), deck.notes);
  if (slides.some(({ guess }) => guess.length))
    parts.ofGuesses = [
      button(parts.controls, say("save guesses"), say("What the audience guessed, as CSV"), deck.saveGuesses),
      button(parts.controls, say("clear"), say("Forget what the audience guessed"), deck.clearGuesses),
    ];
  listen(deck, parts.picture, talk);
  parts.picture.addEventListener("click", deck.click, true);
  if (talk) {
    rest(parts.main);
    printable(file, components);
    addEventListener("hashchange", () => deck.go(asked()));
  }
  // What is drawn has its colours in it, so the page begins anew in others.
  addEventListener("hashchange", () => takeColours() && location.reload());
  await deck.go(talk ? asked() : 0);
  document.body.dataset.ready = "yes";
  if (talk) setTimeout(prepare, 500); // Half a second of work that no scene is to wait for.
}
