const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const LETTERS = /^[^<]*\p{L}/u; // </s> and its like are no letters of any script.

/** Whether most of the words of a text are read from right to left. */
export function backward(tokens) {
  const words = tokens.filter((token) => LETTERS.test(token));
  return words.filter((word) => RIGHT_TO_LEFT.test(word)).length > words.length / 2;
}
