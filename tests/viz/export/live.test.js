/** What a live file works out of a run: words, telling, alignment, labels, levels, state. */
import { bestAligning, fine, isSpecial, labelText, mapOf, percentOf, quantised, quoted, readable, rowInWords, signed } from "../../../viz/export/live/attention_map.js";
import { connections } from "../../../viz/export/live/connection.js";
import { headInWords } from "../../../viz/export/live/head_views.js";
import { FREELY, arrive, begun, changesText, hearing, pinName } from "../../../viz/export/live/state.js";
import { tellingWord } from "../../../viz/export/live/telling.js";
import { mergedWords } from "../../../viz/export/live/word_view.js";
import { FINE_FULL, FINE_MASKED, FULL, MASKED } from "../../../viz/web/src/shared/packed.js";

describe("the words of tokens", () => {
  test.each([
    [[" the", " ca", "t", ".", "</s>"], [" the", " cat", ".", "</s>"]],
    [[" don", "'", "t"], [" don't"]],
    [[" (", "a", ")"], [" (", "a", ")"]],
    [[" 3", ".", "5"], [" 3.5"]],
    [[" U", "-", "Bahn", " f"], [" U-Bahn", " f"]],
    [[" 中", "文"], [" 中", "文"]],
    [[" caf", "<0xC3>", "<0xA9>"], [" café"]],
    [[" x", "<0xC3>", "y"], [" x<0xC3>y"]],
    [["a", "b"], ["a", "b"]],
    [[" a", " ", "b"], [" a", " b"]],
    [["<unk>", " a", "<unk>"], ["<unk>", " a", "<unk>"]],
    [[], []],
  ])("%j are %j", (tokens, words) => {
    const found = mergedWords(tokens);
    expect(found.map(({ text }) => text)).toEqual(words);
    expect(found.flatMap(({ from, to }) => tokens.slice(from, to))).toEqual(tokens);
  });
});

describe("a token that people read", () => {
  test.each([[" cat", "cat"], [" ", "␣"], ["", "␣"], ["a\u202eb", "a\\u202eb"], ["\u0000", "\\u0000"], [" <b>", "<b>"]])("%j is %j", (token, read) => {
    expect(readable(token)).toBe(read);
  });

  test.each([
    ["short", 18, "short"],
    ["a very long token it is", 10, "a very lo…"],
    ["中文字幕", 8, "中文字幕"],
    ["中文字幕很", 8, "中文字…"],
  ])("%j in the width of %s letters is %j", (token, longest, label) => {
    expect(labelText(token, longest)).toBe(label);
  });

  test("stands isolated in a sentence", () => {
    expect(quoted(" cat")).toBe("“\u2068cat\u2069”");
    expect(["</s>", "<pad>", "<s>", "cat"].map(isSpecial)).toEqual([true, true, true, false]);
  });
});

test.each([[0, "0%"], [0.0001, "<0.1%"], [0.0012, "0.1%"], [0.0991, "9.9%"], [0.0996, "10%"], [1, "100%"]])("the share %d is %s", (share, text) => {
  expect(percentOf(share)).toBe(text);
});

test.each([[-1.234, 2, false, "−1.23"], [1.235, 1, true, "+1.2"], [0, 2, true, "+0.00"]])("%d with %d digits, signed %s, is %s", (value, digits, plus, text) => {
  expect(signed(value, digits, plus)).toBe(text);
});

test.each([
  [[0.1, 0.6, 0.25, 0.05], "“\u2068q\u2069” looks at “\u2068b\u2069” 0.60, “\u2068c\u2069” 0.25, “\u2068a\u2069” 0.10."],
  [[0, 0, 1, 0], "“\u2068q\u2069” looks at “\u2068c\u2069” 1.00."],
  [[0.994, 0.004, 0.002, 0], "“\u2068q\u2069” looks at “\u2068a\u2069” 0.99."],
  [[0, 0, 0, 0], "“\u2068q\u2069” may attend to nothing that is shown."],
])("the weights %j in words", (weights, words) => {
  expect(rowInWords(" q", [" a", " b", " c", " d"], weights)).toBe(words);
});

describe("levels of weights", () => {
  test.each([[0, 0], [1, FULL], [0.5, 127], [2, FULL], [-1, 0]])("%d is byte %d", (weight, byte) => {
    expect([...quantised([weight], () => true)]).toEqual([byte]);
  });

  test("print as the weights do", () => {
    const weights = Array.from({ length: 2001 }, (_, at) => (at + 0.41) / 2003);
    const bytes = quantised(weights, () => true);
    weights.forEach((weight, at) => expect((bytes[at] / FULL).toFixed(2)).toBe(weight.toFixed(2)));
    const levels = new Uint16Array(fine(weights, () => true).buffer);
    weights.forEach((weight, at) => expect((levels[at] / FINE_FULL).toFixed(3)).toBe(weight.toFixed(3)));
  });

  test("say what is masked", () => {
    expect([...quantised([0.5, 0.5], (at) => at === 1)]).toEqual([MASKED, 127]);
    expect([...new Uint16Array(fine([0.5, 1], (at) => at === 1).buffer)]).toEqual([FINE_MASKED, FINE_FULL]);
  });
});

