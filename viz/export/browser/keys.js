import { countedDigits } from "../../web/src/talk/ballot.js";

const AFTER = 2500; // Milliseconds.

/** Mark the page as at rest while nobody moves the mouse or touches the screen: its buttons are then not shown. */
export function rest(main) {
  let timer = 0;
  const sleep = () => main.classList.add("resting");
  const wake = () => {
    main.classList.remove("resting");
    clearTimeout(timer);
    timer = setTimeout(sleep, AFTER);
  };
  for (const name of ["pointermove", "pointerdown"]) addEventListener(name, wake);
  sleep();
}

const TYPING = "input, select, textarea, summary";

/**
 * Keys that go through a talk. Arrows, Home and End belong to a picture that has the focus; before a click or a Tab
 * has given it the focus they turn the pages, as Page Down always does, and the digits where no guesses are counted.
 */
export function listen(deck, picture, talk) {
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
    if (event.ctrlKey || event.metaKey || event.altKey) return;
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
