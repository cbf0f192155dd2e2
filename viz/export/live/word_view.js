import { percentOf, readable } from "./labels.js";
import { mergedWords } from "./words.js";

const ROWS = 4;

/** The words of the source by their share of what a token looked at, the largest first. */
function sourceShares({ sourceTokens, looked }, position) {
  const row = looked.subarray(position * sourceTokens.length, (position + 1) * sourceTokens.length);
  const shares = mergedWords(sourceTokens).map(({ text, from, to }) => ({ text, share: row.subarray(from, to).reduce((sum, one) => sum + one, 0) }));
  return shares.sort((one, other) => other.share - one.share);
}

/**
 * What word_card.js reads, as viz/components/word_card makes it, of the token at `position`: without the heads that
 * matter and the layer, for which the model would have to run again. `open` is the text of its button, if it has one.
 */
export function wordData(run, position, open) {
  const { id, token, logProb, rank, candidates } = run.steps[position];
  const others = candidates.filter((one) => one.id !== id && !one.forbidden).slice(0, ROWS);
  const rowOf = (text, share) => ({ text: readable(text), value: percentOf(share), share });
  return {
    label: `The word ${readable(token)}`,
    word: readable(token),
    fact: `${percentOf(Math.exp(logProb))} · ${rank === 1 ? "the most probable token" : `rank ${rank.toLocaleString("en")}`}`,
    others: others.map((one) => ({ id: one.id, ...rowOf(one.token, Math.exp(one.logProb)) })),
    sources: sourceShares(run, position).slice(0, ROWS).map(({ text, share }) => rowOf(text, share)),
    heads: [],
    decided: "",
    why: false,
    open,
  };
}
