/** The model: kernel, attention, search and what is done with them. */
import { attend, embedding } from "../../../viz/engine/layers.js";
import { changesOf } from "../../../viz/engine/explain.js";
import { engine, InputError } from "../../../viz/engine/engine.js";
import { kernel, readWeights } from "../../../viz/engine/weights.js";
import { rankOf, top } from "../../../viz/engine/search.js";
import { END, PAD } from "../../../viz/engine/tokenizer.js";
import serve from "../../../viz/engine/worker.js";
import { KERNEL, sentencePiece, toyModel } from "./toy_model.js";

const sum = (numbers) => numbers.reduce((total, one) => total + one, 0);

describe("the kernel", () => {
  test.each([[1, 4, 4], [3, 4, 7], [5, 8, 3], [2, 12, 1]])("%d rows of %d numbers times a matrix with %d rows", (rows, inner, outer) => {
    const { matrix, times, row } = kernel(KERNEL, outer * inner + 4);
    const made = matrix(outer, inner);
    made.values.set(Float32Array.from({ length: outer * inner }, (_, at) => (at % 7) - 3));
    const x = Float32Array.from({ length: rows * inner }, (_, at) => (at % 5) - 2);
    const expected = Array.from({ length: rows * outer }, (_, at) => {
      const [own, column] = [x.subarray(Math.floor(at / outer) * inner), made.values.subarray((at % outer) * inner)];
      return sum(Array.from({ length: inner }, (_, i) => own[i] * column[i]));
    });
    expect([...times(x, made)]).toEqual(expected);
    expect([...row(made, outer - 1)]).toEqual([...made.values.subarray((outer - 1) * inner)]);
  });

  test("its memory grows with what is multiplied", () => {
    const { matrix, times } = kernel(KERNEL, 8);
    const made = matrix(1, 4);
    made.values.set([1, 1, 1, 1]);
    const x = new Float32Array(4 * 50_000).fill(0.25);
    expect([...new Set(times(x, made))]).toEqual([1]);
  });
});

test("half precision is read as it is written", () => {
  const numbers = [0, 1, -2, 0.5, 65504, 2 ** -24, Number.POSITIVE_INFINITY, Number.NaN];
  const bits = [0x0000, 0x3c00, 0xc000, 0x3800, 0x7bff, 0x0001, 0x7c00, 0x7e00];
  const body = Uint8Array.from([...bits.map((one) => one & 255), ...bits.map((one) => one >> 8)]);
  const { tensors } = readWeights([{ name: "v", shape: [8], at: 0, length: 16, form: "half" }], body, KERNEL);
  expect([...tensors.get("v")]).toEqual(numbers);
});

describe("attention of one query", () => {
  const shape = { heads: 2, scale: 1, width: 4 };
  const keys = Float32Array.of(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0);
  const values = Float32Array.from({ length: 12 }, (_, at) => at);
  const look = (changes = {}, query = [1, 0, 1, 0]) =>
    attend(Float32Array.from(query), [{ position: 0, keys, values, count: 3, changes: { heads: new Map(), allowed: () => true, ...changes } }], shape);
  const expected = (...scores) => scores.map((score) => Math.exp(score) / sum(scores.map(Math.exp)));

  test("is softmax of the products", () => {
    const { weights: [row] } = look();
    [...expected(1, 0, 0), ...expected(0, 0, 2)].forEach((weight, at) => expect(row[at]).toBeCloseTo(weight, 6));
  });

  test("mixes the values", () => {
    const { context, weights: [row] } = look();
    expect(context[0]).toBeCloseTo(row[1] * 4 + row[2] * 8, 5);
    expect(context[3]).toBeCloseTo(row[3] * 3 + row[4] * 7 + row[5] * 11, 5);
  });

  test("gives a masked key exactly 0", () => {
    const { weights: [row] } = look({ allowed: (_query, key) => key !== 2 });
    expect([row[2], row[5]]).toEqual([0, 0]);
    expect(sum(row)).toBeCloseTo(2, 6);
  });

  test("is zero where nothing may be attended to", () => {
    const { context, weights: [row] } = look({ allowed: () => false });
    expect([...row, ...context]).toEqual(Array(10).fill(0));
  });

  test.each([
    ["off", [0, 0]],
    ["uniform", [4, 5]],
  ])("of a head that is %s", (change, context) => {
    expect([...look({ heads: new Map([[0, { change }]]) }).context.subarray(0, 2)].map(Math.round)).toEqual(context);
  });

  test("of a head that copies another is the other's", () => {
    const { weights: [row] } = look({ heads: new Map([[0, { change: "copy", source: 1 }]]) });
    expect([...row.subarray(0, 3)]).toEqual([...row.subarray(3)]);
  });

  test("of heads that copy each other is swapped", () => {
    const { weights: [before] } = look();
    const { weights: [row] } = look({ heads: new Map([[0, { change: "copy", source: 1 }], [1, { change: "copy", source: 0 }]]) });
    expect([[...row.subarray(0, 3)], [...row.subarray(3)]]).toEqual([[...before.subarray(3)], [...before.subarray(0, 3)]]);
  });
});