/** A run of one layer whose cross-attention has these rows of weights a head. */
function runOf(heads, tokens, sourceTokens) {
  const shape = [1, heads.length, tokens.length, sourceTokens.length];
  const data = Float32Array.from(heads.flat(2));
  return { tokens, sourceTokens, maps: { cross: { shape, data, mask: new Uint8Array(tokens.length * sourceTokens.length).fill(1) } } };
}
const SOURCE = [" der", " hund", " schläft", "</s>"];
const TARGET = [" the", " dog", " sleeps", "</s>"];
const row = (at, share = 0.85) => Array.from({ length: 4 }, (_, key) => (key === at ? share : (1 - share) / 3));
const GOOD = [row(0), row(1), row(2), row(3)];
const FLAT = [row(0, 0.25), row(0, 0.25), row(0, 0.25), row(0, 0.25)];
const cross = (...heads) => mapOf(runOf(heads, TARGET, SOURCE), "cross");

describe("the head that aligns best", () => {
  test.each([
    [[GOOD, FLAT], [], { layer: 0, head: 0 }],
    [[FLAT, GOOD], [], { layer: 0, head: 1 }],
    [[FLAT, GOOD], [["cross", 0, 1]], { layer: 0, head: 0 }],
    [[FLAT, GOOD], [["encoder", 0, 1]], { layer: 0, head: 1 }],
    [[GOOD], [["cross", 0, 0]], { layer: 0, head: 0 }],
  ])("of case %#", (heads, off, expected) => {
    expect(bestAligning(cross(...heads), off)).toMatchObject(expected);
  });
});

describe("the word that tells most", () => {
  const kindOf = (heads, tokens = TARGET, source = SOURCE, off = []) => tellingWord(mapOf(runOf(heads, tokens, source), "cross"), off);

  test("is a clear one where nothing else is to be said", () => {
    expect(kindOf([GOOD])).toMatchObject({ kind: "clear", place: { layer: 0, head: 0 } });
  });

  test("is one that looks back where the order changes", () => {
    const [tokens, source] = [[" Nachts", " singt", " Peter", "</s>"], [" sings", " Peter", " tonight", "</s>"]];
    expect(kindOf([[row(2), row(0), row(1), row(3)]], tokens, source)).toMatchObject({ kind: "back", row: 1, key: 0 });
  });

  test("is none that looks at what a later word is written for", () => {
    const [tokens, source] = [[" at", " morning", " evening", "</s>"], [" ab", " cd", " ef", "</s>"]];
    expect(kindOf([[row(0), row(1), row(1), row(3)]], tokens, source)).toMatchObject({ kind: "clear", row: 2, key: 1 });
  });

  test("is weak where all look at all", () => {
    expect(["weak", "unread"]).toContain(kindOf([FLAT]).kind);
  });

  test("is a source word that nothing reads", () => {
    const tokens = [" a", " b", "</s>"];
    expect(kindOf([[row(0), row(0), row(3)]], tokens, [" x", " verlassen", " y", "</s>"])).toMatchObject({ kind: "unread", row: null, key: 1 });
  });

  test("is a name whose pieces are copied", () => {
    const tokens = [" Zo", "ya", " x", "</s>"];
    expect(kindOf([GOOD], tokens, tokens)).toMatchObject({ kind: "copied", row: 0, key: 0 });
  });

  test("is shown by a head that is on", () => {
    expect(kindOf([GOOD, FLAT], TARGET, SOURCE, [["cross", 0, 0]]).place.head).toBe(1);
    expect(kindOf([GOOD], TARGET, SOURCE, [["cross", 0, 0]])).toBeNull();
  });

  test("is none without words", () => {
    expect(kindOf([[[1]]], ["</s>"], ["</s>"])).toBeNull();
  });
});

describe("the state of a page", () => {
  test("begins with its telling word", () => {
    const state = begun({ text: "x", pins: { target: 7 } });
    arrive(state, runOf([FLAT, GOOD], TARGET, SOURCE), false);
    expect(state).toMatchObject({ number: 1, kind: "cross", step: 0, aligning: { head: 1 }, place: { layer: 0, head: 1 } });
    expect(state.pins.target).toBeLessThan(TARGET.length);
  });

  test.each([[2, 2], [4, null], [null, null]])("that is kept has its pin %s at %s", (pin, kept) => {
    const state = begun({ place: { layer: 0, head: 0 }, pins: { target: pin } });
    arrive(state, runOf([FLAT, GOOD], TARGET, SOURCE), true);
    expect([state.pins.target, state.place]).toEqual([kept, { layer: 0, head: 0 }]);
  });

  test.each([
    [[], "", ""],
    [[["cross", 0, 1]], "", "cross.1.2:off"],
    [[["encoder", 2, 0]], "mask.cross.1.1.1:block", "mask.cross.1.1.1:block,encoder.3.1:off"],
  ])("with the heads %j off and %j has the changes %j", (off, changes, text) => {
    expect(changesText({ off, changes })).toBe(text);
  });

  test.each([["cross", "query", "target"], ["cross", "key", "cross key"], ["encoder", "query", "source"], ["decoder", "query", "target"]])(
    "keeps a pin of %s %s under %j",
    (kind, side, name) => {
      expect(pinName(kind, side)).toBe(name);
    },
  );
});

