import { library } from "./inflate.js";
import { cover } from "../../components/presenter/parts.js";
import { element } from "./element.js";
import { followed, hears, stateOf } from "./follow.js";

const NEEDS_MODEL = "That needs the running model: open this view in Attenscope.";

/** A component in a shadow root of its own, as it stands in the app, so that no style meets another's. */
function component(host, part, view) {
  const root = host.attachShadow({ mode: "open" });
  root.append(element("style", "", view.file.header.styles[part.name]));
  const parent = root.appendChild(element("div"));
  const mount = view.components[part.name];
  let leave = () => {};
  const draw = () => {
    leave = mount({ data: followed(part, view), parentElement: parent, setTriggerValue: send });
  };
  const send = (name, value) => {
    if (part.name === "stage" && (name === "pick" || name === "forbid")) view.says.textContent = NEEDS_MODEL;
    else if (hears(part, view, name, value)) view.redraw();
  };
  view.drawn.push(draw);
  draw();
  return () => leave();
}

async function chart(host, { figure, alt }) {
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", alt);
  host.style.minHeight = `${figure.layout.height ?? 0}px`;
  const plotly = await library();
  if (!host.isConnected) return () => {}; // Another slide was asked for meanwhile.
  await plotly.newPlot(host, figure.data, figure.layout, { displayModeBar: false, responsive: true });
  return () => plotly.purge(host);
}

function words(host, { text, size }) {
  host.classList.add("words", size);
  host.dir = "auto";
  host.textContent = text;
  return () => {};
}

const MOUNT = { component, chart, words };

async function mountAll(parent, parts, view) {
  for (const part of parts) {
    if (part.is === "columns") {
      const row = parent.appendChild(element("div", "columns"));
      row.style.setProperty("--shares", part.shares.map((share) => `minmax(0, ${share}fr)`).join(" "));
      for (const column of part.columns) await mountAll(row.appendChild(element("div", "column")), column, view);
      continue;
    }
    const host = parent.appendChild(element("div", "part"));
    host.dataset.role = part.role;
    if (view.covered && view.slide.hide.includes(part.role)) host.classList.add("covered");
    view.leaving.push(await MOUNT[part.is](host, part, view));
  }
}

/** Show `slide` in `place`; `reveal()` uncovers what it hides and says whether there was anything, `leave()` ends it. */
export async function show(place, slide, file, components, covered) {
  const says = element("p", "says");
  says.setAttribute("role", "status");
  const view = { slide, file, components, covered, says, drawn: [], leaving: [], state: stateOf(slide, file) };
  view.redraw = () => view.drawn.forEach((draw) => draw());
  const inside = element("div", "slide");
  place.replaceChildren(inside);
  if (slide.missing) inside.append(element("p", "missing", slide.missing));
  await mountAll(inside, slide.parts, view);
  cover(document, covered ? slide.hide : [], slide.omit, ""); // What stands inside a component, as in the app.
  inside.append(says);
  if (slide.point) inside.append(element("p", "point", slide.point));
  return {
    leave: () => view.leaving.forEach((leave) => leave()),
    reveal: () => {
      if (!view.covered || !slide.hide.length) return false;
      view.covered = false;
      inside.querySelectorAll(".covered").forEach((part) => part.classList.remove("covered"));
      cover(document, [], slide.omit, "");
      return true;
    },
  };
}
