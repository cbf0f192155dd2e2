import { ON_STAGE, partRules, roots } from "../../web/src/stage/parts.js";
import { say } from "../../web/src/shared/say.js";
import { element } from "../../web/src/shared/element.js";
import { stateOf } from "../../web/src/slide/follow.js";
import { mountAll } from "../../web/src/slide/slide.js";

const PAGE = 690; // Pixels of a sheet's height, as page.css gives its width: A4 lying, with its margins.
const LOWEST_PRINTED = 170; // Pixels of a picture.
const HIGHEST_PRINTED = 400;

/** One scene as a page: its title, all of its picture, what to look at, and what is said to it. */
function sheet(slide, file, components, picture) {
  const page = element("article");
  const inside = element("div", "slide");
  const view = { slide, file, components, state: stateOf(slide, file), drawn: [], charts: [], leaving: [], live: null };
  Object.assign(view, { redraw() {}, run() {} });
  page.append(element("h2", "", slide.title), inside);
  inside.style.setProperty("--picture", `${picture}px`);
  if (slide.guess.length) page.append(element("p", "point", say("Guess first: {choices}", { choices: slide.guess.join(" · ") })));
  if (slide.point) page.append(element("p", "point", slide.point));
  if (slide.notes) page.append(element("p", "notes", slide.notes));
  return { page, view, mount: () => (slide.missing ? inside.append(element("p", "missing", slide.missing)) : mountAll(inside, slide.parts, view)) };
}

/** What is left out of a scene inside its components; what is hidden on the stage is printed. */
function dress(page, { omit }) {
  const style = new CSSStyleSheet();
  style.replaceSync(partRules([], omit, ON_STAGE));
  for (const root of roots(page)) if (root.host) root.adoptedStyleSheets = [...root.adoptedStyleSheets, style];
}

function lay(box, slide, file, components, picture) {
  const made = sheet(slide, file, components, picture);
  box.append(made.page);
  made.mount();
  dress(made.page, slide);
  return made;
}

/** The scene as high as a sheet: its picture takes what title, words and notes leave; long notes make all smaller. */
function fitted(box, slide, file, components) {
  let made = lay(box, slide, file, components, HIGHEST_PRINTED);
  const over = made.page.scrollHeight - PAGE;
  if (over > 0) {
    made.page.remove();
    made.view.leaving.forEach((leave) => leave());
    made = lay(box, slide, file, components, Math.max(LOWEST_PRINTED, HIGHEST_PRINTED - over));
  }
  if (made.page.scrollHeight > PAGE) made.page.style.zoom = PAGE / made.page.scrollHeight;
  return made;
}

/** Print a talk as a hand-out, a page a scene. All is laid out before the sheets are: nothing here waits. */
export function printable(file, components) {
  let sheets = [];
  let box = null;
  const begin = () => {
    box ??= document.body.appendChild(element("div", "handout"));
    sheets = file.header.slides.map((slide) => fitted(box, slide, file, components));
    sheets.forEach(({ view }) => view.charts.forEach((draw) => draw().then((leave) => view.leaving.push(leave))));
  };
  const end = () => {
    sheets.forEach(({ view }) => view.leaving.forEach((leave) => leave()));
    box?.remove();
    [sheets, box] = [[], null];
  };
  addEventListener("beforeprint", begin);
  addEventListener("afterprint", end);
}