describe("what components tell", () => {
  const tree = { best: [{ ids: [5, 6] }, { ids: [5, 7] }], nodes: [{ place: 1, position: 1, ids: [5, 7] }] };
  const state = begun({ kind: "cross", pins: { target: 1 }, beside: [2], run: { ids: [5, 6], tree }, constraints: { prefix: [5] } });
  let said = [];
  const heard = hearing(state, { change: (fields) => said.push(["change", fields]), translate: (fields, how) => said.push(["translate", fields, how]) });
  const again = (fields) => [["translate", fields, { keep: true }]];
  const change = (fields) => [["change", fields]];
  beforeEach(() => (said = []));

  test.each([
    ["overview", ["pick", { layer: 0, head: 2 }], change({ place: { layer: 0, head: 2 }, beside: [] })],
    ["head", ["beside", { heads: [1] }], change({ beside: [1] })],
    ["head", ["pin", { side: "key", index: 3 }], change({ pins: { target: 1, "cross key": 3 } })],
    ["head", ["cell", { row: 0, column: 2 }], change({ pins: { target: 0, "cross key": 2 } })],
    ["tokens", ["pin", { position: 1 }], change({ pins: { target: null } })],
    ["card", ["close", 1], change({ pins: { target: null } })],
    ["card", ["head", ["encoder", 1, 0]], change({ kind: "encoder", place: { layer: 1, head: 0 }, view: "heatmap" })],
    ["card", ["open", 1], change({ view: "decode", step: 1 })],
    ["card", ["candidate", 9], again({ ...FREELY, view: "decode", beam: 1, step: 1, constraints: { prefix: [5, 9] } })],
    ["switches", ["off", [["cross", 0, 1]]], again({ off: [["cross", 0, 1]], target: null, current: 0 })],
    ["best", ["choice", { number: 1 }], again({ target: [5, 7], current: 1 })],
    ["tree", ["node", { row: 1, column: 1 }], again({ target: [5, 7], current: 1, step: 1, pins: { target: 1 } })],
    ["player", ["word", 0], change({ pins: { target: 0 }, step: 0 })],
    ["player", ["pick", { step: 1, id: 8 }], again({ ...FREELY, beam: 1, step: 1, pins: { target: 1 }, constraints: { prefix: [5, 8], forbidden: [] } })],
    ["player", ["forbid", { step: 0, id: 4 }], again({ ...FREELY, step: 0, pins: { target: 0 }, constraints: { prefix: [5], forbidden: [[4]] } })],
    ["player", ["step", 0], change({ step: 0, pins: { target: 0 } })],
  ])("%s says %j", (place, [name, value], expected) => {
    heard[place](name, value);
    expect(said).toEqual(expected);
  });
});

test("the strongest link of a text as long as a model reads is found", () => {
  const tokens = Array.from({ length: 512 }, (_, at) => ` t${at}`);
  const data = new Float32Array(512 * 512).fill(0.001);
  data[7 * 512 + 9] = 0.5;
  const map = mapOf({ tokens, sourceTokens: tokens, maps: { encoder: { shape: [1, 1, 512, 512], data, mask: null } } }, "encoder");
  expect(headInWords(map, { layer: 0, head: 0 }, null)).toContain("“\u2068t7\u2069” → “\u2068t9\u2069”, 0.50");
});

describe("a model in a file beside the page", () => {
  afterEach(() => vi.unstubAllGlobals());

  test("is fetched again after it could not be", async () => {
    const ended = [];
    class Worker {
      postMessage({ number }) {
        queueMicrotask(() => this.onmessage({ data: { number, found: "translated" } }));
      }
      terminate() {
        ended.push(this);
      }
    }
    const bytes = { ok: true, arrayBuffer: async () => new ArrayBuffer(4) };
    const fetch = vi.fn().mockRejectedValueOnce(new TypeError("offline")).mockResolvedValue(bytes);
    vi.stubGlobal("Worker", Worker);
    vi.stubGlobal("fetch", fetch);
    vi.stubGlobal("document", { getElementById: () => null });
    vi.stubGlobal("URL", { createObjectURL: () => "" });
    const of = connections([{ file: "model.bin" }]);
    await expect(of(0).translate("One.", {})).rejects.toThrow("could not be fetched");
    expect(ended).toHaveLength(1);
    expect(await of(0).translate("One.", {})).toBe("translated");
    expect(await of(0).translate("Two.", {})).toBe("translated");
    expect(fetch).toHaveBeenCalledTimes(2);
  });
});
