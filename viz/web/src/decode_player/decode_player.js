import { lookup } from "../shared/picture.js";
import { isShortcut, listenToKeys, tellStep } from "../shared/events.js";
import { cellAt } from "../shared/grid.js";
import { mounted, unmount } from "../shared/mounted.js";
import { unpack } from "../shared/packed.js";
import { grouped, say } from "../shared/say.js";
import { SURPRISING, buildMatrix, buildText, cellInWords, layMatrix, measure, showMatrix, showText, strongestKey } from "./pictures.js";
import { appendSentence, buildPlayer, percent, piece } from "./player.js";

/** "3.1", "3.mean" or "aligning" (as in the address, counted from 1) -> layer and head from 0, head null for the mean. */
function resolve(choice, aligning) {
  if (choice === "aligning") return { layer: aligning[0], head: aligning[1] };
  const [layer, head] = choice.split(".");
  return { layer: layer - 1, head: head === "mean" ? null : head - 1 };
}

/** The bytes of a map: those of a layer's heads, then those of their mean. */
const sizeOf = ([layers, heads, queries, keys]) => layers * (heads + 1) * queries * keys;

/** The weights (queries x keys, bytes) of one head, or the mean over a layer's heads. */
function chosenWeights(bytes, [, heads, queries, keys], choice, aligning) {
  const { layer, head } = resolve(choice, aligning);
  const size = queries * keys;
  const at = layer * (heads + 1) + (head ?? heads);
  return bytes.subarray(at * size, (at + 1) * size);
}

function headName(choice, aligning) {
  const { layer, head } = resolve(choice, aligning);
  if (head === null) return say("layer {layer}, mean of heads", { layer: layer + 1 });
  return say("layer {layer}, head {head}", { layer: layer + 1, head: head + 1 });
}

/** A select of every head and every layer's mean; `aligning` adds the best aligning head on top. */
function headSelect(label, [layers, heads], chosen, aligning, onChange) {
  const select = piece("select", "");
  select.setAttribute("aria-label", label);
  const option = (value, text) => {
    const made = piece("option", "", text);
    made.value = value;
    return made;
  };
  if (aligning) select.append(option("aligning", say("best aligning: {head}", { head: headName("aligning", aligning) })));
  for (let layer = 1; layer <= layers; layer += 1) {
    const group = document.createElement("optgroup");
    group.label = say("Layer {layer}", { layer });
    for (const head of ["mean", ...Array(heads).keys()]) {
      const value = `${layer}.${typeof head === "number" ? head + 1 : head}`;
      group.append(option(value, headName(value)));
    }
    select.append(group);
  }
  select.value = chosen;
  select.onchange = () => onChange(select.value);
  return select;
}

const CANDIDATE_ROWS = 8;

