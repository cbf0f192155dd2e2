/** Cells as bytes, colours and numbers. */
import { coarse, exact, placed, told } from "../../../viz/web/src/heatmap/frame.js";
import { withSpecial, withoutSpecial } from "../../../viz/web/src/heatmap/heatmap.js";
import { readCells } from "../../../viz/web/src/matrix/matrix.js";
import { named, told as toldOfMask } from "../../../viz/web/src/mask_editor/mask_editor.js";
import { readArrays, shown } from "../../../viz/web/src/pipeline/numbers.js";
import { inked, lookup, position } from "../../../viz/web/src/shared/picture.js";
import { cellInWords, strongestKey } from "../../../viz/web/src/decode_player/pictures.js";
import { cellAt, cellUnder, coloured, penOn, stepped } from "../../../viz/web/src/shared/grid.js";
import { FINE_FULL, FINE_MASKED, FULL, MASKED, pack, unpack } from "../../../viz/web/src/shared/packed.js";

const words = (...numbers) => new Uint8Array(Uint16Array.from(numbers).buffer);

describe("packed bytes", () => {
  test.each([[{}, []], [{ title: "中 “x”", rows: [1, 2] }, [1, 2, 255]]])("%j and %j come back", (header, body) => {
    const found = unpack(pack(header, Uint8Array.from(body)));
    expect([found.header, [...found.body]]).toEqual([header, body]);
  });

  test("may begin anywhere in a buffer", () => {
    const packed = pack({ a: 1 }, Uint8Array.of(7));
    const inside = new Uint8Array([9, 9, 9, ...packed]).subarray(3);
    expect([...unpack(inside).body]).toEqual([7]);
  });
});

describe("the ramp of colours", () => {
  test.each([
    [0.25, "linear", 0.25],
    [0.25, "sqrt", 0.5],
    [0.1, "log", 2 / 3],
    [0.0001, "log", 0],
    [0, "log", 0],
    [1, "log", 1],
    [1, "sqrt", 1],
  ])("weight %d lies in %s at %d", (weight, scale, place) => {
    expect(position(weight, scale)).toBeCloseTo(place, 12);
  });

  test("runs through its colours, and what is masked has its own", () => {
    const table = lookup(["#000000", "#ff0000", "#ffffff"], "#123456", "linear");
    expect([table[0], table[FULL / 2], table[FULL], table[MASKED]]).toEqual([0xff000000, 0xff0000ff, 0xffffffff, 0xff563412]);
  });

  test.each([[0xff000000, "rgb(0 0 0)", "#ffffff"], [0xffffffff, "rgb(255 255 255)", "#000000"], [0xff00ffff, "rgb(255 255 0)", "#000000"]])(
    "on pixel %d, %s, the ink is %s",
    (pixel, background, color) => {
      expect(inked(pixel, ["#000000", "#ffffff"])).toEqual({ background, color });
    },
  );
});

describe("a heatmap's weights", () => {
  const header = { rows: ["a"], columns: ["x", "y", "z"], top: 0.5, scale: "sqrt" };

  test("of two bytes are exact", () => {
    const map = exact(header, words(FINE_FULL, FINE_FULL / 2, FINE_MASKED));
    expect([map.value(0), map.value(1), map.value(2)]).toEqual([0.5, 0.25, Number.NaN]);
    expect([...map.places]).toEqual([FULL, Math.round(FULL * Math.SQRT1_2), MASKED]);
    expect([0, 1, 2].map((at) => told(map, at))).toEqual(["0.500", "0.250", "masked: may not attend"]);
  });

  test("of one byte have two decimals", () => {
    const map = coarse({ rows: 1, columns: 3, bytes: Uint8Array.of(FULL, 127, MASKED) }, header);
    expect([map.value(0), told(map, 1), told(map, 2)]).toEqual([1, "0.50", "masked: may not attend"]);
  });

  test("of tiles that are coarser cannot be read", () => {
    expect(coarse({ rows: 1, columns: 2, bytes: Uint8Array.of(1, 2) }, header).value).toBe(false);
  });
});

describe("the cells of a heatmap", () => {
  const tokens = (count) => Array.from({ length: count }, String);

  test.each([
    [900, 600, 20, 20, 0],
    [390, 520, 40, 7, 0],
    [900, 600, 3, 3, 0],
    [900, 600, 3, 3, 24],
  ])("in %d x %d pixels, %d rows and %d columns, least type %d, fill their room", (width, height, rows, columns, least) => {
    const place = placed({ rows: tokens(rows), columns: tokens(columns), roles: [[], []] }, width, height, least);
    expect(place.width).toBeCloseTo(place.w * columns, 9);
    expect(place.height).toBeCloseTo(place.h * rows, 9);
    expect(place.left + place.width).toBeLessThanOrEqual(width);
    expect(place.top + place.height).toBeLessThanOrEqual(height);
    expect(place.smallest).toBe(Math.max(9, least));
  });

  test("are not blown up where there are few, but where the back row reads them", () => {
    const few = { rows: tokens(3), columns: tokens(3), roles: [[], []] };
    expect(placed(few, 900, 600, 24).w).toBeCloseTo(4 * placed(few, 900, 600).w, 9);
  });
});

