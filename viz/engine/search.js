/** The places of the `count` greatest of `values`, greatest first; of equal ones the first. */
export function top(values, count) {
  const best = [];
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at];
    if (best.length === count && !(value > values[best.at(-1)])) continue;
    let to = best.length;
    while (to && value > values[best[to - 1]]) to -= 1;
    best.splice(to, 0, at);
    if (best.length > count) best.pop();
  }
  return best;
}

/** Constraints as in model/decoding/greedy_and_sampling.py: ids that may not follow `written`; all but one within a prefix. */
function constrained(logProbs, written, { prefix = [], forbidden = [] }) {
  if (written.length < prefix.length) {
    const only = new Float32Array(logProbs.length).fill(-Infinity);
    only[prefix[written.length]] = logProbs[prefix[written.length]];
    return only;
  }
  const banned = bannedAfter(written, forbidden);
  if (!banned.length) return logProbs;
  const left = logProbs.slice();
  for (const id of banned) left[id] = -Infinity;
  return left;
}

function bannedAfter(written, forbidden) {
  const follows = (ids) => ids.slice(0, -1).every((id, i) => written[written.length - ids.length + 1 + i] === id);
  return forbidden.filter((ids) => ids.length && follows(ids)).map((ids) => ids.at(-1));
}

/** 1 if no token is more probable than `id`. */
export const rankOf = (logProbs, id) => logProbs.reduce((above, one) => above + (one > logProbs[id]), 1);

/** A hypothesis of a task of which nothing is written. */
export const begun = (model, { crossing, changes, limit }) => ({ token: model.config.ids.start, caches: model.caches(limit), crossing, changes });

const ends = (model, id) => model.config.ids.end.includes(id);

const CONSIDERED = 10;

/** What is known of one step: the token chosen, its log-probability and rank, and what else was considered. */
function stepOf(logProbs, id, written, { forbidden = [] }, seen) {
  const banned = bannedAfter(written, forbidden);
  const candidate = (one) => ({ id: one, logProb: logProbs[one], forbidden: banned.includes(one) });
  return { id, logProb: logProbs[id], rank: rankOf(logProbs, id), candidates: top(logProbs, CONSIDERED).map(candidate), ...seen };
}

/** Feed tokens in one after the other; `choose(logProbs, written)` says which comes next, to `limit` tokens or </s>. */
export function decode(model, task, choose) {
  const { limit, constraints = {} } = task;
  const hypothesis = begun(model, task);
  const [steps, written] = [[], []];
  while (written.length < limit && !ends(model, written.at(-1))) {
    const { logProbs: [logProbs], own, cross } = model.step([hypothesis], written.length);
    const id = choose(logProbs, written);
    const seen = { own: own.map(([row]) => row), cross: cross.map(([row]) => row) };
    steps.push(stepOf(logProbs, id, written, constraints, seen));
    written.push(id);
    hypothesis.token = id;
  }
  return steps;
}

/** Always the most probable token. */
export const greedy = (model, task) =>
  decode(model, task, (logProbs, written) => top(constrained(logProbs, written, task.constraints ?? {}), 1)[0]);

/** A translation that is given, read by teacher forcing. */
export const forced = (model, task, ids) => decode(model, { ...task, limit: ids.length }, (_, written) => ids[written.length]);

/** The best `width` continuations that may run on, and those that end, of all hypotheses. */
function continuations(running, logProbs, width, constraints) {
  const each = running.flatMap(({ ids, score }, parent) => {
    const own = constrained(logProbs[parent], ids, constraints);
    return top(own, 2 * width).map((id) => ({ parent, id, score: Math.fround(score + own[id]) }));
  });
  const scores = each.map(({ score }) => score);
  return top(scores, 2 * width).map((at) => each[at]).filter(({ score }) => score > -Infinity);
}

/**
 * Beam search of width W, scored and stopped as model/decoding/beam.py: { best, nodes }. `best` are the finished
 * hypotheses { ids, score }, best first; `nodes` every candidate weighed, as model/decoding/beam.py numbers them.
 */
export function beamSearch(model, task, { width, alpha = 1, stop = "proven" }) {
  const { limit, constraints = {} } = task;
  const penalty = (length) => length ** alpha;
  let running = [{ ...begun(model, task), ids: [], score: 0, node: null }];
  let finished = [];
  const nodes = [];
  for (let position = 0; position < limit; position += 1) {
    const { logProbs } = model.step(running, position);
    const next = [];
    continuations(running, logProbs, width, constraints).forEach(({ parent, id, score }, place) => {
      const before = running[parent];
      const ids = [...before.ids, id];
      const over = ends(model, id) || position + 1 === limit;
      const finishes = over && place < width;
      const alive = !over && next.length < width;
      nodes.push({ position, place, parent: before.node, ids, score, fate: finishes ? "finished" : alive ? "alive" : "pruned" });
      if (finishes) finished.push({ ids, score: score / penalty(position + 1) });
      if (alive) next.push({ ...before, ids, score, node: nodes.length - 1, token: id });
    });
    finished = top(finished.map(({ score }) => score), width).map((at) => finished[at]);
    const longest = stop === "proven" && alpha > 0 ? limit : position + 1;
    const worst = finished.length < width ? -Infinity : finished.at(-1).score;
    if (!next.length || worst >= next[0].score / penalty(longest)) break;
    for (const one of next) one.caches = one.caches.map((cache) => cache.copy());
    running = next;
  }
  return { best: finished, nodes };
}