describe("changes in their text form", () => {
  test.each([
    ["encoder.1.2:off", "encoder", 0, [[1, "off", null]]],
    ["cross.2.1:uniform", "cross", 1, [[0, "uniform", null]]],
    ["decoder.1.1:head.3", "decoder", 0, [[0, "copy", 2]]],
    ["decoder.1.1:off", "decoder", 1, []],
    ["decoder.1.1:off", "cross", 0, []],
    ["", "cross", 0, []],
  ])("%j changes heads of %s layer %d", (text, kind, layer, expected) => {
    const { heads } = changesOf(text)(kind, layer);
    expect([...heads].map(([head, one]) => [head, one.change, one.source])).toEqual(expected);
  });

  test.each([
    ["mask.encoder.1.2.3:block", [1, 2], false],
    ["mask.encoder.1.2.3:block", [1, 1], true],
    ["mask.encoder.*.*.1:block", [7, 0], false],
    ["mask.encoder.*.*.*:block,mask.encoder.1.1.1:allow", [0, 0], true],
    ["mask.encoder.*.*.*:block,mask.encoder.1.1.1:allow", [0, 1], false],
  ])("%j, query and key %j", (text, [query, key], allowed) => {
    expect(changesOf(text)("encoder", 0).allowed(query, key, true)).toBe(allowed);
  });

  test.each(["encoder.0.1:off", "encoder.1.1:on", "mask.self.1.1.1:block", "encoder.1:off"])("%j is none", (text) => {
    expect(() => changesOf(text)).toThrow(RangeError);
  });
});

describe("the greatest of some numbers", () => {
  test.each([
    [[3, 1, 2], 2, [0, 2]],
    [[1, 1, 1], 2, [0, 1]],
    [[1, 2], 5, [1, 0]],
    [[], 3, []],
    [[-Infinity, 0], 1, [1]],
  ])("of %j the first %d stand at %j", (values, count, places) => {
    expect(top(values, count)).toEqual(places);
  });

  test.each([[[3, 1, 2], 0, 1], [[3, 1, 2], 1, 3], [[2, 2], 1, 1]])("in %j the one at %d has rank %d", (values, at, rank) => {
    expect(rankOf(Float32Array.from(values), at)).toBe(rank);
  });
});

test("rows of positions are those of section 3.5", () => {
  const tensors = new Map([["source_embedding.table.weight", {}]]);
  const zero = { d_model: 4, positions: "sinusoidal", scale_embedding: false };
  const { rows } = embedding({ tensors, row: () => new Float32Array(4) }, "source", zero);
  const [sin, cos] = [Math.sin(3 / 100), Math.cos(3 / 100)].map(Math.fround);
  expect([...rows([5], 3)]).toEqual([Math.fround(Math.sin(3)), Math.fround(Math.cos(3)), sin, cos]);
});

test("a Marian's sines stand before its cosines", () => {
  const config = { d_model: 5, positions: "sinusoidal_halves", scale_embedding: false };
  const { rows } = embedding({ tensors: new Map(), row: () => new Float32Array(5) }, "source", config);
  const angles = [0, 2, 4].map((i) => 3 / 10000 ** (i / 5));
  expect([...rows([5], 3)]).toEqual([...angles.map(Math.sin), ...angles.slice(0, 2).map(Math.cos)].map(Math.fround));
});

test("padding has no position where the table has a row for it", () => {
  const config = { d_model: 4, positions: "sinusoidal_pad_row", scale_embedding: true, ids: { pad: PAD } };
  const { rows } = embedding({ tensors: new Map(), row: () => Float32Array.of(1, 1, 1, 1) }, "target", config);
  expect([...rows([PAD], 2)]).toEqual([2, 2, 2, 2]);
});

