import { say } from "../shared/say.js";
import { element } from "../shared/element.js";

const A_STOP = 700; // Milliseconds while playing.
const RESTS = 400; // Milliseconds without a key before a stop counts as chosen.

/** What stands above and below the slider: a bar as high as the model's belief, and the stop's name. */
function buildTicks(moments, go) {
  const ticks = element("div", "ticks");
  ticks.setAttribute("aria-hidden", "true");
  const most = Math.max(...moments.map(({ belief }) => belief));
  const made = moments.map(({ tick, belief, name }, i) => {
    const mark = element("span", "tick");
    const bar = element("span", "bar");
    bar.style.setProperty("--share", belief === null ? 0.05 : Math.max(0.05, belief / most));
    mark.append(bar, element("span", "name", tick));
    mark.title = name;
    mark.style.left = moments.length > 1 ? `${(100 * i) / (moments.length - 1)}%` : "0";
    mark.onclick = () => go(i, 0);
    return mark;
  });
  ticks.append(...made);
  return { ticks, made };
}

/** Play, a slider and its ticks. `show(stop)` draws; `settle(stop)` hears where one has come to rest. */
export function buildSlider(root, moments, show, settle) {
  root.className = "player";
  const last = moments.length - 1;
  const again = moments[0].belief === null ? say("Play from the beginning") : say("Play from random weights");
  const play = element("button", "play", "");
  const slider = element("input", "");
  Object.assign(slider, { type: "range", min: 0, max: last, step: 1 });
  slider.setAttribute("aria-label", say("Training step"));
  const player = { step: -1, timer: 0, rest: 0 };
  player.go = (stop, rests = RESTS) => {
    const to = Math.min(Math.max(stop, 0), last);
    if (to !== player.step) {
      player.step = to;
      slider.value = to;
      slider.setAttribute("aria-valuetext", moments[to].name);
      made.forEach((mark, i) => mark.classList.toggle("now", i === to));
      playing(player.timer);
      show(to);
    }
    clearTimeout(player.rest);
    if (rests !== null) player.rest = setTimeout(() => settle(to), rests);
  };
  const { ticks, made } = buildTicks(moments, player.go);
  const playing = (on) => {
    play.textContent = on ? `❚❚ ${say("Pause")}` : `▶ ${player.step === last ? again : say("Play")}`;
  };
  player.pause = () => {
    clearInterval(player.timer);
    player.timer = 0;
    playing(false);
    settle(player.step);
  };
  player.play = () => {
    clearTimeout(player.rest);
    if (player.step === last) player.go(0, null);
    playing(true);
    player.timer = setInterval(() => {
      player.go(player.step + 1, null);
      if (player.step === last) player.pause();
    }, A_STOP);
  };
  player.toggle = () => (player.timer ? player.pause() : player.play());
  player.stop = () => (clearInterval(player.timer), clearTimeout(player.rest));
  play.onclick = player.toggle;
  slider.oninput = () => player.go(Number(slider.value));
  playing(false);
  const track = element("div", "track");
  track.append(ticks, slider);
  root.append(play, track);
  return player;
}
