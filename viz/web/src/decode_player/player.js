import { drawn } from "../shared/picture.js";
import { say, written } from "../shared/say.js";

/** An element with a class and a text; a token is data, so it is only ever set as text. */
export function piece(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

/** Append a sentence in which fields, {name}, are nodes, in the order that its language has them. */
export function appendSentence(parent, text, nodes) {
  text.split(/\{(\w+)\}/).forEach((part, i) => parent.append(i % 2 ? nodes[part] : part));
}

export function percent(share) {
  if (share === 0) return written("0%");
  return written(share < 0.0005 ? "<0.1%" : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`);
}

/** A number as it is printed, with a minus sign as wide as its digits. */
const signed = (value) => written(value.toFixed(2));

const SPEEDS = [1, 2, 5, 10];
const MAX_TOWERS_APART = 40; // More have no gap between them, so that they are never wider than a phone.
const RESTS = 400; // Milliseconds without a key before a step counts as chosen.

function buildSkyline(steps, onStep) {
  const skyline = piece("div", "skyline");
  skyline.setAttribute("aria-hidden", "true");
  const bars = steps.map(({ chosen }, i) => {
    const bar = piece("span", "tower");
    bar.style.setProperty("--height", `${Math.max(4, 100 * chosen.p)}%`);
    bar.title = `${chosen.text} ${percent(chosen.p)}`;
    bar.onclick = () => onStep(i);
    return bar;
  });
  skyline.classList.toggle("crowded", bars.length > MAX_TOWERS_APART);
  skyline.append(...bars);
  return { skyline, bars };
}

/** The four corners of a screen, drawn: not every font has a sign for them. */
function corners() {
  const icon = drawn("svg", { viewBox: "0 0 16 16", "aria-hidden": true });
  icon.append(drawn("path", { d: "M1.5 6V1.5H6M10 1.5H14.5V6M14.5 10V14.5H10M6 14.5H1.5V10" }));
  return icon;
}

/** Play, slider, speed and where one is, in `place`. `show(step)` draws; `settle(step)` hears where one comes to rest. */
export function buildPlayer(root, place, steps, show, settle) {
  const box = piece("div", "player");
  const play = piece("button", "play");
  const track = piece("div", "track");
  const slider = piece("input", "");
  Object.assign(slider, { type: "range", min: 0, max: steps.length - 1, step: 1 });
  slider.setAttribute("aria-label", say("Decoding step"));
  const speed = piece("select", "speed");
  speed.setAttribute("aria-label", say("Speed"));
  for (const one of SPEEDS) speed.append(piece("option", "", say("{count} a second", { count: one })));
  speed.selectedIndex = 1;
  const wide = piece("button", "wide");
  wide.append(corners());
  wide.title = say("Full screen (f)");
  wide.setAttribute("aria-label", say("Full screen"));
  const where = piece("div", "where");
  const player = { step: -1, timer: 0, rest: 0, bars: [] };

  player.go = (step, rests = RESTS) => {
    const to = Math.min(Math.max(step, 0), steps.length - 1);
    if (to !== player.step) {
      player.step = to;
      slider.value = to;
      player.bars.forEach((bar, i) => (bar.dataset.state = i === to ? "now" : i < to ? "past" : "future"));
      describe(slider, where, steps, to);
      show(to);
    }
    clearTimeout(player.rest);
    if (rests !== null) player.rest = setTimeout(() => settle(to), rests);
  };
  player.pause = () => {
    if (!player.timer) return;
    clearInterval(player.timer);
    player.timer = 0;
    name(play, false);
    settle(player.step);
  };
  player.play = () => {
    clearTimeout(player.rest);
    if (player.step === steps.length - 1) player.go(0, null);
    name(play, true);
    player.timer = setInterval(() => {
      player.go(player.step + 1, null);
      if (player.step === steps.length - 1) player.pause();
    }, 1000 / SPEEDS[speed.selectedIndex]);
  };
  player.toggle = () => (player.timer ? player.pause() : player.play());
  player.stop = () => (clearInterval(player.timer), clearTimeout(player.rest));

  const { skyline, bars } = buildSkyline(steps, (step) => player.go(step, 0));
  player.bars = bars;
  play.onclick = player.toggle;
  slider.oninput = () => player.go(Number(slider.value));
  speed.onchange = () => player.timer && (clearInterval(player.timer), player.play());
  wide.onclick = () => (document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen());
  player.wide = wide.onclick;
  name(play, false);
  track.append(skyline, slider);
  box.append(play, track, speed, wide);
  place.append(box, where);
  return player;
}

function name(play, playing) {
  const sign = piece("span", "sign", playing ? "❚❚" : "▶");
  sign.setAttribute("aria-hidden", "true");
  play.replaceChildren(sign, playing ? say("Pause") : say("Play"));
}

function describe(slider, where, steps, step) {
  const { total, chosen } = steps[step];
  const at = { step: step + 1, steps: steps.length };
  slider.setAttribute("aria-valuetext", say("step {step} of {steps}: {token}", { ...at, token: chosen.text }));
  const values = { ...at, total: signed(total), mean: signed(total / (step + 1)) };
  where.textContent = say("step {step} of {steps} · log-probability so far {total}, {mean} a token", values);
}
