/** What a live file works out of a run: words, telling, alignment, labels, levels, state. */
import { engine } from "../../../viz/engine/engine.js";
import { bestAligning, isSpecial, mapOf, piecesOf, specialPlaces } from "../../../viz/export/live/attention_map.js";
import { fine, labelText, percentOf, quantised, quoted, readable, rowInWords, signed } from "../../../viz/export/live/attention_map.js";
import { connections, explanation, translation } from "../../../viz/export/live/connection.js";
import { playerData } from "../../../viz/export/live/decoding_views.js";
import { headInWords } from "../../../viz/export/live/head_views.js";
import live from "../../../viz/export/live/live.js";
import { FREELY, arrive, begun, changesText, hearing, pinName } from "../../../viz/export/live/state.js";
import { tellingWord } from "../../../viz/export/live/telling.js";
import { mergedWords } from "../../../viz/export/live/word_view.js";
import { FINE_FULL, FINE_MASKED, FULL, MASKED, unpack } from "../../../viz/web/src/shared/packed.js";
import { KERNEL, toyModel } from "../engine/toy_model.js";

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

  test.each([
    [[" a", ">>fr<<", "b"], [" a", ">>fr<<", "b"]],
    [[" don", "'", ">>fr<<", "t"], [" don", "'", ">>fr<<", "t"]],
  ])("%j are %j where the model names a token that stands for no text", (tokens, words) => {
    expect(mergedWords(tokens, [">>fr<<"]).map(({ text }) => text)).toEqual(words);
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
    expect(["</s>", "<pad>", "<s>", "cat"].map((token) => isSpecial(token))).toEqual([true, true, true, false]);
  });

  test("stands for no text where the model says so", () => {
    expect([">>fr<<", "cat"].map((token) => isSpecial(token, [">>fr<<"]))).toEqual([true, false]);
    expect(piecesOf([">>fr<<", "cat"], [">>fr<<"])).toEqual([
      { text: ">>fr<<", space: true, special: true },
      { text: "cat", space: false, special: false },
    ]);
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
  const maps = { cross: { shape, data, mask: new Uint8Array(tokens.length * sourceTokens.length).fill(1) } };
  return { tokens, sourceTokens, maps, unknown: [], stopped: "eos", tree: null };
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

describe("the tag of a language before a source", () => {
  const source = [">>fr<<", " der", " hund", "</s>"];
  const named = (...heads) => mapOf({ ...runOf(heads, TARGET, source), special: [">>fr<<", "</s>"] }, "cross");

  test("is no word of it", () => {
    expect(specialPlaces(named(GOOD))).toEqual([[3], [0, 3]]);
    expect(tellingWord(named([row(1), row(2), row(0), row(3)]))).toMatchObject({ kind: "clear", row: 1, key: 2 });
  });

  test("is nothing to be aligned to", () => {
    const atTag = [row(0), row(0), row(0), row(3)];
    expect(bestAligning(named(atTag, [row(1, 0.5), row(1, 0.5), row(2, 0.5), row(3)]))).toMatchObject({ layer: 0, head: 1 });
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
    for (const name of ["target", "source", "cross key", "encoder key", "decoder key"]) {
      const state = begun({ place: { layer: 0, head: 0 }, pins: { [name]: pin } });
      arrive(state, runOf([FLAT, GOOD], TARGET, SOURCE), true);
      expect([name, state.pins[name], state.place]).toEqual([name, kept, { layer: 0, head: 0 }]);
    }
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
  const state = begun({ kind: "cross", pins: { target: 1 }, beside: [2], run: { ids: [5, 6], tree }, constraints: { prefix: [5], forbidden: [[7]] } });
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
    ["card", ["candidate", 9], again({ ...FREELY, view: "decode", beam: 1, step: 1, constraints: { prefix: [5, 9], forbidden: [[7]] } })],
    ["switches", ["off", [["cross", 0, 1]]], again({ off: [["cross", 0, 1]], target: null, current: 0 })],
    ["best", ["choice", { number: 1 }], again({ target: [5, 7], current: 1 })],
    ["tree", ["node", { row: 1, column: 1 }], again({ target: [5, 7], current: 1, step: 1, pins: { target: 1 } })],
    ["player", ["word", 0], change({ pins: { target: 0 }, step: 0 })],
    ["player", ["pick", { step: 1, id: 8 }], again({ ...FREELY, beam: 1, step: 1, pins: { target: 1 }, constraints: { prefix: [5, 8], forbidden: [[7]] } })],
    ["player", ["forbid", { step: 0, id: 4 }], again({ ...FREELY, step: 0, pins: { target: 0 }, constraints: { forbidden: [[7], [4]] } })],
    ["player", ["step", 0], change({ step: 0, pins: { target: 0 } })],
  ])("%s says %j", (place, [name, value], expected) => {
    heard[place](name, value);
    expect(said).toEqual(expected);
  });

  test("of the heads of the player is kept, with nothing to be drawn again", () => {
    const heads = { cross: "2.1", own: "1.mean" };
    heard.player("view", heads);
    expect([state.chosen, said]).toEqual([{ crossHead: "2.1", ownHead: "1.mean" }, []]);
    heads.cross = "2.2"; // It is the player's own.
    expect(state.chosen.crossHead).toBe("2.1");
  });
});

test.each([
  [{}, "aligning", "2.mean"],
  [{ crossHead: "2.1", ownHead: "1.mean" }, "2.1", "1.mean"],
  [{ crossHead: "3.1", ownHead: "1.3" }, "aligning", "2.mean"], // Of another model.
])("the player begins with the heads %j as %j and %j", (chosen, cross, own) => {
  const run = engine(toyModel(), KERNEL).translate("the cat");
  const { header } = unpack(playerData(run, { id: "1", step: 0, aligning: { layer: 0, head: 0 }, ...chosen }, {}));
  expect([header.cross.chosen, header.own.chosen]).toEqual([cross, own]);
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

/** A model whose answers are given by hand: `asked` are its requests, { text, options, answer, refuse }. */
function answered() {
  const asked = [];
  const translate = (text, options) => new Promise((answer, refuse) => asked.push({ text, options, answer, refuse }));
  return { asked, of: () => ({ translate }) };
}

const settled = () => new Promise((done) => setTimeout(done));

describe("a control that is used before the answer is there", () => {
  const SHORT = runOf([[[0.6, 0.2, 0.2], [0.2, 0.6, 0.2]]], [" Nein", "</s>"], [" no", ".", "</s>"]);
  const LONG = () => runOf([FLAT, GOOD], TARGET, SOURCE);
  const page = (fields = {}) => {
    const state = begun(fields);
    const model = answered();
    const says = { textContent: "" };
    const shown = vi.fn();
    const ask = translation(state, { busy: { setAttribute() {}, removeAttribute() {} }, says }, model.of, shown);
    return { state, ask, asked: model.asked, says, shown };
  };
  const kept = { keep: true };

  test("leaves the first sentence its telling word", async () => {
    const { state, ask, asked, shown } = page();
    ask({ text: "der hund schläft", ...FREELY });
    ask({ beam: 4, ...FREELY }, kept);
    for (const { answer } of asked) answer(LONG());
    await settled();
    expect(asked.map(({ options }) => options.beam)).toEqual([1, 4]);
    expect(shown).toHaveBeenCalledOnce();
    expect(state).toMatchObject({ number: 1, kind: "cross", place: { layer: 0, head: 1 }, run: { at: 0 } });
    expect(state.pins.target).toBeLessThan(TARGET.length);
  });

  test("leaves a shorter sentence none of the pins before it", async () => {
    const { state, ask, asked } = page();
    ask({ text: "der hund schläft", ...FREELY });
    asked[0].answer(LONG());
    await settled();
    Object.assign(state, { kind: "encoder", pins: { source: 3 }, place: { layer: 0, head: 1 } });
    ask({ text: "no.", ...FREELY });
    ask({ beam: 4, ...FREELY }, kept);
    for (const { answer } of asked.slice(1)) answer(SHORT);
    await settled();
    expect(state).toMatchObject({ number: 2, kind: "cross", place: { layer: 0, head: 0 } });
    expect(state.pins.source).toBeUndefined();
  });

  test("changes what is shown once it is there", async () => {
    const { state, ask, asked } = page();
    ask({ text: "der hund schläft", ...FREELY });
    asked[0].answer(LONG());
    await settled();
    Object.assign(state, { kind: "encoder", pins: { source: 3 }, place: { layer: 0, head: 0 } });
    ask({ beam: 4, ...FREELY }, kept);
    asked[1].answer(LONG());
    await settled();
    expect(state).toMatchObject({ kind: "encoder", pins: { source: 3 }, place: { layer: 0, head: 0 } });
  });

  test("leaves the tour where it has begun", async () => {
    const { state, ask, asked } = page();
    ask({ text: "no.", ...FREELY });
    ask({ text: "der hund schläft", ...FREELY, kind: "encoder", place: { layer: 0, head: 0 }, pins: { source: 2 } }, kept);
    ask({ beam: 4, ...FREELY }, kept);
    for (const { answer } of asked) answer(LONG());
    await settled();
    expect(state).toMatchObject({ kind: "encoder", place: { layer: 0, head: 0 }, pins: { source: 2 } });
  });

  test("asks nothing of a new sentence that was chosen in the one before it", async () => {
    const { ask, asked } = page();
    ask({ text: "der hund schläft", ...FREELY });
    asked[0].answer(LONG());
    await settled();
    ask({ text: "no.", ...FREELY });
    ask({ ...FREELY, constraints: { prefix: [7, 8] } }, kept);
    ask({ target: [7, 8], current: 1 }, kept);
    expect(asked.slice(1).map(({ options }) => [options.constraints, options.target])).toEqual(Array(3).fill([{}, null]));
    asked[3].answer(SHORT);
    await settled();
    ask({ ...FREELY, constraints: { prefix: [9] } }, kept);
    expect(asked[4].options.constraints).toEqual({ prefix: [9] });
  });
});

describe("what a run rests on", () => {
  const page = (...answers) => {
    const state = begun({ run: { ids: [1] } });
    const explain = vi.fn(async () => {
      const found = answers.shift();
      if (found instanceof Error) throw found;
      return found;
    });
    const ask = explanation(() => ({ explain }), vi.fn(() => ask(state)));
    return { state, ask, explain };
  };

  test("is asked for again once it gave way", async () => {
    const { state, ask, explain } = page(null, null, { effects: [] });
    await ask(state);
    await settled();
    expect([state.run.explained, explain.mock.calls.length]).toEqual([{ effects: [] }, 3]);
  });

  test("is asked of the model that has made it, though another is chosen by then", async () => {
    const of = vi.fn(() => ({ explain: async () => ({ effects: [] }) }));
    await explanation(of, () => {})(begun({ at: 1, run: { ids: [1], at: 0 } }));
    expect(of.mock.calls).toEqual([[0]]);
  });

  test("is not where another run is shown by then", async () => {
    const { state, ask, explain } = page(null, { effects: [] });
    const first = ask(state);
    state.run = { ids: [2], explained: { effects: [] } };
    await first;
    await settled();
    expect(explain).toHaveBeenCalledOnce();
  });

  test("is not after a fault", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    const { state, ask, explain } = page(new Error("fault"), { effects: [] });
    await ask(state);
    await settled();
    expect(explain).toHaveBeenCalledOnce();
    vi.restoreAllMocks();
  });
});

describe("a scene that was saved", () => {
  afterEach(() => vi.unstubAllGlobals());

  /** An element of a page that only holds what is put into it. */
  function node() {
    const inside = [];
    const append = (...more) => void inside.push(...more);
    const appendChild = (child) => (append(child), child);
    const replaceChildren = (...more) => void inside.splice(0, inside.length, ...more);
    const own = { append, appendChild, replaceChildren, attachShadow: node, setAttribute() {}, removeAttribute() {}, focus() {}, blur() {} };
    return Object.defineProperties({ ...own, style: {}, dataset: {} }, {
      children: { get: () => inside },
      firstChild: { get: () => inside[0] },
      lastChild: { get: () => inside.at(-1) },
    });
  }

  /** A live scene of Decode with a toy model: what it `asked` the model for, and how its player `told` anything. */
  async function scene(fields) {
    const model = engine(toyModel(), KERNEL);
    const asked = [];
    class Worker {
      postMessage({ number, load, text, options }) {
        if (!load) asked.push({ text, ...options });
        queueMicrotask(() => this.onmessage({ data: { number, found: load ? {} : model.translate(text, options) } }));
      }
    }
    vi.stubGlobal("Worker", Worker);
    vi.stubGlobal("URL", { createObjectURL: () => "" });
    vi.stubGlobal("fetch", async () => ({ ok: true, arrayBuffer: async () => new ArrayBuffer(4) }));
    vi.stubGlobal("document", { createElement: node, getElementById: () => null });
    const drawn = vi.fn();
    const components = { decode_player: ({ data }) => drawn(unpack(data).header), beam_tree() {}, versions() {} };
    const given = { model: 0, sentence: "the cat", palette: {}, view: "decode", beam: 4, ...fields };
    const scenes = live.scenes({ models: [{ file: "model.bin", name: "toy" }], styles: {} }, components);
    const { hear } = scenes.open({ live: given, omit: [] }, { textContent: "" });
    return { model, asked, drawn, hear };
  }

  test.each([
    ["pick", (ids) => ({ beam: 1, constraints: { prefix: [...ids.slice(0, 2), 9], forbidden: [[15]] } })],
    ["forbid", () => ({ beam: 4, constraints: { forbidden: [[15], [9]] } })],
  ])("goes on from what it shows at a %s", async (name, expected) => {
    const forbidden = [[15]];
    const { tree } = engine(toyModel(), KERNEL).translate("the cat", { beam: 4, constraints: { forbidden } });
    const { ids } = tree.best[1];
    const { asked, drawn, hear } = await scene({ saved: { target: ids, constraints: { forbidden } } });
    await hear(name, { step: 2, id: 9 });
    await vi.waitFor(() => expect(drawn).toHaveBeenCalledTimes(2));
    expect(asked[0]).toMatchObject({ text: "the cat", target: ids, constraints: { forbidden } });
    expect(drawn.mock.calls[0][0].steps.map(({ chosen }) => chosen.id)).toEqual(ids);
    expect(asked[1]).toMatchObject({ text: "the cat", target: null, ...expected(ids) });
    expect(asked[1].constraints).toEqual(expected(ids).constraints);
  });

  test("with nothing saved of its decoding is translated freely", async () => {
    const { model, asked, hear } = await scene({ beam: 1 });
    await hear("pick", { step: 1, id: 9 });
    await vi.waitFor(() => expect(asked).toHaveLength(2));
    expect(asked[0]).toMatchObject({ beam: 1, constraints: {}, target: null });
    expect(asked[1].constraints).toEqual({ prefix: [model.translate("the cat").ids[0], 9], forbidden: [] });
  });
});
