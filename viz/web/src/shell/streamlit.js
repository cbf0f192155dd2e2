/**
 * Where scripts look into Streamlit's own page: no other script knows its names. They are no public interface, so
 * tests/viz/test_streamlit_page.py holds them, and those in style sheets, against the version that is installed.
 */
export const APP = '[data-testid="stApp"]';
/** The app while no script of a page runs. */
export const AT_REST = '[data-testid="stApp"][data-test-script-state="notRunning"]';
/** The app while it has a server. */
export const CONNECTED = '[data-testid="stApp"][data-test-connection-state="CONNECTED"]';
export const MAIN = '[data-testid="stMain"]';
export const CONTENT = '[data-testid="stMainBlockContainer"]';
export const COLUMN = '[data-testid="stColumn"]';
export const ELEMENT = '[data-testid="stElementContainer"]';
/** What a container is laid out in. */
export const LAYOUT = '[data-testid="stLayoutWrapper"]';
/** An open menu. */
export const MENU = '[data-testid="stPopoverBody"]';
/** The element of a component whose shadow root has what the component draws. */
export const SHADOWED = '[data-testid="stBidiComponentIsolated"]';
/** What stands in for an element that is not there yet. */
export const SKELETON = '[data-testid="stSkeleton"]';
/** What closes the drawer that has the list of pages on a phone. */
export const CLOSES_DRAWER = '[data-testid="stSidebarCollapseButton"] button';
export const RADIO_OPTION = '[data-testid="stRadioOption"]';
export const ICON = '[data-testid="stIconMaterial"]';

/**
 * The button of the main menu, or, once that is open, the item of a theme: System, Light or Dark.
 * @param {string} [theme]
 * @returns {HTMLElement | null}
 */
export function mainMenuPart(theme) {
  return document.querySelector(`[data-testid="${theme ? `stMainMenuItem-theme-${theme}` : "stMainMenuButton"}"]`);
}

/** Whether all that a page's script has sent is there; each view has an element of its own beside that of its style. */
export function isDrawn(page) {
  const views = `${CONTENT} ${ELEMENT}:not(.st-key-arrival, .st-key-browser-history) ${SHADOWED}`;
  const isViewDrawn = (view) => view.shadowRoot?.childElementCount > 1;
  return !page.querySelector(`${CONTENT} ${SKELETON}`) && [...page.querySelectorAll(views)].every(isViewDrawn);
}
