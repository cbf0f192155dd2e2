// The smallest type on the screen in pixels, with where it stands; the share of the screen that the picture takes; the
// heights of its charts; and the names that are left out of them although there is room.
(least) => {
  const within = function* (node) {
    yield node;
    for (const child of node.shadowRoot?.childNodes ?? []) yield* within(child);
    for (const child of node.childNodes ?? []) yield* within(child);
  };
  const show = [...within(document.body)].find((node) => node.matches?.("dialog.show"));
  const frame = show?.querySelector("iframe.seen");
  const places = frame ? [[show, 1], [frame.contentDocument.body, frame.currentCSSZoom]] : [[document.body, 1]];
  const around = ".st-key-sentence, .st-key-translation, header, .line, .words.large, [data-role=translation]";
  const small = new Map();
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  let smallest = Infinity;
  const hostOf = (element) => element.closest(around) ?? (element.getRootNode().host ? hostOf(element.getRootNode().host) : null);
  const hidden = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const { width, height } = at.getBoundingClientRect();
      if (getComputedStyle(at).position === "absolute" && width < 2 && height < 2) return true; // For screen readers.
    }
    return false;
  };
  for (const [root, zoom] of places)
    for (const node of within(root)) {
      const element = node.nodeType === Node.TEXT_NODE ? node.parentElement : node;
      const isText = node.nodeType === Node.TEXT_NODE && node.textContent.trim();
      const isDrawn = node.nodeType === Node.ELEMENT_NODE && node.matches("canvas, svg.main-svg, svg[viewBox], svg[height]");
      if ((!isText && !isDrawn) || !element || element.closest("script, style, noscript, textarea, option")) continue;
      if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
      const range = element.ownerDocument.createRange();
      range.selectNode(node);
      const { left, top, right, bottom, width, height } = range.getBoundingClientRect();
      if (width < 2 || height < 2 || hidden(element)) continue;
      const outer = root === show || hostOf(element);
      if (!outer) {
        box.left = Math.min(box.left, left * zoom);
        box.top = Math.min(box.top, top * zoom);
        box.right = Math.max(box.right, right * zoom);
        box.bottom = Math.max(box.bottom, bottom * zoom);
      }
      if (!isText) continue;
      const drawn = element.closest("svg") && element.getScreenCTM?.();
      const grown = drawn ? Math.hypot(drawn.a, drawn.b) : (element.currentCSSZoom ?? 1);
      const size = parseFloat(getComputedStyle(element).fontSize) * grown * zoom;
      smallest = Math.min(smallest, size);
      if (size < least) small.set(node.textContent.trim().slice(0, 30), size.toFixed(1));
    }
  const every = [...new Set(places.flatMap(([root, zoom]) => [...within(root)].map((node) => [node, zoom])))];
  const find = (selector) => every.filter(([node]) => node.matches?.(selector) && node.checkVisibility());
  const heights = [
    ...find(".js-plotly-plot").flatMap(([node, zoom]) => {
      const grown = (zoom * node.getBoundingClientRect().height) / node.offsetHeight; // In a file by a transform of its own.
      return Object.values(node._fullLayout._plots ?? {}).map(({ yaxis }) => grown * yaxis._length);
    }),
    ...find(".heatmap > canvas, .curves svg").map(([node, zoom]) => zoom * node.getBoundingClientRect().height),
  ];
  /** A text's box along its own line. */
  const boxOf = (text) => {
    const { x, y, width, height } = text.getBBox();
    const { a, b, c, d, e, f } = text.getCTM();
    const long = Math.hypot(a, b);
    const [cos, sin] = [a / long, b / long];
    const [left, top] = [a * x + c * y + e, b * x + d * y + f];
    return { from: cos * left + sin * top, over: cos * top - sin * left, long: long * width, high: long * height };
  };
  const apart = (one, other) =>
    one.from >= other.from + other.long || other.from >= one.from + one.long || one.over >= other.over + other.high || other.over >= one.over + one.high;
  const unnamed = [];
  for (const [plot] of find(".js-plotly-plot"))
    for (const of of ["x", "y"].map((letter) => `[class^="${letter}axislayer"] [class$="tick"] text`)) {
      const texts = [...plot.querySelectorAll(of)].filter((text) => text.textContent.trim());
      const isHidden = (text) => getComputedStyle(text).visibility === "hidden";
      const [hidden, kept] = [texts.filter(isHidden), texts.filter((text) => !isHidden(text)).map(boxOf)];
      unnamed.push(...hidden.filter((text) => kept.every((other) => apart(boxOf(text), other))).map((text) => text.textContent));
    }
  for (const [svg] of find(".heatmap svg[data-unnamed]:not([data-unnamed='0'])")) {
    const rows = [...svg.querySelectorAll(".row")].map((text) => text.getBBox());
    const steps = rows.slice(1).map(({ y }, at) => y - rows[at].y);
    if (Math.min(...steps) > 2 * rows[0].height) unnamed.push(`${svg.dataset.unnamed} of a heatmap`);
  }
  const across = Math.min(box.right, innerWidth) - Math.max(box.left, 0);
  const down = Math.min(box.bottom, innerHeight) - Math.max(box.top, 0);
  return { smallest, small: [...small].slice(0, 8), share: (across * down) / (innerWidth * innerHeight), heights, unnamed };
};
