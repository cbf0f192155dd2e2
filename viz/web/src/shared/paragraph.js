const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const LETTERS = /^[^<]*\p{L}/u; // </s> and its like are no letters of any script.

/** Whether most of the words of a text are read from right to left. */
export function backward(tokens) {
  const words = tokens.filter((token) => LETTERS.test(token));
  return words.filter((word) => RIGHT_TO_LEFT.test(word)).length > words.length / 2;
}

/** A text as running words: its title, a line under it that says what is read, and a button for each piece. */
export function paragraph({ title, tokens }) {
  const part = document.createElement("section");
  const heading = document.createElement("h3");
  const says = document.createElement("span");
  heading.append(title, says);
  const line = document.createElement("p");
  line.dir = backward(tokens.map(({ text }) => text)) ? "rtl" : "ltr"; // "auto" would not look into the buttons.
  line.dataset.size = tokens.length > 60 ? "small" : tokens.length > 24 ? "medium" : "large";
  let word = null; // The pieces of a word stay in one line, if it has room for them.
  const buttons = tokens.map(({ text, space }) => {
    const button = document.createElement("button");
    button.textContent = text; // Tokens are data: textContent only.
    button.dir = "auto"; // Or </s> would be mirrored in a line that runs from the right.
    if (space || !word) {
      word = document.createElement("span");
      line.append(space ? " " : "", word);
    }
    word.append(button);
    return button;
  });
  part.append(heading, line);
  return { part, says, buttons };
}
