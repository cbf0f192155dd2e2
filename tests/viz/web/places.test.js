/** Where things stand, and what a key asks for. */
import { scales } from "../../../viz/web/src/curves/drawing.js";
import { chosenLinks, layout } from "../../../viz/web/src/links/layout.js";
import { fitScene } from "../../../viz/web/src/stage/fit.js";
import { asked } from "../../../viz/web/src/studio/frame.js";
import { cover } from "../../../viz/web/src/stage/parts.js";
import { arrowKeys, walk } from "../../../viz/web/src/shared/mounted.js";
import { widgetOf } from "../../../viz/web/src/shared/events.js";

describe("the scales of curves", () => {
  const axis = (low, high) => ({ low, high, ticks: [], title: "" });
  const at = scales({ x: axis(0, 10), y: axis(-1, 1), left: 60, height: 210 }, 474);

  test.each([[0, -1, 60, 200], [10, 1, 460, 10], [5, 0, 260, 105]])("put (%d, %d) at pixel (%d, %d), and back", (x, y, across, down) => {
    expect([at.x(x), at.y(y)]).toEqual([across, down]);
    expect([at.valueX(across), at.valueY(down)]).toEqual([x, y]);
  });

  test("of a square have pixels of one size, in the middle", () => {
    const square = scales({ x: axis(0, 2), y: axis(0, 1), left: 0, height: 220, square: true }, 214);
    expect([square.x(2) - square.x(0), square.y(0) - square.y(1)]).toEqual([200, 100]);
    expect(square.y(0.5)).toBe(square.top + (square.bottom - square.top) / 2);
  });

  test("keep 40 pixels however narrow it is", () => {
    const narrow = scales({ x: axis(0, 1), y: axis(0, 1), left: 60, height: 200 }, 50);
    expect(narrow.x(1) - narrow.x(0)).toBe(40);
  });
});

describe("links between two columns", () => {
  const tokens = (count) => Array.from({ length: count }, (_, at) => `t${at}`);

  test.each([[3, 5, 0], [80, 20, 0], [12, 12, 20]])("of %d queries and %d keys, least type %d, stand inside and apart", (queries, keys, least) => {
    const place = layout({ queries: tokens(queries), keys: tokens(keys), horizontal: false }, least);
    const rows = Array.from({ length: Math.max(queries, keys) }, (_, at) => place.token("key", at).y);
    expect(rows[0]).toBeGreaterThan(20);
    expect(rows.at(-1)).toBeLessThan(place.height);
    expect(new Set(rows.slice(1).map((y, at) => (y - rows[at]).toFixed(6))).size).toBe(1);
    expect(place.token("query", 0).x).toBeLessThan(place.token("key", 0).x);
    expect(place.path(0, 1)).toMatch(/^M[\d.]+,[\d.]+C/);
    if (least) expect(place.named * (rows[1] - rows[0])).toBeGreaterThan(13);
  });
});

describe("the links that are drawn", () => {
  const header = { queries: ["a", "b"], keys: ["x", "y"], head: 0, beside: [] };
  const bytes = Uint8Array.of(200, 54, 255, 254, 10, 20, 30, 40);
  const drawn = (fields) => chosenLinks({ ...header, ...fields }, bytes).links.map(({ head, q, k }) => [head, q, k]);

  test.each([
    [{ threshold: 0.5 }, [[0, 0, 0], [0, 1, 1]]],
    [{ threshold: 0 }, [[0, 0, 1], [0, 0, 0], [0, 1, 1]]],
    [{ threshold: "strongest" }, [[0, 0, 0], [0, 1, 1]]],
    [{ threshold: "strongest", beside: [1] }, [[1, 0, 1], [1, 1, 1], [0, 0, 0], [0, 1, 1]]],
    [{ threshold: 2 }, []],
  ])("with %j are %j", (fields, expected) => {
    expect(drawn(fields)).toEqual(expected);
  });

  test("are none of a row without weight, though 0 is its strongest", () => {
    const row = { queries: ["a"], keys: ["b", "c", "d"], head: 0, beside: [], threshold: "strongest" };
    expect(chosenLinks(row, Uint8Array.of(0, 0, 255)).links).toEqual([]);
  });

  test("are the strongest where there are too many, and it is known how many there were", () => {
    const side = Array.from({ length: 60 }, String);
    const many = Uint8Array.from({ length: 3600 }, (_, at) => at % 250);
    const { links, total } = chosenLinks({ queries: side, keys: side, head: 0, beside: [], threshold: 0 }, many);
    expect([links.length, total]).toEqual([1500, 3600]);
    expect(Math.min(...links.map(({ weight }) => weight))).toBeGreaterThan(0.5);
  });
});

