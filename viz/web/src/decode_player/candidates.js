import { grouped, say } from "../shared/say.js";
import { percent, piece } from "./player.js";

const ROWS = 8;

function buildRow(onPick, onForbid) {
  const row = piece("div", "candidate");
  const name = piece("button", "name");
  const bar = piece("span", "bar");
  const drawn = piece("span", "drawn");
  const fill = piece("span", "fill");
  const share = piece("span", "share");
  const forbid = piece("button", "forbid", "×");
  bar.append(fill, drawn, share);
  row.append(name, bar, forbid);
  const view = { row, name, drawn, fill, share, forbid, candidate: null };
  name.onclick = () => view.candidate && onPick(view.candidate);
  forbid.onclick = () => view.candidate && onForbid(view.candidate);
  return view;
}

/** What the model considered: a bar each. Choose one to go on from it, × to forbid it. */
export function buildCandidates(root, onPick, onForbid) {
  const box = piece("div", "candidates");
  const title = piece("div", "title", say("next-token candidates · click one to go on from it"));
  const rows = Array.from({ length: ROWS }, () => buildRow(onPick, onForbid));
  const names = rows.map(({ name }) => name);
  box.append(title, ...rows.map(({ row }) => row));
  box.onkeydown = (event) => {
    const at = names.indexOf(event.target);
    const to = names[at + ({ ArrowUp: -1, ArrowDown: 1 }[event.key] ?? NaN)];
    if (at < 0 || !to?.checkVisibility()) return;
    event.preventDefault();
    to.focus();
  };
  root.append(box);
  return { rows, title };
}

/** The step's candidates; a chosen token that is not among the best takes the last row. */
function shown({ candidates, chosen }) {
  const best = candidates.slice(0, ROWS);
  if (best.some(({ id }) => id === chosen.id)) return best;
  return [...best.slice(0, ROWS - 1), chosen];
}

function fillRow(view, candidate, chosen) {
  view.candidate = candidate ?? null;
  view.row.style.visibility = candidate ? "visible" : "hidden";
  if (!candidate) return;
  const { text, p, drawn, forbidden } = candidate;
  const own = candidate.id === chosen.id;
  view.name.textContent = text;
  view.row.classList.toggle("chosen", own);
  view.row.classList.toggle("forbidden", Boolean(forbidden));
  view.fill.style.setProperty("--share", p);
  view.drawn.style.setProperty("--share", drawn ?? 0);
  view.share.style.setProperty("--share", Math.max(p, drawn ?? 0));
  view.drawn.style.display = drawn == null ? "none" : "";
  const rank = () => grouped(chosen.rank);
  view.share.textContent = own && chosen.rank > ROWS ? say("{share} · rank {rank}", { share: percent(p), rank: rank() }) : percent(p);
  const share = drawn == null ? percent(p) : say("{share}, drawn with {drawn}", { share: percent(p), drawn: percent(drawn) });
  const label = own ? say("{text}, {share}, chosen", { text, share }) : say("{text}, {share}: go on from it", { text, share });
  view.name.setAttribute("aria-label", label);
  view.name.title = own ? say("Chosen: {share}", { share }) : say("Go on from “{text}”", { text });
  view.forbid.title = say("Never write “{text}”", { text });
  view.forbid.setAttribute("aria-label", say("Forbid {text}", { text }));
}

export function showCandidates(view, step) {
  const found = shown(step);
  view.rows.forEach((row, i) => fillRow(row, found[i], step.chosen));
}
