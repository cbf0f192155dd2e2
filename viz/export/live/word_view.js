import { grouped } from "../../web/src/shared/number.js";
import { say } from "../../web/src/shared/say.js";
import { percentOf, quoted, readable, signed } from "./labels.js";
import { mergedWords } from "./words.js";

const ROWS = 4;

/** The words of the source by their share of what a token looked at, the largest first. */
function sourceShares({ sourceTokens, looked }, position) {
  const row = looked.subarray(position * sourceTokens.length, (position + 1) * sourceTokens.length);
  const shares = mergedWords(sourceTokens).map(({ text, from, to }) => ({ text, share: row.subarray(from, to).reduce((sum, one) => sum + one, 0) }));
  return shares.sort((one, other) => other.share - one.share);
}

/** The heads whose absence changes the log-probability of a token most. */
function strongest({ effects }, position) {
  const found = effects.map((one) => ({ ...one, change: one.changes[position] })).sort((one, other) => Math.abs(other.change) - Math.abs(one.change));
  const largest = Math.max(1, Math.abs(found[0].change)); // Of less than a nat, a bar is not to look like much.
  return found.slice(0, ROWS).map(({ kind, layer, head, change }) => {
    const [text, value] = [`${kind} ${layer + 1}.${head + 1}`, signed(change, 2, true)];
    return { place: [kind, layer, head], text, value, share: Math.abs(change) / largest, label: say("Show {head}: {value} nats without it", { head: text, value }) };
  });
}

/** From which layer on the token written is the one that the model would write. */
function decided({ ranks }, token, position) {
  const first = ranks.findLastIndex((row) => row[position] > 1) + 1;
  if (first === ranks.length) return say("After the last layer another token than {token} is the most probable.", { token: quoted(token) });
  if (!first) return say("{token} is the most probable token from the embedding on, before any layer.", { token: quoted(token) });
  return say("{token} is the most probable token from layer {layer} of {count} on.", { token: quoted(token), layer: first, count: ranks.length - 1 });
}

/** That the heads are still to come; what the engine explains comes later than the run. */
function waiting({ maps }) {
  const heads = Object.values(maps).reduce((sum, { shape: [layers, each] }) => sum + layers * each, 0);
  return say("Switching off each of {count} heads …", { count: heads });
}

/**
 * What word_card.js reads, as viz/web/src/word_card makes it, of the token at `position`. `open` is the text of its
 * button, if it has one.
 */
export function wordData(run, position, open) {
  const { id, token, logProb, rank, candidates } = run.steps[position];
  const { explained } = run;
  const others = candidates.filter((one) => one.id !== id && !one.forbidden).slice(0, ROWS);
  const rowOf = (text, share) => ({ text: readable(text), value: percentOf(share), share });
  return {
    step: position,
    label: say("The word {word}", { word: readable(token) }),
    word: readable(token),
    fact: `${percentOf(Math.exp(logProb))} · ${rank === 1 ? say("the most probable token") : say("rank {rank}", { rank: grouped(rank) })}`,
    others: others.map((one) => ({ id: one.id, ...rowOf(one.token, Math.exp(one.logProb)) })),
    sources: sourceShares(run, position).slice(0, ROWS).map(({ text, share }) => rowOf(text, share)),
    heads: explained ? strongest(explained, position) : [],
    headsNote: say("change of log-prob. when off"),
    decided: explained ? decided(explained, token, position) : waiting(run),
    why: false,
    open,
  };
}
