import { HEIGHT, WIDTH, isMisfit, misfitsSaid } from "../studio/studio.js";
import { say } from "../shared/say.js";

const STATES = ["shown", "hide", "omit"]; // What a click goes through.
const MARKS = { shown: "", hide: "?", omit: "×" };
const saidOf = (state) => ({ shown: say("shown"), hide: say("hidden until the next key"), omit: say("left out") })[state];

function element(parent, tag, className, text = "") {
  const made = parent.appendChild(document.createElement(tag));
  Object.assign(made, { className, textContent: text });
  return made;
}

const stateOf = ({ hide, omit }, part) => (omit.includes(part) ? "omit" : hide.includes(part) ? "hide" : "shown");

/** The scene with the part in the state that follows. */
function turned({ hide, omit }, part) {
  const next = STATES[(STATES.indexOf(stateOf({ hide, omit }, part)) + 1) % STATES.length];
  const without = (list) => list.filter((one) => one !== part);
  return { hide: [...without(hide), ...(next === "hide" ? [part] : [])], omit: [...without(omit), ...(next === "omit" ? [part] : [])] };
}

function mark(button, name, state) {
  button.dataset.state = state;
  button.title = say("{part}: {state}", { part: name, state: saidOf(state) });
  button.setAttribute("aria-label", button.title);
}

const areaOf = ([left, top, right, bottom]) => (right - left) * (bottom - top);

/** The boxes of all parts with the buttons that lie on them; where they overlap, the smallest lies above. */
function overlay(picture, places, names) {
  const boxes = Object.keys(names).flatMap((part) => (places[part] ?? []).map((box) => ({ part, box })));
  const ranks = [...boxes].sort((one, other) => areaOf(other.box) - areaOf(one.box));
  return boxes.map((place, at) => {
    const [left, top, right, bottom] = place.box.map((share) => 100 * share);
    const button = element(picture, "button", "part");
    Object.assign(button.style, { left: `${left}%`, top: `${top}%`, width: `${right - left}%`, height: `${bottom - top}%`, zIndex: ranks.indexOf(place) });
    const isFirst = boxes.findIndex(({ part }) => part === place.part) === at; // One stop on the keyboard's way is enough.
    Object.assign(button, { tabIndex: isFirst ? 0 : -1, ariaHidden: isFirst ? null : "true" });
    const sign = element(button, "span", "");
    return { part: place.part, button, write: (text) => (sign.textContent = text) };
  });
}

/** Words below the picture for parts that have no place in it: those that are no place at all, and those that are gone. */
function besides(parent, places, names) {
  const parts = Object.keys(names).filter((part) => !places[part]?.length);
  return parts.map((part) => {
    const button = element(parent, "button", "word");
    button.hidden = !places[part];
    const write = (text) => {
      button.hidden &&= !text;
      button.textContent = [text, names[part]].filter(Boolean).join(" ");
    };
    return { part, button, write };
  });
}

/**
 * The picture of the scene that is edited, with all its parts, on which a click hides a part, leaves it out, and shows it
 * again. `tell(lists)` hears which are then hidden and left out. What it returns shows a scene with its parts by `names`.
 */
export function preview(root, tell) {
  const picture = element(root, "div", "picture");
  picture.style.aspectRatio = `${WIDTH} / ${HEIGHT}`;
  const image = element(picture, "img", "");
  image.alt = "";
  const says = element(picture, "p", "says");
  says.setAttribute("role", "status");
  const misfit = element(root, "p", "misfit");
  const below = element(root, "div", "below");
  element(below, "p", "how", say("Click a part: it is hidden until the next key (?), then left out (×), then shown again."));
  const words = element(below, "div", "words");
  let [shown, buttons] = [null, []];

  function build({ large, places }, names) {
    image.src = large;
    buttons.forEach(({ button }) => button.remove());
    buttons = [...overlay(picture, places, names), ...besides(words, places, names)];
  }
  function describe(scene, names) {
    for (const { part, button, write } of buttons) {
      const state = stateOf(scene, part);
      mark(button, names[part], state);
      write(MARKS[state]);
      button.onclick = () => {
        Object.assign(scene, turned(scene, part));
        describe(scene, names); // At once, before Python has answered.
        tell({ hide: scene.hide, omit: scene.omit });
      };
    }
  }
  return (scene, drawn, names, misfits) => {
    root.hidden = !scene;
    misfit.hidden = !misfits || !isMisfit(misfits);
    if (!misfit.hidden) misfit.textContent = say("On a screen of 1280 × 720 or 1920 × 1080: {misfits}.", { misfits: misfitsSaid(misfits) });
    const there = Boolean(scene && drawn);
    picture.classList.toggle("there", there);
    below.hidden = !there;
    says.textContent = drawn === null ? say("This scene could not be drawn here.") : there ? "" : say("The scene is being drawn …");
    if (!there) return;
    const now = JSON.stringify([drawn.large, names]);
    if (shown !== now) build(drawn, names);
    shown = now;
    describe({ hide: [...scene.hide], omit: [...scene.omit] }, names);
  };
}
