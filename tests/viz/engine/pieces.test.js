/** Bytes, protocol buffers, merges and the tokenizer. */
import { marianTokenizer } from "../../../viz/engine/marian_tokenizer.js";
import { END, START, UNKNOWN, merged, tokenizer } from "../../../viz/engine/tokenizer.js";
import { normalizer } from "../../../viz/engine/normalizer.js";
import { KIND, fields, lengthOfCharacter, readModel, toBytes, toStrictText, toText, toTextByByte } from "../../../viz/engine/sentencepiece_model.js";
import { mostProbable } from "../../../viz/engine/marian_tokenizer.js";
import { message, sentencePiece, varint } from "./toy_model.js";

describe("UTF-8", () => {
  test.each(["a", "é", "中", "😀", "\ufeff", ""])("%j comes back", (text) => {
    expect(toText(toBytes(text))).toBe(text);
    expect(toStrictText(toBytes(text))).toBe(text);
    expect(toTextByByte(toBytes(text))).toBe(text);
  });

  test.each(["a", "é", "中", "😀"])("the first byte of %j says how many it has", (text) => {
    expect(lengthOfCharacter(toBytes(text)[0])).toBe(toBytes(text).length);
  });

  test.each([
    [[0xc3], "\ufffd"],
    [[0xe4, 0xb8], "\ufffd\ufffd"],
    [[0x61, 0xff, 0x62], "a\ufffdb"],
    [[0xc3, 0xa9, 0xa9], "é\ufffd"],
  ])("%j has a replacement for each stray byte", (bytes, text) => {
    expect(toTextByByte(Uint8Array.from(bytes))).toBe(text);
    expect(toStrictText(Uint8Array.from(bytes))).toBeNull();
  });
});

describe("protocol buffers", () => {
  test.each([0, 1, 127, 128, 300, 2 ** 31, 2 ** 40])("%d comes back from a varint", (value) => {
    expect([...fields(Uint8Array.from([8, ...varint(value)]))]).toEqual([{ number: 1, value }]);
  });

  test("fields come in order, each with its number", () => {
    const bytes = Uint8Array.from(message([1, "ab"], [20, 7], [2, { float: 0.5 }]));
    const found = [...fields(bytes)].map(({ number, value }) => [number, typeof value === "number" ? value : toText(value)]);
    expect(found).toEqual([[1, "ab"], [20, 7], [2, 0.5]]);
  });

  test("eight bytes are passed over", () => {
    expect([...fields(Uint8Array.from([9, 1, 2, 3, 4, 5, 6, 7, 8, 16, 5]))]).toEqual([{ number: 1, value: null }, { number: 2, value: 5 }]);
  });

  test.each([[[10, 5, 1]], [[11]], [[12]]])("%j is no message", (bytes) => {
    expect(() => [...fields(Uint8Array.from(bytes))]).toThrow("not a protocol buffers message");
  });
});

describe("a SentencePiece model", () => {
  test("its pieces have text, score and kind", () => {
    const { pieces } = readModel(sentencePiece({ words: ["a", "b"] }));
    expect(pieces.map(({ text }) => text)).toEqual(["<pad>", "<unk>", "<s>", "</s>", "a", "b"]);
    expect(pieces[1].kind).toBe(KIND.unknown);
    expect(pieces[5]).toEqual({ text: "b", score: -1, kind: KIND.normal });
  });

  test("what its normalizer leaves out is true", () => {
    expect(readModel(sentencePiece()).normalizer).toMatchObject({ dummyPrefix: true, fewerSpaces: true });
    const written = readModel(sentencePiece({ normalizer: [[3, 0], [4, 0]] })).normalizer;
    expect(written).toMatchObject({ dummyPrefix: false, fewerSpaces: false });
  });
});

describe("the normalizer", () => {
  const texts = (spec, text) => normalizer({ charsmap: new Uint8Array(), ...spec })(text).map((one) => one.text).join("");

  test.each([
    [true, true, "  a  b ", "▁a▁b"],
    [true, false, " a b", "▁▁a▁b"],
    [false, true, "  a ", "a"],
    [false, false, "a ", "a▁"],
    [true, true, "   ", ""],
    [true, true, "", ""],
  ])("prefix %s, fewer spaces %s: %j is read as %j", (dummyPrefix, fewerSpaces, text, read) => {
    expect(texts({ dummyPrefix, fewerSpaces }, text)).toBe(read);
  });

  test("what is read knows what was written", () => {
    const found = normalizer({ charsmap: new Uint8Array(), dummyPrefix: true, fewerSpaces: true })("é  中x");
    expect(found.map(({ text }) => text).join("")).toBe("▁é▁中x");
    expect(found.surface(1, 2)).toBe("é");
    expect(found.surface(3, 5)).toBe("中x");
  });

  test("a table replaces the longest sequence that it knows", () => {
    // A double array (Darts-clone) with the one key "a": its root leads to unit 97 ^ 1, whose leaf has the value 0.
    const units = new Uint32Array(256);
    units[0] = 1 << 10;
    units[1 ^ 97] = 97 | (1 << 8) | (2 << 10);
    units[(1 ^ 97) ^ 2] = 0x80000000;
    const charsmap = Uint8Array.from([...new Uint8Array(Uint32Array.of(1024).buffer), ...new Uint8Array(units.buffer), ...toBytes("xy\0")]);
    const found = normalizer({ charsmap, dummyPrefix: false, fewerSpaces: false })("bab");
    expect(found.map(({ text }) => text).join("")).toBe("bxyb");
    expect(found.surface(1, 3)).toBe("a");
  });
});