const key = (name, fields = {}) => {
  const target = { closest: () => null };
  return { key: name, composedPath: () => [target], ...fields };
};

describe("a key asks the show for", () => {
  test.each([
    ["PageDown", "next"], ["ArrowRight", "next"], ["PageUp", "previous"], ["Home", "first"], ["End", "last"], ["Escape", "close"],
    ["n", "notes"], ["7", "7"], ["Enter", "enter"], ["x", null],
  ])("%s: %s", (name, expected) => {
    expect(asked(key(name))).toBe(expected);
  });

  test("nothing together with another key, and nothing but a clicker's in a field", () => {
    const field = { composedPath: () => [{ closest: () => ({}) }] };
    expect(["ctrlKey", "metaKey", "altKey"].map((one) => asked(key("n", { [one]: true })))).toEqual([null, null, null]);
    expect(["n", "7", "ArrowRight", "PageDown"].map((name) => asked(key(name, field)))).toEqual([null, null, null, "next"]);
  });
});

describe("arrow keys", () => {
  const items = () => Array.from({ length: 6 }, (_, at) => ({ at, tabIndex: -1, focus: vi.fn() }));
  const pressed = (act, name, all, from) => {
    const event = { key: name, target: all[from], preventDefault: vi.fn() };
    act(event);
    return all.filter(({ focus }) => focus.mock.calls.length).map(({ at }) => at);
  };

  test.each([
    ["ArrowRight", 0, [1]], ["ArrowLeft", 0, []], ["ArrowDown", 1, [4]], ["ArrowUp", 4, [1]], ["Home", 3, [0]], ["End", 3, [5]],
    ["ArrowDown", 4, []], ["x", 2, []],
  ])("%s from item %d of two rows leads to %j", (name, from, to) => {
    const all = items();
    expect(pressed((event) => arrowKeys(event, all, 3), name, all, from)).toEqual(to);
  });

  test.each([
    ["ArrowDown", 0, [1]], ["ArrowUp", 0, []], ["ArrowRight", 1, [4]], ["ArrowLeft", 5, [2]], ["End", 0, [5]],
  ])("%s from node %d of two columns leads to %j", (name, from, to) => {
    const nodes = items().map(({ at }) => ({ row: at % 3, column: Math.floor(at / 3) }));
    const all = items();
    expect(pressed((event) => walk(event, nodes, all), name, all, from)).toEqual(to);
  });

  test.each(["altKey", "ctrlKey", "metaKey"])("are the browser's with %s, which goes back or to the end of the page", (modifier) => {
    const all = items();
    const nodes = all.map(({ at }) => ({ row: at, column: 0 }));
    for (const key of ["ArrowLeft", "ArrowDown", "Home", "End"]) {
      const event = { key, [modifier]: true, target: all[3], preventDefault: vi.fn() };
      arrowKeys(event, all, 2);
      walk(event, nodes, all);
      expect(event.preventDefault).not.toHaveBeenCalled();
    }
    expect(all.some(({ focus }) => focus.mock.calls.length)).toBe(false);
  });
});

