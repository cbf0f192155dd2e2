/** What a saved file keeps: its address, the audience's guesses, what was changed in it. */
import { asked, writeScene } from "../../../viz/export/browser/page.js";
import { addressed } from "../../../viz/web/src/shared/element.js";
import { followed, hears, leaves, stateOf } from "../../../viz/web/src/slide/follow.js";
import { pack, unpack } from "../../../viz/web/src/shared/packed.js";
import { countedDigits, guessesOf } from "../../../viz/web/src/talk/ballot.js";

afterEach(() => vi.unstubAllGlobals());

describe("the address of a file", () => {
  test.each([["", 0], ["#scene=3", 2], ["#scene=0", 0], ["#scene=-2", 0], ["#scene=x", 0], ["#theme=dark&scene=2", 1]])("%j asks for scene %d", (hash, scene) => {
    vi.stubGlobal("location", { hash });
    expect(asked()).toBe(scene);
  });

  test("keeps what else it says", () => {
    const written = [];
    vi.stubGlobal("location", { hash: "#theme=dark&scene=2" });
    vi.stubGlobal("history", { replaceState: (_state, _title, url) => written.push(url) });
    writeScene(4);
    expect([written, addressed().get("theme")]).toEqual([["#theme=dark&scene=5"], "dark"]);
  });
});

describe("digits that were counted as guesses", () => {
  let time = 0;
  const among = (count) => (number) => number >= 1 && number <= count;
  const typed = (...keys) => {
    const digits = countedDigits(() => time);
    keys.forEach((key) => (typeof key === "number" ? digits.add(key, key <= 2) : (time += Number(key))));
    return digits;
  };

  test("are the number of a scene where Enter follows at once, and so many guesses less", () => {
    expect(typed(4).begun()).toBe(true);
    expect(typed(4).take(among(20))).toEqual({ number: 4, guessed: 0 });
    expect(typed(1, "200", 2).take(among(20))).toEqual({ number: 12, guessed: 2 });
    expect(typed(2, "200", 4).take(among(20))).toEqual({ number: 4, guessed: 0 });
    expect(typed(1, "900", 2, "900", 1, "900", 2).take(among(20))).toEqual({ number: 12, guessed: 2 });
  });

  test("stay guesses where there is no such scene", () => {
    expect(typed(1, "900", 4).take(among(3))).toBe(null);
  });

  test("are guesses and nothing else after a while, or once they were taken", () => {
    expect(typed(1, "1600").begun()).toBe(false);
    expect(typed(1, "1600", 2).take(among(20))).toEqual({ number: 2, guessed: 1 });
    const digits = typed(1);
    digits.take(among(20));
    expect(digits.begun()).toBe(false);
  });
});

describe("the guesses of an audience", () => {
  const SCENES = [{ title: "a", guess: ["x", "y"] }, { title: "b", guess: [] }, { title: "a", guess: ["x", "y"] }];
  const storage = (fields = {}) => {
    const kept = new Map();
    vi.stubGlobal("localStorage", { getItem: (name) => kept.get(name) ?? null, setItem: (name, text) => kept.set(name, text), ...fields });
    return kept;
  };

  test("are counted, taken back and cleared", () => {
    storage();
    const guesses = guessesOf("talk", SCENES);
    for (const choice of [1, 2, 2, 3, 0]) guesses.add(0, choice);
    expect([guesses.counts(0), guesses.total(0), guesses.any()]).toEqual([[1, 2], 3, true]);
    guesses.takeBack(0);
    expect(guesses.counts(0)).toEqual([1, 1]);
    guesses.clear();
    expect([guesses.total(0), guesses.any()]).toEqual([0, false]);
  });

  test("of two scenes with the same words are kept apart, wherever they stand", () => {
    storage();
    guessesOf("talk", SCENES).add(2, 1);
    expect(guessesOf("talk", SCENES).counts(0)).toEqual([0, 0]);
    expect(guessesOf("talk", SCENES.slice(1).concat(SCENES[0])).counts(2)).toEqual([1, 0]);
    expect(guessesOf("another", SCENES).any()).toBe(false);
  });

  test("stay while the page does where the browser keeps nothing", () => {
    const refuse = () => {
      throw new Error("private window");
    };
    storage({ getItem: refuse, setItem: refuse });
    guessesOf("kept nowhere", SCENES).add(0, 2);
    expect(guessesOf("kept nowhere", SCENES).counts(0)).toEqual([0, 1]);
  });

  test("are saved as text that no spreadsheet runs", async () => {
    storage();
    const handed = [];
    vi.stubGlobal("document", { createElement: () => ({ click() {} }) });
    vi.stubGlobal("URL", { createObjectURL: (blob) => (handed.push(blob), "blob:"), revokeObjectURL() {} });
    vi.stubGlobal("setTimeout", () => 0);
    const guess = ["+1", "\\o/", 'say "=2"', "a,-b;@c\td\n=e", "2=2", "\t=\r-"];
    const guesses = guessesOf("saved", [{ title: "=HYPERLINK(1)", guess }]);
    guesses.add(0, 1);
    guesses.save();
    const cells = ["\\+1", "\\\\o/", 'say ""\\=2""', "a,\\-b;\\@c\td\n\\=e", "2=2", "\\\t\\=\r\\-"];
    const rows = cells.map((cell, at) => `"1","\\=HYPERLINK(1)","${cell}","${at ? 0 : 1}"\n`);
    expect(await handed[0].text()).toBe(`"scene","title","choice","guesses"\n${rows.join("")}`);
  });

  test("that somebody else wrote there are left out", () => {
    const kept = storage();
    guessesOf("odd", SCENES).add(0, 1);
    kept.set([...kept.keys()][0], "1,9,x,,2,-1");
    expect(guessesOf("odd", SCENES).counts(0)).toEqual([1, 1]);
  });
});

