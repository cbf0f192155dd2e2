import { say } from "../shared/say.js";
import { add } from "./add.js";

const STYLE = `
  body { font: 22px/1.5 system-ui, sans-serif; margin: 2rem 2.5rem; color-scheme: light dark; color: CanvasText; background: Canvas; }
  header, footer { display: flex; justify-content: space-between; gap: 2rem; opacity: 0.75; font-size: 18px; }
  header { font-variant-numeric: tabular-nums; }
  h1 { font-size: 30px; line-height: 1.25; margin: 1rem 0 0.5rem; }
  .point { font-weight: 600; margin: 0 0 1rem; }
  .notes { white-space: pre-wrap; max-width: 40em; margin: 0 0 1.5rem; }
  footer { border-top: 1px solid GrayText; padding-top: 0.8rem; }`;

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

/** The speaker's window: what is said to the scene on the screen, what comes next, the time. It follows `show`. */
export function openNotes(show, title, listen) {
  const opened = window.open("", "attenscope-notes", "width=900,height=640");
  if (!opened) return null; // Refused by the browser.
  const page = opened.document;
  page.title = say("Notes · {title}", { title: title || "Attenscope" });
  page.documentElement.lang = document.documentElement.lang;
  page.body.replaceChildren();
  add(page.body, "style", "").textContent = STYLE;
  const top = add(page.body, "header", "");
  const [where, time] = [add(top, "span", "where"), add(top, "span", "time")];
  const main = add(page.body, "main", "");
  main.setAttribute("aria-live", "polite");
  const parts = { title: add(main, "h1", "title"), point: add(main, "p", "point"), notes: add(main, "p", "notes") };
  const next = add(add(page.body, "footer", ""), "span", "next");
  const tick = () => {
    const now = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    time.textContent = say("{now} · {time} since the start", { now, time: clock((performance.now() - show.started) / 1000) });
  };
  const timer = setInterval(tick, 1000);
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
      tick();
    },
    close: () => (clearInterval(timer), opened.close()),
    focus: () => opened.focus(),
    get open() {
      return !opened.closed;
    },
  };
}
