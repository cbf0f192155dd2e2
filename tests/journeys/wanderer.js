/**
 * What the wanderer sees of the page: the controls that it offers, what is wrong with it, and what it shows.
 *
 * Nothing here names a page, a view or a control of the app: elements are known by their roles, by Streamlit's test ids
 * and by the key (`st-key-...`) that stands nearest above them, across the shadow roots of components.
 */
window.wanderer = (() => {
  const OFFERED =
    "button, a[href], summary, select, textarea, input, [role=button], [role=radio], [role=tab], [role=slider], " +
    "[role=img][tabindex], .js-plotly-plot .nsewdrag, .js-plotly-plot .point";
  /** Left out: what leaves the app, hands out a file, fills the screen or opens a window, and what belongs to Streamlit. */
  const LEFT_OUT =
    "[data-testid=stMainMenu], [data-testid=stSkipToContent], [data-testid=stHeaderActionElements], .modebar, " +
    "[data-testid=stSidebarCollapseButton], [data-testid=stElementToolbar], [data-testid=stDownloadButton], [data-testid=stToolbarActions], " +
    ".st-key-save, [class*=st-key-save-], .st-key-talk-one-file, .st-key-talk-save, a[target=_blank], a[download]";
  const POPOVER = "[data-testid=stPopoverBody]";
  const DIALOG = "[data-testid=stDialog], [role=dialog]";
  /** Differs with the visitor's past, with the moment or with what was pointed at last, not with the address. */
  const PASSING =
    ".time, .st-key-earlier, [data-testid=stExpander], .st-key-badge, .st-key-header-actions, .st-key-page-help, [role=status], .readout, .tip, style, " +
    "script, .modebar, [data-testid=stPopover] [data-testid=stIconMaterial], .hoverlayer, .pipeline .numbers";

  const above = (one) => one.parentElement ?? one.getRootNode().host ?? null;
  /** `closest` across shadow roots. */
  function within(one, selector) {
    for (let at = one; at; at = at.getRootNode().host) {
      const found = at.closest?.(selector);
      if (found) return found;
    }
    return null;
  }
  const ownKey = (one) => [...(one.classList ?? [])].find((name) => name.startsWith("st-key-"))?.slice(7) ?? "";
  function keyOf(one) {
    for (let at = one; at; at = above(at)) {
      const key = ownKey(at);
      if (key) return key;
      const part = at.dataset?.testid;
      if (/^st(TopNav|SidebarNav)$/.test(part)) return "nav";
      if (part === "stPopoverBody") return "popover";
    }
    return "";
  }
  function* all(root) {
    for (const one of root.children) {
      yield one;
      if (one.shadowRoot) yield* all(one.shadowRoot);
      yield* all(one);
    }
  }
  function isVisible(one) {
    const box = one.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && box.right > 0 && box.left < innerWidth && one.checkVisibility({ visibilityProperty: true }); // A list may lie, without colour, over its sign.
  }
  const square = (text) => (text ?? "").replace(/\s+/g, " ").trim();

  function kindOf(one) {
    const [tag, role, type] = [one.tagName.toLowerCase(), one.getAttribute("role"), one.type];
    if (tag === "select") return "select";
    if (role === "combobox") return "combobox";
    if (tag === "textarea") return "text";
    if (role === "slider" || type === "range") return "slide";
    if (tag === "input" && type === "file") return "file";
    if (tag === "input" && ["text", "search", "number"].includes(type)) return "text";
    if (role === "img" || one.matches(".nsewdrag")) return "plot";
    return "press";
  }
  /** What is touched in place of a control that Streamlit draws by other elements. */
  const touched = (one, kind) => (kind === "press" && one.tagName === "INPUT") || kind === "file" ? one.closest("label, [data-testid=stFileUploader]") ?? one : one;
  const isChosen = (one) => one.getAttribute("role") === "radio" ? one.getAttribute("aria-checked") === "true" : one.type === "radio" && one.checked;
  const named = (one, shown) => square(one.getAttribute("aria-label") || one.innerText || shown.innerText || one.title || one.placeholder || one.textContent).slice(0, 50);

  /** Every control that a person could use now. The last popover, dialog or side bar that is open hides the others. */
  function collect() {
    const inside = [...document.querySelectorAll(DIALOG), ...document.querySelectorAll(POPOVER)].filter(isVisible).at(-1)
      ?? [...document.querySelectorAll("[data-testid=stSidebar][aria-expanded=true]")].find((one) => isVisible(one) && innerWidth < 800);
    const counts = new Map();
    const found = [];
    for (const one of all(inside ?? document.body)) {
      if (!one.matches(OFFERED)) continue;
      const [kind, key] = [kindOf(one), keyOf(one)];
      const shown = touched(one, kind);
      if (within(one, LEFT_OUT) || one.disabled || one.readOnly || within(one, "[aria-disabled=true], [inert]") || !isVisible(shown)) continue;
      if (one.tagName === "A" && new URL(one.href).origin !== location.origin) continue;
      if (one.closest(".react-aria-ComboBox") && one.tagName === "BUTTON") continue; // It opens the list beside it.
      const place = `${key}/${kind}`;
      const n = counts.get(place) ?? 0;
      counts.set(place, n + 1);
      if (isChosen(one)) continue;
      found.push({ one, shown, id: { key, kind, n, name: named(one, shown), options: kind === "select" ? one.options.length : 0 } });
    }
    return { inside, found };
  }
  function controls() {
    const { inside, found } = collect();
    return { folded: Boolean(inside), controls: found.map(({ id }) => id) };
  }
  function find({ key, kind, n }) {
    const match = collect().found.find(({ id }) => id.key === key && id.kind === kind && id.n === n);
    return match && (kind === "file" ? match.one : match.shown);
  }

  const stage = () => [...all(document.body)].find((one) => one.matches("dialog.show[open]"));
  const VIEWS = "[data-testid=stElementContainer]:not(.st-key-arrival, .st-key-browser-history) [data-testid=stBidiComponentIsolated]";
  const isDrawn = (view) => view.shadowRoot?.childElementCount > 1; // A sheet, and what the view has put beside it.
  /** Beside the script's rest (tests/browser/steps.py): what has come is drawn. */
  function drawn() {
    const main = document.querySelector("[data-testid=stMain]");
    if (!main || main.querySelector("[data-testid=stSkeleton]")) return false;
    if (stage()?.classList.contains("waiting")) return false;
    if (main.querySelector(".st-key-working")) return false; // A decoding goes on beside the script.
    if ([...all(main)].some((one) => one.matches(".picture > .says") && one.textContent.endsWith("…"))) return false; // A scene of Talk.
    if ([...main.querySelectorAll(".js-plotly-plot")].some((plot) => isVisible(plot) && !plot.querySelector(".main-svg"))) return false;
    return [...main.querySelectorAll(VIEWS)].every(isDrawn) && ![...all(main)].some((one) => one.dataset?.painted?.endsWith("…"));
  }

  /** What is not at rest. */
  function unrest() {
    const { traffic } = window;
    const app = document.querySelector("[data-testid=stApp]");
    const main = document.querySelector("[data-testid=stMain]");
    const late = [...(main?.querySelectorAll(VIEWS) ?? [])].filter((view) => !isDrawn(view)).map(keyOf);
    return [
      app?.dataset.testScriptState !== "notRunning" && "the script runs",
      document.documentElement.dataset.arrived === undefined && "the page has not arrived",
      !(traffic.began > traffic.asked) && "no run has begun since it was asked for",
      !traffic.quiet && "messages keep coming",
      main?.querySelector("[data-testid=stSkeleton]") && "a skeleton stands",
      stage()?.classList.contains("waiting") && "the stage waits",
      late.length && `not drawn: ${late}`,
    ].filter(Boolean).join(", ");
  }

  const repeated = (texts) => [...new Set(texts.filter((text, at) => text && texts.indexOf(text) !== at))];
  /** What a component has put into its place: one element, unless it was mounted again beside what it had drawn. */
  function roots(place) {
    const parts = [...(place?.children ?? [])].filter((one) => one.tagName !== "STYLE" && (one.childElementCount || one.textContent));
    if (parts.length === 1 && !parts[0].className) return roots(parts[0]);
    const named = (one) => one.className || one.firstElementChild?.className;
    return parts.filter((one) => named(one) && parts.some((other) => other !== one && named(other) === named(one)));
  }
  /**
   * What stands twice. A part with a key is known by it: Streamlit allows each once in a run. A chart and a heading are
   * known by their words, a primary button by its label; those of one row of columns may be compared with one another.
   */
  function twice() {
    const main = document.querySelector("[data-testid=stMain]");
    const shown = [...all(main)].filter(isVisible);
    const lone = (one) => !one.closest("[data-testid=stColumn]");
    const keys = shown.filter((one) => ownKey(one)).map((one) => `key ${ownKey(one)} (${one.dataset.testid})`);
    const headings = shown.filter((one) => /^H[1-4]$/.test(one.tagName) && lone(one) && one.getRootNode() === document).map((one) => `heading “${square(one.innerText)}”`);
    const primary = shown.filter((one) => one.matches('[data-testid="stBaseButton-primary"], button.start')).map((one) => `primary button in ${keyOf(one)}`);
    const charts = shown.filter((one) => one.matches(".js-plotly-plot") && lone(one)).map((one) => `chart “${square(one.querySelector(".gtitle")?.textContent)}”`).filter((text) => !text.includes("“”"));
    const labels = shown.filter((one) => one.matches("[data-testid=stBidiComponentIsolated]"))
      .flatMap((one) => [...(one.shadowRoot?.querySelectorAll("[role=group][aria-label]") ?? [])]).filter((one) => isVisible(one) && !within(one, "[data-testid=stColumn] [data-testid=stColumn]"))
      .map((one) => `component “${one.getAttribute("aria-label")}”`);
    const views = shown.filter((one) => one.matches("[data-testid=stBidiComponentIsolated]") && roots(one.shadowRoot).length > 1).map((one) => `view ${keyOf(one)}`);
    const boxes = shown.filter((one) => one.matches(".st-key-sentence textarea")).map(() => "sentence box");
    return [...views, ...[keys, headings, primary, charts, labels, boxes].flatMap(repeated)];
  }
  const stale = () => [...document.querySelectorAll('[data-testid=stMain] [data-testid=stElementContainer][data-stale=true]')].filter(isVisible).map((one) => keyOf(one) || square(one.innerText).slice(0, 40));

  /** Whether a field of Masks, such as a rule, holds what was typed: the address keeps it where it is not the default. */
  const isTyped = () => location.pathname === "/masks" &&
    [...document.querySelectorAll("[data-testid=stMain] input[type=text]")].some((one) => isVisible(one) && new URLSearchParams(location.search).has(keyOf(one)));
  /** Where a person has handed over or typed what cannot be read, a box says so rightly. */
  function errors() {
    const boxes = `[data-testid=stException], [data-testid=stConnectionStatus]${own() || isTyped() ? "" : ", [data-testid=stAlertContentError]"}`;
    return [...document.querySelectorAll(boxes)]
      .filter(isVisible).map((one) => square(one.innerText).slice(0, 200));
  }
  /** How far the page can be moved sideways, in pixels, and what stands out. */
  function overflow() {
    const parts = [document.scrollingElement, document.querySelector("[data-testid=stMain]")].filter(Boolean);
    const by = Math.max(...parts.map((one) => one.scrollWidth - one.clientWidth));
    if (by <= 1) return null;
    const out = [...all(document.body)].filter((one) => one.getBoundingClientRect().right > innerWidth + 1);
    const seen = out.filter(isVisible);
    const tell = (one) => keyOf(one) || `${one.localName}.${[...one.classList].join(".")}`; // What is not in sight widens the page too.
    return { by, what: [...new Set((seen.length ? seen : out).map(tell))].slice(0, 4).join(", ") };
  }

  function box() {
    const place = document.querySelector(".st-key-sentence-box");
    const field = place?.querySelector("textarea");
    return { there: Boolean(field), visible: Boolean(field) && isVisible(field), hidden: Boolean(place) && getComputedStyle(place).display === "none", text: field?.value ?? "" };
  }
  const letters = (text) => text.normalize("NFKC").replace(/<\/?s>|[\s␣▁\u2060-\u2069]/g, "").toLowerCase();
  /** The names of rows and columns of the map that is in sight, and the translation as it stands above, joined; or null. */
  function tokens() {
    const root = (key) => document.querySelector(`.st-key-${key} [data-testid=stBidiComponentIsolated]`)?.shadowRoot;
    const line = root("translation")?.querySelector(".line");
    const player = root("decode-player");
    const joined = (found) => found ? letters([...found.querySelectorAll(".piece")].map((one) => one.textContent).join("")) : null;
    const map = [root("heatmap")?.querySelector(".heatmap")].find((one) => one && isVisible(one)); // Not one kept ready.
    const axes = map && Object.fromEntries(["row", "column"].map((axis) => [axis, letters([...map.querySelectorAll(`svg .${axis}, svg [data-axis=${axis}]`)].map((one) => one.textContent).join(""))]));
    return {
      translation: line ? letters(line.textContent) : null,
      source: joined(player?.querySelector(".source")),
      map: map ? letters([...map.querySelectorAll("svg text")].map((one) => one.textContent).join("")) : null,
      axes,
    };
  }

  /** A small picture of a canvas, coarse enough to be the same wherever the same is drawn. */
  function sketch(canvas) {
    const [size, small] = [12, document.createElement("canvas")];
    small.width = small.height = size;
    try {
      const pen = small.getContext("2d", { willReadFrequently: true });
      pen.imageSmoothingQuality = "high";
      pen.drawImage(canvas, 0, 0, size, size);
      const { data } = pen.getImageData(0, 0, size, size);
      return [...Array(size * size).keys()].map((at) => Math.round((data[4 * at] + data[4 * at + 1] + data[4 * at + 2]) / 3)).join();
    } catch {
      return "";
    }
  }
  /** What the page shows, by the nearest key: its words, and its canvases as sketches. */
  function fingerprint() {
    const texts = {};
    const sketches = {};
    const partOf = (one) => keyOf(one).replace(/-\d+$/, ""); // A key may count how often something was answered.
    const add = (one, text) => text && (texts[partOf(one)] ??= []).push(text);
    const walk = (one) => {
      // An element without a box of its own, as stands around each component, is not there to checkVisibility.
      if (one.matches(PASSING) || !(one.checkVisibility({ visibilityProperty: true }) || getComputedStyle(one).display === "contents")) return;
      if (one.matches(POPOVER)) return;
      if (one.matches("input, textarea")) add(one, square(one.type === "checkbox" || one.type === "radio" ? String(one.checked) : one.value));
      if (one.matches("select")) add(one, one.options[one.selectedIndex]?.text);
      if (one.matches("[aria-pressed=true], [aria-checked=true], [aria-current]:not([aria-current=false])")) add(one, `[${square(one.getAttribute("aria-label") || one.textContent)}]`);
      if (one.matches("canvas") && one.width && one.height) (sketches[partOf(one)] ??= []).push(sketch(one));
      for (const child of one.childNodes) {
        if (child.nodeType === Node.TEXT_NODE && !one.matches("option, textarea")) add(one, square(child.data).replace(/[\d.,]+\s*(ms|s|MB)\b/g, "· $1"));
        else if (child.nodeType === Node.ELEMENT_NODE) walk(child);
      }
      if (one.shadowRoot) [...one.shadowRoot.children].forEach(walk);
    };
    const main = document.querySelector("[data-testid=stMain]");
    if (main) walk(main);
    return { page: location.pathname, texts: Object.fromEntries(Object.entries(texts).map(([key, said]) => [key, said.join(" ")])), sketches };
  }
  /** What stands in the address of the browser's history: the entry's own name, which a reload keeps. */
  const entry = () => ({ key: navigation.currentEntry.key, index: navigation.currentEntry.index, count: navigation.entries().length });

  /** A box about a file that was handed over; where it is refused, the place to drop files is empty again. */
  const isRefusal = (box) => /\b[\w-]+\.(npz|safetensors|txt|toml)\b/.test(square(box.innerText));
  /** Whether what is shown is the visitor's own, which no address can say: a talk, a file, an opened trace, a text for the judge, earlier versions, what a press on a tile does. */
  const own = () => location.pathname.startsWith("/talk") || new URLSearchParams(location.search).get("from") === "opened trace" || Boolean(document.querySelector("[data-testid=stFileUploaderFile], .st-key-openedbar, .st-key-versions, .st-key-pressing")) ||
    [...document.querySelectorAll("[data-testid=stAlertContentError]")].some((box) => isVisible(box) && isRefusal(box)) ||
    [...document.querySelectorAll("[data-testid=stMain] textarea")].some((one) => ["mask_text", "architecture-configuration"].includes(keyOf(one)) && one.value);

  const look = () => ({
    own: own(), url: location.href, stage: Boolean(stage()), errors: errors(), twice: twice(), stale: stale(), overflow: overflow(), box: box(), tokens: tokens(),
    chosen: [...document.querySelectorAll("[data-testid=stMain] [role=radio][aria-checked=true]")].map((one) => `${keyOf(one)}=${[...one.parentElement.querySelectorAll("[role=radio]")].indexOf(one)}`).join("&"),
    fingerprint: fingerprint(), entry: entry(), language: document.documentElement.lang,
    scheme: getComputedStyle(document.querySelector("[data-testid=stApp]") ?? document.body).colorScheme,
  });
  return { controls, find, drawn, look, unrest };
})();