test("a chat's heatmap has room for what its bands mean", () => {
  const rows = ["a", "b"];
  const [plain, chat] = [[[], []], [["user", ""], ["user", ""]]].map((roles) => placed({ rows, columns: rows, roles }, 900, 600, 24));
  expect(chat.height).toBeCloseTo(plain.height - 18, 9);
});

describe("a map without its special tokens", () => {
  const whole = {
    header: {
      ...{ title: "t", model: "m", rows: ["a", "</s>"], columns: ["x", "y", "</s>"], rowLabels: ["a", "E"], columnLabels: ["x", "y", "E"] },
      ...{ roles: [["user", ""], ["", "user", ""]], special: [[1], [2]], pinned: [0, 1], scale: "sqrt", pins: true },
    },
    body: words(100, 300, 600, 1, 2, 3),
  };

  test("has its rows and columns left, each weight as it was", () => {
    const { header, body } = withoutSpecial(whole);
    expect([header.rows, header.columns, header.pinned]).toEqual([["a"], ["x", "y"], [0, 1]]);
    expect(header.roles).toEqual([["user"], ["", "user"]]);
    expect([...new Uint16Array(body.buffer)]).toEqual([100, 300]);
  });

  test("keeps what is masked, and takes a pin away with its row", () => {
    const { header, body } = withoutSpecial({ header: { ...whole.header, pinned: [1, null] }, body: words(FINE_MASKED, 300, 600, 1, 2, 3) });
    expect(header.pinned).toEqual([null, null]);
    expect([...new Uint16Array(body.buffer)]).toEqual([FINE_MASKED, 300]);
  });

  test.each([[[[], []]], [[[0, 1], []]], [[[], [0, 1, 2]]]])("is none where %j is special", (special) => {
    expect(withoutSpecial({ ...whole, header: { ...whole.header, special } })).toBeNull();
  });

  test("gets them back, with what has been chosen since", () => {
    const { header } = withoutSpecial(whole);
    const back = withSpecial(whole, { ...header, scale: "log", pinned: [0, null] });
    expect(back.header).toMatchObject({ rows: ["a", "</s>"], scale: "log", pinned: [0, null], pins: false });
    expect(back.body).toBe(whole.body);
    expect(withSpecial(whole, { ...header, title: "another" })).toBeNull();
    expect(withSpecial(null, header)).toBeNull();
  });
});

describe("the numbers of a matrix", () => {
  test("lie evenly between the ends of its colours", () => {
    const cells = readCells({ low: -1, high: 1, full: FULL, decimals: 2 }, Uint8Array.of(0, 127, FULL));
    expect([0, 1, 2].map(cells.text)).toEqual(["−1.00", "0.00", "1.00"]);
    expect([...cells.bytes]).toEqual([0, 127, FULL]);
    expect([cells.lowest, cells.highest]).toEqual(["−1.00", "1.00"]);
  });

  test("may have two bytes each", () => {
    const cells = readCells({ low: 0, high: 2, full: 1000, decimals: 1 }, words(0, 500, 1000));
    expect([0, 1, 2].map(cells.text)).toEqual(["0.0", "1.0", "2.0"]);
    expect([...cells.bytes]).toEqual([0, 127, FULL]);
  });

  test("of very different sizes are coloured by their logarithm", () => {
    const cells = readCells({ exponent: true, low: -3, high: 0, least: -4, full: 1000 }, words(0, 1, 181, 361));
    expect([0, 1, 2, 3].map(cells.text)).toEqual(["0", "1.0e−3", "1.0e−1", "1.0e+1"]);
    expect([...cells.bytes]).toEqual([0, 0, Math.round((FULL * 2) / 3), FULL]);
    expect([cells.lowest, cells.highest]).toEqual(["≤ 1.0e−3", "≥ 1.0e+0"]);
  });

  test.each([[-0.001, "0.00"], [-0.006, "−0.01"]])("%d is written %s", (low, text) => {
    expect(readCells({ low, high: 1, full: FULL, decimals: 2 }, Uint8Array.of(0)).text(0)).toBe(text);
  });
});