describe("a part of a file", () => {
  const heads = pack({ layers: 1, heads: 2, queries: 1, keys: 2 }, Uint8Array.of(1, 2, 3, 4));
  const map = pack({ title: "t", follows: "Cross-attention", rows: ["a"], columns: ["x", "y"], pinned: [null, 1] }, Uint8Array.of(9, 9));
  const body = new Uint8Array([...heads, ...map]);
  const made = () => {
    const overview = { is: "component", name: "overview", follows: true, at: [0, heads.length] };
    const heatmap = { is: "component", name: "heatmap", follows: true, at: [heads.length, map.length] };
    const words = { is: "words", text: "" };
    const player = { is: "component", name: "decode_player", data: { start: 0 } };
    const slide = { parts: [{ is: "columns", columns: [[overview], [words, heatmap]] }, player] };
    const file = { header: {}, body };
    return { slide, overview, heatmap, words, player, view: { state: stateOf(slide, file), file } };
  };

  test("is found in its columns", () => {
    const { slide, overview, words, heatmap, player } = made();
    expect(leaves(slide.parts)).toEqual([overview, words, heatmap, player]);
  });

  test("is as it was sent until something is chosen", () => {
    const { heatmap, view } = made();
    expect([...followed(heatmap, view)]).toEqual([...map]);
  });

  test("follows the head that is chosen", () => {
    const { overview, heatmap, view } = made();
    expect(hears(overview, view, "pick", { layer: 0, head: 1 })).toBe(true);
    const found = unpack(followed(heatmap, view));
    expect(found.header).toMatchObject({ title: "Cross-attention · layer 1, head 2", head: 1, sketch: { rows: 1, columns: 2 } });
    expect([...found.body]).toEqual([3, 4]);
  });

  test.each([
    ["pin", { side: "query", index: 0 }, { pinned: [0, 1] }],
    ["pin", { side: "key", index: 1 }, { pinned: [null, null] }],
    ["cell", { row: 0, column: 0 }, { chosen: [0, 0], pinned: [0, 0] }],
    ["beside", { heads: [1] }, { beside: [1] }],
  ])("that tells of a %s %j changes to %j", (name, value, expected) => {
    const { heatmap, view } = made();
    hears(heatmap, view, name, value);
    expect(unpack(followed(heatmap, view)).header).toMatchObject(expected);
  });

  test("that pins a word of a sentence lets go of it again", () => {
    const { player, view } = made();
    player.data = { pinned: { source: null, target: 2 } };
    expect(hears(player, view, "pin", { side: "source", index: 1 })).toBe(true);
    expect(followed(player, view).pinned).toEqual({ source: 1, target: 2 });
    hears(player, view, "pin", { side: "source", index: 1 });
    expect(followed(player, view).pinned).toEqual({ source: null, target: 2 });
  });

  test("keeps the step it was left at, without being drawn again", () => {
    const { player, view } = made();
    expect(hears(player, view, "step", 4)).toBe(false);
    expect(followed(player, view)).toEqual({ start: 4 });
    expect(hears(player, view, "unknown", 1)).toBe(false);
  });

  test("that is left is found again as it was", () => {
    const { slide, view } = made();
    view.state.chosen = { layer: 0, head: 0 };
    expect(stateOf(slide, view.file)).toBe(view.state);
  });
});