describe.each([
  {},
  { norm_order: "pre", final_norm: true, norm_form: "std_eps" },
  { positions: "learned", shared_embedding: true, scale_scores: false, scale_embedding: false },
])("a model with %j", (fields) => {
  const model = engine(toyModel(fields), KERNEL);
  const run = model.translate("the cat");

  test("translates", () => {
    expect(run.sourceTokens).toEqual([" the", " cat", "</s>"]);
    expect(run.tokens).toHaveLength(run.ids.length);
    expect(run.text).toBe(model.tokens.decode(run.ids));
    expect(run.stopped).toBe(run.ids.at(-1) === END ? "eos" : "length");
  });

  test.each(["encoder", "decoder", "cross"])("each row of its %s attention adds up to 1, what is masked being 0", (kind) => {
    const { shape: [layers, heads, queries, keys], data, mask } = run.maps[kind];
    expect([layers, heads, keys]).toEqual([2, 2, kind === "decoder" ? run.ids.length : 3]);
    for (let row = 0; row < layers * heads * queries; row += 1) {
      const own = data.subarray(row * keys, (row + 1) * keys);
      expect(sum(own)).toBeCloseTo(1, 5);
      const [layer, query] = [Math.floor(row / (heads * queries)), row % queries];
      own.forEach((weight, key) => mask[(layer * queries + query) * keys + key] || expect(weight).toBe(0));
    }
  });

  test("chooses the most probable token", () => {
    for (const { id, logProb, rank, candidates } of run.steps) {
      expect([rank, candidates[0].id]).toEqual([1, id]);
      expect(candidates[0].logProb).toBe(logProb);
    }
    expect([...run.logProbs]).toEqual(run.steps.map(({ logProb }) => logProb));
  });

  test("finds the same when its own translation is given", () => {
    expect(model.translate("the cat", { target: run.ids })).toEqual({ ...run, stopped: run.ids.at(-1) === END ? "eos" : null });
  });

  test("is not cut off where the beginning of a translation is given", () => {
    expect(model.translate("the cat", { target: [7, 8] }).stopped).toBeNull();
    expect(model.translate("the cat", { target: [7, END] }).stopped).toBe("eos");
  });

  test("finds at least as good a translation with a wider beam", () => {
    const { tree } = model.translate("the cat", { beam: 3, alpha: 0, stop: "all" });
    const { tree: narrow } = model.translate("the cat", { beam: 2, alpha: 0 });
    expect(tree.best.length).toBeGreaterThan(0);
    expect(tree.best.map(({ score }) => score)).toEqual(tree.best.map(({ score }) => score).toSorted((a, b) => b - a));
    expect(narrow.best[0].score).toBeGreaterThanOrEqual(sum(run.logProbs) - 1e-4);
    for (const { parent, position } of tree.nodes) expect(parent === null).toBe(position === 0);
  });

  test("looks at the source in shares", () => {
    const keys = run.sourceIds.length;
    for (let step = 0; step < run.ids.length; step += 1) expect(sum(run.looked.subarray(step * keys, (step + 1) * keys))).toBeCloseTo(1, 5);
  });

  test("keeps to constraints", () => {
    const first = run.ids[0];
    expect(model.translate("the cat", { constraints: { forbidden: [[first]] } }).ids).not.toContain(first);
    expect(model.translate("the cat", { constraints: { prefix: [7, 8] } }).ids.slice(0, 2)).toEqual([7, 8]);
  });

  test("passes nothing through a head that is off, and sees no key that is blocked", () => {
    const { maps } = model.translate("the cat", { changes: "mask.cross.1.*.2:block" });
    const { shape: [, heads, queries, keys], data } = maps.cross;
    for (let row = 0; row < heads * queries; row += 1) expect(data[row * keys + 1]).toBe(0);
    const off = model.translate("the cat", { changes: "encoder.1.1:off,encoder.1.2:off", target: run.ids });
    expect(off.logProbs).not.toEqual(run.logProbs);
    expect(off.maps.encoder.data.subarray(0, 18)).toEqual(run.maps.encoder.data.subarray(0, 18));
  });

  test("explains", () => {
    const work = model.explain({ sourceIds: run.sourceIds, ids: run.ids, changes: "" });
    let part = work.next();
    let turns = 0;
    for (; !part.done; part = work.next()) turns += 1;
    expect(turns).toBe(6); // Layers of each kind.
    const { ranks, effects } = part.value;
    expect(ranks).toHaveLength(3); // After the embedding and after each layer.
    expect(ranks.at(-1)).toEqual(run.steps.map(({ rank }) => rank));
    expect(effects).toHaveLength(12);
    const [one] = effects;
    const without = model.translate("the cat", { changes: "encoder.1.1:off", target: run.ids });
    one.changes.forEach((change, at) => expect(change).toBeCloseTo(without.logProbs[at] - run.logProbs[at], 4));
  });
});