describe("a cell of a mask", () => {
  const WORDS = ["blocked", "allowed"];
  const panel = { title: "Given", states: [0, 1, 0, 1, 0], marks: [1, 0, 2, 0, 0], values: [Number.NaN, 0.25, -1e9, 0.00001, -0.5] };

  test.each([
    [0, "Given: blocked by -inf"],
    [1, "Given: allowed 0.25"],
    [2, "Given: blocked by a finite fill −1000000000"],
    [3, "Given: allowed 1.0e−5"],
    [4, "Given: blocked −0.5"],
  ])("number %d is %j", (at, said) => {
    expect(toldOfMask(panel, at, WORDS)).toBe(said);
  });

  test.each([[undefined, 1], [" ", 1], [" cat", "1 “cat”"]])("of %j has the name %j", (token, name) => {
    expect(named(token, 0)).toBe(name);
  });
});

test("the arrays of a pipeline stand behind each other", () => {
  const numbers = Float32Array.from({ length: 2 + 4 + 4 + 2 + 2 + 2 + 4 + 2 }, (_, at) => at);
  const found = readArrays(new Uint8Array(numbers.buffer), { keys: 2, width: 2 });
  expect([...found.k]).toEqual([2, 3, 4, 5]);
  expect([...found.weights]).toEqual([14, 15]);
  expect([...found.context]).toEqual([20, 21]);
  expect(shown(-0.5)).toBe("−0.50");
});

describe("a cell of a grid", () => {
  test.each([
    [0, 0, [0, 0]],
    [59.9, 19.9, [1, 2]],
    [60, 0, null],
    [0, 20, null],
    [-0.1, 5, null],
  ])("at (%d, %d) is %j", (x, y, cell) => {
    expect(cellAt(x, y, { width: 20, height: 10 }, 2, 3)).toEqual(cell);
  });

  test.each([
    [100, 50, [0, 0]],
    [159, 69, [1, 2]],
    [500, -9, [0, 2]],
    [0, 500, [1, 0]],
  ])("under a pointer at (%d, %d) is %j, the nearest one", (clientX, clientY, cell) => {
    const plot = { getBoundingClientRect: () => ({ left: 100, top: 50, width: 60, height: 20 }) };
    expect(cellUnder({ clientX, clientY }, plot, 2, 3)).toEqual(cell);
  });

  test.each([
    ["ArrowRight", [0, 0], [0, 1]],
    ["ArrowRight", [0, 2], [0, 2]],
    ["ArrowUp", [0, 1], [0, 1]],
    ["ArrowDown", [0, 1], [1, 1]],
    ["ArrowLeft", [5, 9], [1, 2]],
    ["Enter", [0, 0], null],
  ])("%s leads from %j to %j", (key, from, to) => {
    expect(stepped(key, from, 2, 3)).toEqual(to);
  });

  test("has its colour, and one that is not there yet is clear", () => {
    const table = Uint32Array.from({ length: 256 }, (_, at) => at + 1);
    expect([...coloured(Uint8Array.of(0, 254), table, 4)]).toEqual([1, 255, 0, 0]);
  });
});

describe("the row of a step in a decoding", () => {
  const tokens = ["<s>", "Er", "ging"].map((text) => ({ text }));
  const later = [MASKED, MASKED, MASKED];
  const weights = Uint8Array.from([FULL, MASKED, MASKED, MASKED, 100, MASKED, MASKED, MASKED, MASKED]);

  test.each([
    [0, 0, "“\u2068<s>\u2069” looks back at “\u2068<s>\u2069”: 1.00"],
    [1, 1, "“\u2068Er\u2069” looks back at “\u2068Er\u2069”: 0.39"],
    [2, 0, "“\u2068ging\u2069” → “\u2068<s>\u2069”: masked, it may not look there"],
  ])("%d is read at key %d: %s", (step, key, words) => {
    expect(strongestKey(weights, 3, step)).toBe(key);
    expect(cellInWords(weights, 3, [step, key], step, tokens)).toBe(words);
  });

  test("says of what comes later that it is not written, and of what is blocked that it is masked", () => {
    expect(cellInWords(weights, 3, [0, 2], 1, tokens)).toContain("not written yet");
    expect(cellInWords(weights, 3, [1, 0], 1, tokens)).toContain("may not look there");
    expect(cellInWords(Uint8Array.from([...weights.slice(0, 6), ...later]), 3, [2, 2], 1, tokens)).toContain("still to come");
  });
});

test("a canvas is drawn on whole, on a screen of another pixel ratio than the one it was fitted on too", () => {
  const pen = { setTransform: vi.fn() };
  penOn({ width: 800, height: 381, getContext: () => pen }, 400, 190.5);
  expect(pen.setTransform).toHaveBeenCalledWith(2, 0, 0, 2, 0, 0);
});
