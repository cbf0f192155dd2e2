import { say, written } from "../shared/say.js";

/**
 * The arrays after the header, in order, with their sizes: K keys of D numbers.
 * @type {[string, (keys: number, width: number) => number][]}
 */
const ARRAYS = [
  ["q", (keys, width) => width],
  ["k", (keys, width) => keys * width],
  ["product", (keys, width) => keys * width],
  ["dot", (keys) => keys],
  ["scores", (keys) => keys],
  ["weights", (keys) => keys],
  ["weighted", (keys, width) => keys * width],
  ["context", (keys, width) => width],
];

export function readArrays(body, { keys, width }) {
  const numbers = new Float32Array(body.slice().buffer); // Copied, because a window need not begin at a multiple of 4.
  let start = 0;
  return Object.fromEntries(
    ARRAYS.map(([name, size]) => {
      const end = start + size(keys, width);
      const part = numbers.subarray(start, end);
      start = end;
      return [name, part];
    }),
  );
}

export const shown = (number) => written(number.toFixed(2));

/** What each step does: its name, its equation, and the same with the numbers of one key. */
export const STEPS = [
  {
    name: say("Query, keys"),
    equation: "q, k₁ … kₙ",
    says: say("The head has made a query vector from the token that attends, and a key vector from every token."),
    numbers: ({ width }) => say("Each has {width} numbers; colour is their sign and size.", { width }),
  },
  {
    name: say("Multiply"),
    equation: "qᵢ · kᵢ",
    says: say("Query and key are multiplied number by number: large where both point the same way."),
    numbers: ({ q, k, product, width }, key) => {
      const at = strongest(product.subarray(key * width, (key + 1) * width));
      const [one, other, result] = [q[at], k[key * width + at], product[key * width + at]].map(shown);
      return say("Largest part, number {number}: {one} · {other} = {result}", { number: at + 1, one, other, result });
    },
  },
  {
    name: say("Add up"),
    equation: "q · k = Σᵢ qᵢ kᵢ",
    says: say("The products are added up: one number a key says how well it answers the query."),
    numbers: ({ dot, width }, key) => say("The {width} products add up to {sum}", { width, sum: shown(dot[key]) }),
  },
  {
    name: say("Scale"),
    equation: "s = q · k / √d",
    says: say("Long vectors make large sums, so they are divided by the root of the width, or softmax would take all or nothing."),
    numbers: ({ dot, scores, scale, width }, key) =>
      scale === 1
        ? say("This model does not scale: {score}", { score: shown(scores[key]) })
        : `${shown(dot[key])} / √${width} = ${shown(scores[key])}`,
  },
  {
    name: say("Mask"),
    equation: say("s = −∞ where a query may not attend"),
    says: say("Keys that may not be attended to are taken out."),
    numbers: ({ mask, scores }, key) =>
      mask[key] ? say("This key may be attended to: {score} stays", { score: shown(scores[key]) }) : say("This key is masked: −∞"),
  },
  {
    name: say("Softmax"),
    equation: "w = eˢ / Σ eˢ",
    says: say("The scores become shares that add up to 1: these are the attention weights."),
    numbers: ({ mask, scores, weights }, key) =>
      mask[key]
        ? say("e^{score} over the sum of all: {share}%", { score: shown(scores[key]), share: shown(100 * weights[key]) })
        : say("Masked: exactly 0"),
  },
  {
    name: say("Values"),
    equation: "Σₖ wₖ vₖ",
    says: say("Every key has a value vector too. Weighted and added up, the values are what the head passes on."),
    numbers: ({ weights }, key) => say("The value of this key goes in with {share}%", { share: shown(100 * weights[key]) }),
  },
];

function strongest(numbers) {
  let best = 0;
  for (let i = 1; i < numbers.length; i += 1) if (Math.abs(numbers[i]) > Math.abs(numbers[best])) best = i;
  return best;
}