test("an element knows the widget that it stands in, from inside a shadow too", () => {
  const widget = { dataset: { widget: "" }, parentNode: null };
  const shadow = { parentNode: null, host: { dataset: {}, parentNode: widget } };
  expect(widgetOf({ dataset: {}, parentNode: shadow })).toBe(widget);
  expect(widgetOf({ dataset: {}, parentNode: null })).toBeNull();
});

/** A stage whose scene is `words` pixels high and has pictures that make it grow by `share` a pixel. */
function stage({ room, words, share, rows = 0 }) {
  const made = {
    ...{ floor: 1, room: () => room / made.now.zoom, now: { zoom: 1, picture: 300, rows } },
    tall: () => words + share * made.now.picture + made.now.rows,
    zoom: async (zoom) => Object.assign(made.now, { zoom }),
    picture: async (picture) => Object.assign(made.now, { picture }),
    cut: async (over) => made.now.rows > 0 && Object.assign(made.now, { rows: Math.max(0, made.now.rows - over) }),
  };
  return made;
}

describe("a scene that is fitted", () => {
  test.each([
    [{ room: 800, words: 200, share: 1 }],
    [{ room: 800, words: 100, share: 2 }],
    [{ room: 1200, words: 500, share: 1 }],
  ])("with %j has its pictures as high as there is room", async (fields) => {
    const one = stage(fields);
    await fitScene(one);
    expect(one.now.zoom).toBe(1);
    expect(one.room() - one.tall()).toBeGreaterThanOrEqual(-3);
    expect(one.room() - one.tall()).toBeLessThan(4);
  });

  test("leaves rows of its lists out before its pictures get too low", async () => {
    const one = stage({ room: 700, words: 100, share: 1, rows: 900 });
    await fitScene(one);
    expect(one.now.rows).toBeLessThan(900);
    expect([one.now.zoom, one.tall() <= one.room() + 3]).toEqual([1, true]);
  });

  test("of words alone grows, but not without end", async () => {
    const [short, long] = [stage({ room: 800, words: 600, share: 0 }), stage({ room: 800, words: 100, share: 0 })];
    await fitScene(short);
    await fitScene(long);
    expect(short.now.zoom).toBeGreaterThan(1);
    expect(short.tall()).toBeLessThanOrEqual(short.room() + 3);
    expect(long.now.zoom).toBe(1.8);
  });

  test("is made smaller where nothing else helps", async () => {
    const one = stage({ room: 400, words: 500, share: 1 });
    await fitScene(one);
    expect(one.now.zoom).toBeLessThan(1);
    expect(one.now.zoom).toBeGreaterThanOrEqual(0.4);
  });
});

describe("what covers a scene", () => {
  const sceneOf = () => {
    const written = [];
    class CSSStyleSheet {
      replaceSync(rules) {
        written.push(rules);
      }
    }
    const hosts = [];
    return { written, hosts, page: { defaultView: { CSSStyleSheet }, adoptedStyleSheets: [], querySelectorAll: () => hosts } };
  };
  const view = () => ({ shadowRoot: { adoptedStyleSheets: [], querySelectorAll: () => [] } });

  test("is written once while it stays the same, and anew for other parts", () => {
    const { written, page } = sceneOf();
    cover(page, ["picture"], []);
    cover(page, ["picture"], []);
    expect(written.length).toBe(1);
    cover(page, [], []);
    expect(written.length).toBe(2);
    expect(written[1]).not.toBe(written[0]);
  });

  test("covers nothing of a frame that has left", () => {
    expect(cover(null, ["picture"], [])).toBe(false);
  });

  test("covers views that come later, and says that there were some", () => {
    const { hosts, page } = sceneOf();
    expect(cover(page, [], ["matrix"])).toBe(true);
    expect(cover(page, [], ["matrix"])).toBe(false);
    hosts.push(view());
    expect(cover(page, [], ["matrix"])).toBe(true);
    expect(hosts[0].shadowRoot.adoptedStyleSheets).toEqual(page.adoptedStyleSheets);
    expect(cover(page, [], ["matrix"])).toBe(false);
  });
});
