import { LANGUAGE, say } from "../shared/say.js";
import { add } from "./ballot.js";

const STYLE = `
  body { font: 22px/1.5 system-ui, sans-serif; margin: 2rem 2.5rem; color-scheme: light dark; color: CanvasText; background: Canvas; }
  header, footer { display: flex; justify-content: space-between; gap: 2rem; opacity: 0.75; font-size: 18px; }
  header { font-variant-numeric: tabular-nums; }
  h1 { font-size: 30px; line-height: 1.25; margin: 1rem 0 0.5rem; }
  .point { font-weight: 600; margin: 0 0 1rem; }
  .notes { white-space: pre-wrap; max-width: 40em; margin: 0 0 1.5rem; }
  .late { color: light-dark(#a34a00, #ffb37a); font-weight: 600; }
  footer { border-top: 1px solid GrayText; padding-top: 0.8rem; }
  footer img { width: 18rem; border: 1px solid GrayText; border-radius: 0.3rem; }
  footer img:not([src]) { display: none; }`;

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

/** Of the talk so far: how long the scenes up to this one were to take, where their speaker has said so; in seconds. */
const plannedUntil = (scenes, at) => 60 * scenes.slice(0, at + 1).reduce((sum, { minutes }) => sum + minutes, 0);

/**
 * The speaker's window: what is said to the scene on the screen, what comes next with its picture, the time, and the
 * time that a scene is to take. It follows `show`; `pictureOf(index)` is what was kept of a scene.
 */
export function openNotes(show, title, listen, scenes, pictureOf) {
  const opened = window.open("", "attenscope-notes", "width=900,height=760");
  if (!opened) return null; // Refused by the browser.
  const page = opened.document;
  page.title = say("Notes · {title}", { title: title || "Attenscope" });
  page.documentElement.lang = document.documentElement.lang;
  page.body.replaceChildren();
  add(page.body, "style", "").textContent = STYLE;
  const top = add(page.body, "header", "");
  const [where, aim, time] = [add(top, "span", "where"), add(top, "span", "aim"), add(top, "span", "time")];
  const main = add(page.body, "main", "");
  main.setAttribute("aria-live", "polite");
  const parts = { title: add(main, "h1", "title"), point: add(main, "p", "point"), notes: add(main, "p", "notes") };
  const foot = add(page.body, "footer", "");
  const [next, picture] = [add(foot, "span", "next"), add(foot, "img", "")];
  picture.alt = "";
  let [shown, pictured] = [-1, ""];
  const tick = () => {
    const now = new Date().toLocaleTimeString(LANGUAGE, { hour: "2-digit", minute: "2-digit" });
    const since = (performance.now() - show.started) / 1000;
    time.textContent = say("{now} · {time} since the start", { now, time: clock(since) });
    const minutes = scenes[shown]?.minutes;
    const spent = (performance.now() - show.began) / 1000;
    const ahead = plannedUntil(scenes, shown) - since;
    const facts = { spent: clock(spent), minutes: clock(60 * minutes), time: clock(Math.abs(ahead)) };
    aim.textContent = !minutes ? "" : ahead < 0 ? say("{spent} of {minutes} · {time} behind", facts) : say("{spent} of {minutes} · {time} left until the next scene", facts);
    aim.classList.toggle("late", ahead < 0);
  };
  const timer = setInterval(tick, 1000);
  /** The picture of the scene that follows, if it was rehearsed. */
  const showNext = async (at) => {
    shown = at;
    const kept = await pictureOf(at + 1);
    if (shown !== at) return;
    URL.revokeObjectURL(pictured);
    pictured = kept ? URL.createObjectURL(kept.small) : "";
    if (pictured) picture.src = pictured;
    else picture.removeAttribute("src");
  };
  listen(opened);
  return {
    follow({ scene, at, count, following, drawing, covered, guessed }) {
      const place = say("Scene {number} of {count}", { number: at + 1, count });
      where.textContent = [place, guessed, drawing && say("being drawn"), covered && say("something is still hidden")].filter(Boolean).join(" · ");
      parts.title.textContent = scene.title;
      parts.point.textContent = scene.point;
      parts.notes.textContent = scene.notes;
      const last = () => (following ? say("Next: {title}", { title: following.title }) : say("This is the last scene"));
      next.textContent = covered ? say("Next key: reveal") : last();
      if (at !== shown) showNext(at);
      tick();
    },
    close: () => (clearInterval(timer), URL.revokeObjectURL(pictured), opened.close()),
    focus: () => opened.focus(),
    get open() {
      return !opened.closed;
    },
  };
}
