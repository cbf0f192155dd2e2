import { element, shadowed } from "../web/src/shared/element.js";
import { unpack } from "../web/src/shared/packed.js";
import { say } from "../web/src/shared/say.js";
import { leaves, stateOf } from "../web/src/slide/follow.js";
import { NEEDS_MODEL, mountAll } from "../web/src/slide/slide.js";

/** [red, green, blue, alpha] of a computed colour, 0 to 255 and 0 to 1. */
function channels(colour) {
  const found = colour.match(/[\d.]+/g)?.map(Number) ?? [];
  return colour.startsWith("rgb") ? [...found.slice(0, 3), found[3] ?? 1] : null;
}

const lightness = (/** @type {number[]} */ [red, green, blue]) => (0.299 * red + 0.587 * green + 0.114 * blue) / 255;

/** "light" or "dark": the first background behind an element says it, or else the colour of its text. */
function themeOf(el) {
  for (let at = el.parentNode ?? el; at; at = at.parentNode ?? at.host) {
    if (!(at instanceof Element)) continue;
    const colour = channels(getComputedStyle(at).backgroundColor);
    if (colour && colour[3] > 0.5) return lightness(colour) < 0.5 ? "dark" : "light";
  }
  const ink = channels(getComputedStyle(el).color);
  return ink && lightness(ink) > 0.5 ? "dark" : "light";
}

/** Call `changed()` whenever the page may have another theme; returns what ends it. */
function watchTheme(changed) {
  const soon = () => requestAnimationFrame(changed);
  const observer = new MutationObserver(soon);
  const attributes = { attributes: true, attributeFilter: ["class", "style", "theme", "data-theme", "data-jp-theme-light", "data-vscode-theme-kind"] };
  for (const node of [document.documentElement, document.body]) observer.observe(node, attributes);
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", soon);
  return () => (observer.disconnect(), media.removeEventListener("change", soon));
}

/** What is chosen, as people read it. */
const CHOICE_NAMES = {
  encoder: say("encoder"),
  decoder: say("decoder"),
  cross: say("cross"),
  overview: say("overview"),
  heatmap: say("heatmap"),
  links: say("links"),
  text: say("text"),
  joint: say("joint"),
  decode: say("decode"),
};
const outline = (slide) => JSON.stringify(leaves(slide.parts).map(({ is, name }) => name ?? is));

/** The names of the theme that Streamlit hands to components; a notebook has to say them itself. */
function paint(root, { background, ink, accent, line, soft }, theme) {
  const colours = { "--st-background-color": background, "--st-text-color": ink, "--st-primary-color": accent };
  const all = { ...colours, "--st-border-color": line, "--soft": soft, "color-scheme": theme };
  for (const [name, value] of Object.entries(all)) root.style.setProperty(name, value);
}

/** Buttons of which one is pressed; nothing where there is nothing to choose. */
function choice(parent, label, options, chosen, choose) {
  if (options.length < 2) return;
  const group = parent.appendChild(element("div", "choice"));
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", label);
  for (const option of options) {
    const button = group.appendChild(element("button", "", CHOICE_NAMES[option] ?? option));
    button.setAttribute("aria-pressed", option === chosen);
    button.onclick = () => choose(option);
  }
}

/** What the model of the widget holds, as the views take it. */
function received(model) {
  const sent = model.get("content");
  return unpack(new Uint8Array(sent.buffer, sent.byteOffset, sent.byteLength));
}

class Widget {
  constructor({ model, el }, components, styles, css) {
    el.dataset.widget = "";
    this.model = model;
    this.components = components;
    this.styles = styles;
    this.root = shadowed(el, css);
    this.root.className = "attenscope";
    this.nav = this.root.appendChild(element("nav"));
    this.place = this.root.appendChild(element("div", "slide"));
    this.says = this.root.appendChild(element("p", "says"));
    this.says.setAttribute("role", "status");
    this.theme = themeOf(el);
    this.deaf = watchTheme(() => {
      if (themeOf(el) === this.theme) return;
      this.theme = themeOf(el);
      this.take();
    });
    this.heard = () => this.take();
    model.on("change:content", this.heard);
    this.take();
  }

  /** Draw what Python has sent: into the views that are there, or, where these are others, into new ones. */
  take() {
    const { header, body } = received(this.model);
    paint(this.root, header.themes[this.theme], this.theme);
    this.choices(header);
    const file = { header: { styles: this.styles, talk: false }, body };
    if (this.view && outline(this.view.slide) === outline(header.slide)) {
      leaves(header.slide.parts).forEach((part, i) => Object.assign(leaves(this.view.slide.parts)[i], part));
      Object.assign(this.view.file, file);
    } else {
      this.leave();
      const view = { slide: header.slide, file, components: this.components, says: this.says, drawn: [], charts: [], leaving: [] };
      view.redraw = () => view.drawn.forEach((draw) => draw());
      view.run = () => (this.says.textContent = NEEDS_MODEL);
      view.told = (part, name, value) => this.tell(part, name, value);
      this.view = view;
    }
    const { slide } = this.view;
    slide.state = undefined;
    this.view.state = stateOf(slide, file);
    if (this.theme === "dark") leaves(slide.parts).forEach((part, i) => this.view.state.changes.set(part, header.dark[i]));
    if (this.view.drawn.length) this.view.redraw();
    else mountAll(this.place, slide.parts, this.view);
    this.words(slide);
    this.root.dataset.painted = `${header.view} ${header.kind} ${this.model.get("layer")}.${this.model.get("head")}`;
  }

  /** Captions are no components: where they stay, they are written anew. */
  words(slide) {
    const said = leaves(slide.parts).filter((part) => part.is === "words");
    this.place.querySelectorAll(".words").forEach((host, i) => (host.textContent = said[i].text));
  }

  choices({ kind, kinds, view, views, of }) {
    const set = (name) => (value) => this.send({ [name]: value });
    const had = this.root.getRootNode().activeElement?.textContent;
    this.nav.replaceChildren();
    choice(this.nav, say("Attention"), view === "joint" || view === "decode" ? [] : kinds, kind, set("kind"));
    choice(this.nav, say("View"), views, view, set("view"));
    this.nav.append(element("span", "of", of));
    [...this.nav.querySelectorAll("button")].find((button) => button.textContent === had)?.focus();
  }

  /** Let Python hear which head was chosen and what was pinned. */
  tell(part, name, value) {
    const opened = this.model.get("view") === "overview" ? { view: "heatmap" } : {};
    if (name === "pick" && value.layer !== undefined) this.send({ layer: value.layer, head: value.head, ...opened });
    const pinned = this.view.state.changes.get(part)?.pinned;
    if ((name === "pin" || name === "cell") && Array.isArray(pinned)) this.send({ pinned });
  }

  send(values) {
    for (const [name, value] of Object.entries(values)) this.model.set(name, value);
    this.model.save_changes();
  }

  leave() {
    this.view?.leaving.forEach((leave) => leave());
    this.place.replaceChildren();
  }

  end() {
    this.model.off("change:content", this.heard);
    this.deaf();
    this.leave();
  }
}

/** What anywidget calls for every place where the widget is shown; views measure themselves, so it waits for room. */
export default function renderer(components, styles, css) {
  return (context) => {
    let widget = null;
    const room = new ResizeObserver(() => {
      if (widget || !context.el.clientWidth) return;
      room.disconnect();
      widget = new Widget(context, components, styles, css);
    });
    room.observe(context.el);
    return () => (room.disconnect(), widget?.end());
  };
}