test("a run names its tokens that stand for no text", () => {
  const { header, body } = toyModel();
  expect(engine({ header, body }, KERNEL).translate("the cat").special.toSorted()).toEqual(["</s>", "<s>"]);
  const pieces = ["<pad>", ">>fr<<", "<s>", "</s>", "▁", "t", "h", "e", "c", "a", "th", "the", "▁the", "▁c", "at", "▁cat", "<unk>"];
  const vocabulary = { pieces, special: [0, 3, 16], unknown: 16, end: 3, prefix: ">>fr<< ", merges: true, special_tokens: [">>de<<", ">>fr<<", "</s>"] };
  const run = engine({ header: { ...header, vocabulary }, body }, KERNEL).translate("the cat", { target: [12, 3] });
  expect(run.sourceTokens).toEqual([">>fr<<", " the", " cat", "</s>"]);
  expect(run.special.toSorted()).toEqual(["</s>", ">>fr<<"]);
});

describe("a text that cannot be translated", () => {
  const model = engine(toyModel(), KERNEL);

  test.each([
    ["", "There is nothing to translate yet"],
    [" \u200b ", "There is nothing to translate yet"],
    ["a\ud800", "not valid Unicode"],
    ["t".repeat(721), "This text has 721 characters."],
    ["t ".repeat(60), "This text has 121 tokens."],
  ])("%j", (text, says) => {
    expect(() => model.translate(text)).toThrow(InputError);
    expect(() => model.translate(text)).toThrow(says);
  });
});

describe("the worker", () => {
  const packed = async () => {
    const { header, body } = toyModel({}, sentencePiece());
    const text = new TextEncoder().encode(JSON.stringify(header));
    const bytes = Uint8Array.from([...new Uint8Array(Uint32Array.of(text.length).buffer), ...text, ...body]);
    const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
    const hex = [...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))].map((one) => one.toString(16).padStart(2, "0")).join("");
    return { packed: new Uint8Array(await new Response(stream).arrayBuffer()), sha256: hex, code: KERNEL.toString("base64") };
  };
  const asked = async () => {
    const port = { answers: [], postMessage: (answer) => port.answers.push(answer), onmessage: null };
    await serve(port);
    return { port, ask: async (data) => (await port.onmessage({ data }), port.answers.at(-1)) };
  };

  test("loads, translates and explains", async () => {
    const { ask } = await asked();
    const { found } = await ask({ number: 1, load: await packed() });
    expect(found.config.heads).toBe(2);
    const answer = await ask({ number: 2, text: "the cat", options: {} });
    expect([answer.number, answer.found.sourceTokens.length]).toEqual([2, 3]);
    const { sourceIds, ids } = answer.found;
    expect((await ask({ number: 3, explain: { sourceIds, ids, changes: "" } })).found.effects).toHaveLength(12);
  });

  test("gives an explanation up for what is asked after it", async () => {
    const { port, ask } = await asked();
    await ask({ number: 1, load: await packed() });
    const late = port.onmessage({ data: { number: 2, explain: { sourceIds: [8, END], ids: [9, END], changes: "" } } });
    await ask({ number: 3, text: "the cat", options: {} });
    await late;
    expect(port.answers.find(({ number }) => number === 2).found).toBeNull();
  });

  test("says what is wrong", async () => {
    const { ask } = await asked();
    const whole = await packed();
    expect((await ask({ number: 1, load: { ...whole, sha256: "00" } })).problem).toContain("not whole");
    expect((await ask({ number: 2, load: { ...whole, packed: whole.packed.slice(0, 40) } })).problem).toContain("not whole");
    await ask({ number: 3, load: whole });
    expect((await ask({ number: 4, text: "", options: {} })).problem).toContain("nothing to translate");
    expect((await ask({ number: 5, text: "the", options: { changes: "nonsense" } })).error).toContain("RangeError");
  });
});
