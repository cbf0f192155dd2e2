/** Messages and numbers as they are written, and names as they are shown. */
import { typedNumber } from "../../../viz/web/src/presenter/show.js";
import { backward } from "../../../viz/web/src/shared/paragraph.js";
import { relabelled } from "../../../viz/web/src/shared/events.js";
import { inWords, nearMeans, shades } from "../../../viz/web/src/text/text.js";

const speaking = async (language, said, path) => {
  vi.resetModules();
  globalThis.MESSAGES = { language, said };
  try {
    return await import(`../../../viz/web/src/shared/${path}.js`);
  } finally {
    vi.resetModules();
  }
};
afterEach(() => (globalThis.MESSAGES = { language: "en", said: {} }));

describe("a message", () => {
  test.each([
    ["No values", {}, "No values"],
    ["{a} and {b}", { a: 1, b: "x" }, "1 and x"],
    ["{a} and {a}", { a: "<b>" }, "<b> and <b>"],
    ["{token}", { token: "{a}" }, "{a}"],
  ])("%j with %j reads %j", async (message, values, read) => {
    const { say } = await speaking("en", {}, "say");
    expect(say(message, values)).toBe(read);
  });

  test("is said in the reader's language", async () => {
    const said = { "{count} head": "{count} Head", "{count} heads": "{count} Heads", ", ": "、", "{before} {next}": "{before}{next}" };
    const { say, sayMany, listed, sentences } = await speaking("zh", said, "say");
    expect([1, 2, 0].map((count) => sayMany("{count} head", "{count} heads", count))).toEqual(["1 Head", "2 Heads", "0 Heads"]);
    expect(say("not translated")).toBe("not translated");
    expect(listed(["a", "b"])).toBe("a、b");
    expect(sentences("一。", "", "二。")).toBe("一。二。");
  });

  test.each([[[], ""], [["One."], "One."], [["One.", "", "Two."], "One. Two."]])("%j are %j", async (texts, read) => {
    const { sentences } = await speaking("en", {}, "say");
    expect(sentences(...texts)).toBe(read);
  });
});

describe("a number", () => {
  test.each([
    ["en", "-0.25", "−0.25"],
    ["en", "12.5%", "12.5%"],
    ["de", "-0.25", "−0,25"],
    ["de", "12.5%", "12,5\u202f%"],
    ["zh", "1e-3", "1e−3"],
  ])("in %s %j is written %j", async (language, text, read) => {
    expect((await speaking(language, {}, "say")).written(text)).toBe(read);
  });

  test.each([["en", "12,345"], ["de", "12.345"], ["zh", "12,345"]])("of many digits has its thousands apart in %s", async (language, read) => {
    expect((await speaking(language, {}, "say")).grouped(12345)).toBe(read);
  });
});

test.each([
  [["the", "cat"], false],
  [["שלום", "עולם"], true],
  [["</s>", "مرحبا", "ok", "عالم"], true],
  [["a", "שלום"], false],
  [[], false],
  [[".", "</s>"], false],
])("%j is read from the right: %s", (tokens, expected) => {
  expect(backward(tokens)).toBe(expected);
});

test("a label names another head", () => {
  expect(relabelled("Layer {layer}, head {head}", { layer: 0, head: 4 })).toBe("Layer 1, head 5");
});

test.each([[255, "masked"], [254, "100%"], [0, "0%"], [127, "50%"]])("byte %d is %j in words", (byte, words) => {
  expect(inWords(byte)).toBe(words);
});

describe("what shades tokens", () => {
  const bytes = Uint8Array.of(10, 20, 30, 255, 50, 60); // Two queries, three keys.

  test("is a row for the keys and a column for the queries", () => {
    expect([...shades("key", 1, bytes, 2, 3)]).toEqual([255, 50, 60]);
    expect(shades("query", 0, bytes, 2, 3)).toEqual([10, 255]);
  });

  test("is a mean without what is masked", () => {
    expect(nearMeans(bytes, 2, 3)).toEqual([10, 35, 45]);
    expect(nearMeans(Uint8Array.of(255, 255), 2, 1)).toEqual([255]);
  });
});

describe("a number that is typed", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  const typing = () => {
    const heard = [];
    return { heard, ...typedNumber({ shown: (text) => heard.push(text), arrived: (number) => heard.push(number) }) };
  };

  test("arrives when nothing more is typed", () => {
    const { heard, digit, begun } = typing();
    digit("1");
    vi.advanceTimersByTime(1000);
    digit("2");
    expect([heard, begun()]).toEqual([["1", "12"], true]);
    vi.advanceTimersByTime(1500);
    expect([heard, begun()]).toEqual([["1", "12", 12], false]);
  });

  test("has two digits at most, and can be finished or left", () => {
    const { heard, digit, finish, stop } = typing();
    for (const one of "123") digit(one);
    finish();
    digit("4");
    stop();
    vi.runAllTimers();
    expect(heard).toEqual(["1", "12", "23", 23, "4"]);
  });
});