function buildCandidate(onPick, onForbid) {
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
function buildCandidates(root, onPick, onForbid) {
  const box = piece("div", "candidates");
  const title = piece("div", "title", say("next-token candidates · click one to go on from it"));
  const rows = Array.from({ length: CANDIDATE_ROWS }, () => buildCandidate(onPick, onForbid));
  const names = rows.map(({ name }) => name);
  box.append(title, ...rows.map(({ row }) => row));
  box.onkeydown = (event) => {
    const at = names.indexOf(event.target);
    const to = names[at + ({ ArrowUp: -1, ArrowDown: 1 }[event.key] ?? NaN)];
    if (at < 0 || !to?.checkVisibility() || isShortcut(event)) return;
    event.preventDefault();
    to.focus();
  };
  root.append(box);
  return { rows, title };
}

/** The step's candidates; a chosen token that is not among the best takes the last row. */
function candidatesShown({ candidates, chosen }) {
  const best = candidates.slice(0, CANDIDATE_ROWS);
  if (best.some(({ id }) => id === chosen.id)) return best;
  return [...best.slice(0, CANDIDATE_ROWS - 1), chosen];
}

function showCandidate(view, candidate, chosen) {
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
  view.share.textContent = own && chosen.rank > CANDIDATE_ROWS ? say("{share} · rank {rank}", { share: percent(p), rank: rank() }) : percent(p);
  const share = drawn == null ? percent(p) : say("{share}, drawn with {drawn}", { share: percent(p), drawn: percent(drawn) });
  const label = own ? say("{text}, {share}, chosen", { text, share }) : say("{text}, {share}: go on from it", { text, share });
  view.name.setAttribute("aria-label", label);
  view.name.title = own ? say("Chosen: {share}", { share }) : say("Go on from “{text}”", { text });
  view.forbid.title = say("Never write “{text}”", { text });
  view.forbid.setAttribute("aria-label", say("Forbid {text}", { text }));
}

function showCandidates(view, step) {
  const found = candidatesShown(step);
  view.rows.forEach((row, i) => showCandidate(row, found[i], step.chosen));
}

const LABEL_ROOM = 130; // Pixels left of the matrix for the name of its row.

/** All steps of one decoding, drawn once; `view.send(name, value)` tells Python. */
function build(root, view, header, body) {
  const { cross, own, aligning, steps } = header;
  const bytes = { cross: body.subarray(0, sizeOf(cross.shape)), own: body.subarray(sizeOf(cross.shape)) };
  const size = steps.length;
  root.className = "decode-player";
  const heads = { cross: cross.chosen, own: own.chosen };
  const choose = (kind) => (value) => {
    heads[kind] = value;
    take();
    redraw();
    view.send("view", heads);
  };
  const text = buildText(root, header);
  const controls = piece("div", "controls"); // Under the sentence, in sight on a low screen too.
  root.append(controls);
  const legend = piece("div", "legend");
  const words = { fed: piece("b", "fed"), predicted: piece("b", "predicted") };
  const crossHead = piece("span", "head", say("{attention}:", { attention: cross.name }));
  crossHead.append(" ", headSelect(say("Cross-attention head"), cross.shape, heads.cross, aligning, choose("cross")));
  const row = piece("span", "");
  const fields = { fed: "{fed}", predicted: "{predicted}" };
  appendSentence(row, say("fed in {fed} → predicted {predicted}", fields), words);
  const unwritten = piece("span", "");
  if (steps.some(({ chosen }) => chosen.p < SURPRISING)) {
    const below = say("{surprising}: below {share}%", { surprising: "{surprising}", share: 100 * SURPRISING });
    appendSentence(unwritten, below, { surprising: piece("span", "wave", say("surprising")) });
    unwritten.append(piece("span", "between"));
  }
  unwritten.append(piece("span", "swatch"), say("not written yet, masked"));
  legend.append(crossHead, row, unwritten);
  root.append(legend);
  const below = piece("div", "below");
  root.append(below);
  const ownSelect = headSelect(say("Decoder self-attention head"), own.shape, heads.own, null, choose("own"));
  const matrix = buildMatrix(below, ownSelect);
  const candidates = buildCandidates(
    below,
    ({ id }) => view.send("pick", { step: player.step, id }),
    ({ id }) => view.send("forbid", { step: player.step, id }),
  );
  if (steps.some(({ candidates: found }) => found.some(({ drawn }) => drawn != null)))
    candidates.title.textContent = say("next-token candidates · outlined: as it was drawn from");

  let weights;
  let table;
  let colours;
  const take = () => {
    weights = {
      cross: chosenWeights(bytes.cross, cross.shape, heads.cross, aligning),
      own: chosenWeights(bytes.own, own.shape, heads.own, aligning),
    };
  };
  const show = (step) => {
    const started = performance.now();
    const keys = header.source.length;
    showText(text, step, weights.cross.subarray(step * keys, (step + 1) * keys), table, header.inks);
    showMatrix(matrix, step, weights.own, size, table, colours);
    showCandidates(candidates, steps[step]);
    words.fed.textContent = header.target[step].text;
    words.predicted.textContent = header.target[step + 1].text;
    matrix.label.textContent = `${header.target[step].text} →`;
    matrix.label.style.top = `${(step + 0.5) * matrix.height}px`;
    const cell = [step, strongestKey(weights.own, size, step)];
    matrix.reading.textContent = cellInWords(weights.own, size, cell, step, header.target);
    const reading = { head: headName(heads.own, aligning), reading: matrix.reading.textContent };
    matrix.canvas.setAttribute("aria-label", say("Decoder self-attention, {head}: {reading}", reading));
    root.dataset.step = step + 1;
    tellStep(step);
    root.dataset.drew = (performance.now() - started).toFixed(2);
  };
  const player = buildPlayer(root, controls, steps, show, (step) => view.send("step", step));
  text.targets.slice(1).forEach((span, step) => {
    span.onclick = () => {
      player.pause();
      player.go(step, null);
      view.send("word", step);
    };
  });
  const redraw = () => player.step >= 0 && show(player.step);
  matrix.canvas.onmousemove = (event) => {
    const cell = cellAt(event.offsetX, event.offsetY, matrix, size, size);
    if (cell) matrix.reading.textContent = cellInWords(weights.own, size, cell, player.step, header.target);
  };
  matrix.canvas.onmouseleave = redraw;
  const lay = () => {
    layMatrix(matrix, size, Math.max(matrix.frame.clientWidth - LABEL_ROOM, 80));
    measure(text);
    redraw();
  };
  root.picture = { of: root, without: ".player, .where, .forbid" };
  root.film = { count: steps.length, seconds: 0.7, show: (step) => player.go(step, null) };
  const observer = new ResizeObserver(lay);
  const forget = listenToKeys(root, player, steps.length - 1);
  take();
  view.colour = (look) => {
    table = lookup(look.stops, look.masked, look.scale);
    colours = look;
  };
  view.colour(header);
  layMatrix(matrix, size, Math.max(matrix.frame.clientWidth - LABEL_ROOM, 80));
  player.go(header.start, null);
  observer.observe(text.text);
  observer.observe(matrix.frame);
  return { redraw, player, dispose: () => (observer.disconnect(), forget(), player.stop(), tellStep(null)) };
}

/** Go where Python says, unless it only says again what it was told: one may be further on meanwhile. */
function follow(view, start) {
  const from = view.start ?? start;
  view.start = start;
  if (start === from) return;
  const answered = view.told?.lastIndexOf(start) ?? -1;
  if (answered < 0) view.player.go(start, null);
  else view.told.splice(0, answered + 1);
}

export default function decodePlayer({ data, parentElement, setTriggerValue }) {
  const { header, body } = unpack(data);
  const view = mounted(parentElement, header.id, (root, made) => build(root, made, header, body));
  view.send = (name, value) => {
    if (name === "step" || name === "word") view.told = [...(view.told ?? []), value];
    setTriggerValue(name, value);
  };
  view.colour(header);
  follow(view, header.start);
  view.redraw();
  return () => unmount(parentElement);
}
