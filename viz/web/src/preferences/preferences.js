import { element } from "../shared/element.js";
import { mounted, unmount } from "../shared/mounted.js";
import { keepText, keptText } from "../shell/stored.js";
import { mainMenuPart } from "../shell/streamlit.js";

const THEMES = ["System", "Light", "Dark"]; // As Streamlit's own menu names them.

/** A list with its name before it: pairs of a value and what is read for it. */
function listOf(name, choices) {
  const label = element("label", "");
  const list = document.createElement("select");
  list.setAttribute("aria-label", name);
  list.append(...choices.map(([value, text]) => new Option(text, value)));
  label.append(element("span", "", name), list);
  return { label, list };
}

/** Where Streamlit keeps the theme of a visitor: for each path that the app was loaded at, one of its own. */
const keyOfTheme = (path) => `stActiveTheme-${path}-v2`;

function keptTheme() {
  const kept = keptText(keyOfTheme(location.pathname));
  return THEMES.find((name) => kept === JSON.stringify(name)) ?? THEMES[0];
}

/**
 * Choose the theme, here and for every page that is loaded next. Streamlit offers no way to choose it but its main menu,
 * which the page's style sheet keeps out of sight: press it there. As any menu that opens, it closes the one that this
 * list is in.
 */
function chooseTheme(name, pages) {
  mainMenuPart()?.click();
  requestAnimationFrame(() => mainMenuPart(name)?.click());
  const folder = location.pathname.replace(/[^/]*$/, "");
  for (const page of pages) keepText(keyOfTheme(folder + page), JSON.stringify(name));
}

function build(root, { words, languages, pages }) {
  root.className = "preferences";
  const language = listOf(words.language, languages);
  for (const one of language.list.options) one.lang = one.value;
  const theme = listOf(words.theme, THEMES.map((name, at) => [name, words.themes[at]]));
  theme.list.value = keptTheme();
  theme.list.onchange = () => chooseTheme(theme.list.value, pages);
  root.append(language.label, theme.label);
  return { list: language.list };
}

export default function preferences({ data, parentElement, setTriggerValue }) {
  const { list } = mounted(parentElement, data.words.language, (root) => build(root, data));
  list.value = data.current;
  list.onchange = () => setTriggerValue("chosen", list.value);
  return () => unmount(parentElement);
}
