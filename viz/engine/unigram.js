const UNKNOWN_PENALTY = 10; // As SentencePiece has it: below the least probable piece.

/**
 * The most probable cut into the pieces of a unigram model, as SentencePiece finds it. `scores` is a Map of piece ->
 * log-probability, a single precision number as all sums here are; a character that is no piece is one by itself.
 * Returns a function of characters -> [{ text }].
 */
export function mostProbable(scores) {
  let [least, longest] = [Infinity, 0];
  for (const [piece, score] of scores) {
    least = Math.min(least, score);
    longest = Math.max(longest, [...piece].length);
  }
  const unknown = Math.fround(least - UNKNOWN_PENALTY);
  return (characters) => {
    const best = Array.from({ length: characters.length + 1 }, (_, at) => ({ score: at ? -Infinity : 0, from: -1, text: "" }));
    const offer = (from, to, text, score) => {
      const sum = Math.fround(score + best[from].score);
      if (best[to].from === -1 || sum > best[to].score) best[to] = { score: sum, from, text };
    };
    for (let from = 0; from < characters.length; from += 1) {
      let text = "";
      for (let to = from + 1; to <= Math.min(characters.length, from + longest); to += 1) {
        text += characters[to - 1].text;
        const score = scores.get(text);
        if (score !== undefined) offer(from, to, text, score);
      }
      if (!scores.has(characters[from].text)) offer(from, from + 1, characters[from].text, unknown);
    }
    const found = [];
    for (let at = characters.length; at > 0; at = best[at].from) found.push({ text: best[at].text });
    return found.reverse();
  };
}