describe("merges", () => {
  const merge = (text, ...pieces) => {
    const scores = new Map(pieces.map((piece, at) => [piece, -at]));
    return merged([...text].map((one) => ({ text: one })), scores).map((one) => one.text);
  };

  test.each([
    ["abc", ["ab", "bc"], ["ab", "c"]],
    ["abc", ["bc", "ab"], ["a", "bc"]],
    ["aaa", ["aa"], ["aa", "a"]],
    ["aaaa", ["aa", "aaaa"], ["aaaa"]],
    ["abcd", ["bc", "abc", "abcd"], ["abcd"]],
    ["xyz", [], ["x", "y", "z"]],
    ["", ["ab"], []],
  ])("%j with %j gives %j", (text, pieces, expected) => {
    expect(merge(text, ...pieces)).toEqual(expected);
  });

  test("each piece knows where it stands", () => {
    const found = merged([..."abc"].map((text) => ({ text })), new Map([["ab", 1]]));
    expect(found.map(({ start, end }) => [start, end])).toEqual([[0, 2], [2, 3]]);
  });
});

describe("the tokenizer", () => {
  const tokens = tokenizer(sentencePiece());

  test.each([
    ["the cat", [" the", " cat", "</s>"]],
    ["  the   cats ", [" the", " cat", "s", "</s>"]],
    ["", ["</s>"]],
  ])("%j is read as %j", (text, read) => {
    const { ids, tokens: found, unknown } = tokens.encode(text);
    expect(found).toEqual(read);
    expect(unknown).toEqual([]);
    expect(ids.at(-1)).toBe(END);
    expect(ids.map(tokens.token)).toEqual(read);
  });

  test.each(["the cat", "cats", "at the cat"])("%j comes back", (text) => {
    expect(tokens.decode(tokens.encode(text).ids)).toBe(text);
  });

  test("unknown letters in a row are one piece", () => {
    const { ids, tokens: found, unknown } = tokens.encode("the xy");
    expect(ids.filter((id) => id === UNKNOWN)).toHaveLength(1);
    expect(found.at(-2)).toBe("xy");
    expect(unknown).toEqual(["xy"]);
    expect(tokens.decode(ids)).toBe("the  \u2047 ");
  });

  test("bytes spell what no piece has", () => {
    const spelling = tokenizer(sentencePiece({ spells: true }));
    const { ids, tokens: found, unknown } = spelling.encode("é");
    expect(found).toEqual([" ", "<0xC3>", "<0xA9>", "</s>"]);
    expect(unknown).toEqual(["é"]);
    expect(spelling.decode(ids)).toBe("é");
    expect(spelling.decode(ids.filter((_, at) => at !== 2))).toBe("\ufffd");
  });

  test("special tokens are not written", () => {
    expect(tokens.decode([START, ...tokens.encode("the cat").ids, END])).toBe("the cat");
  });

  test("without a prefix the first space stays", () => {
    const bare = tokenizer(sentencePiece({ normalizer: [[3, 0], [4, 0]] }));
    expect(bare.decode(bare.encode(" the cat").ids)).toBe(" the cat");
  });
});

describe("the tokenizer of a Marian folder", () => {
  const pieces = ["</s>", "<unk>", "▁", "▁the", "▁cat", "s", ">>de<<", "<pad>"];
  const facts = { pieces, special: [0, 1, 7], unknown: 1, end: 0, prefix: "", merges: true };
  const tokens = marianTokenizer(sentencePiece(), facts);

  test("has the ids of its own vocabulary, the end last", () => {
    expect(tokens.encode("the cats")).toEqual({ ids: [3, 4, 5, 0], tokens: [" the", " cat", "s", "</s>"], unknown: [] });
    expect(tokens.size).toBe(pieces.length);
  });

  test("cuts by probability where its pieces are not merged", () => {
    const probable = sentencePiece({ words: ["▁the", "▁cat", "▁", "t", "h", "e"] });
    expect(marianTokenizer(probable, { ...facts, merges: false }).encode("the cat").ids).toEqual([3, 4, 0]);
  });

  test("takes what no piece has as one unknown token, and names its word", () => {
    const { ids, unknown } = tokens.encode("the xyz");
    expect(ids.filter((id) => id === 1)).toHaveLength(1);
    expect(unknown).toEqual(["xyz"]);
  });

  test("reads the language to be written before a source, and special tokens in it", () => {
    const translating = marianTokenizer(sentencePiece(), { ...facts, prefix: ">>de<< " });
    expect(translating.encode("the").ids).toEqual([6, 3, 0]);
    expect(tokens.encode("the</s>cat").ids).toEqual([3, 0, 4, 0]);
  });

  test("writes neither special tokens nor controls", () => {
    expect(tokens.decode([3, 4, 5, 7, 0])).toBe("the cats");
    expect(tokens.token(0)).toBe("</s>");
  });
});

describe("the most probable cut", () => {
  const cut = mostProbable(new Map([["a", -1], ["b", -1], ["ab", -1.5], ["abc", -4]]));
  const pieces = (text) => cut([...text].map((one) => ({ text: one }))).map(({ text: piece }) => piece);
  test.each([
    ["ab", ["ab"]], // -1.5 against -2
    ["abc", ["abc"]], // c alone is no piece: 10 below the least
    ["ba", ["b", "a"]],
    ["xab", ["x", "ab"]],
    ["", []],
  ])("%j is cut into %j", (text, expected) => expect(pieces(text)).toEqual(expected));
});
