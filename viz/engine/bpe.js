/** A binary heap; `before(a, b)` says which of two comes out first. */
function heap(before) {
  const items = [];
  const swap = (a, b) => ([items[a], items[b]] = [items[b], items[a]]);
  const push = (item) => {
    let at = items.push(item) - 1;
    for (let up = (at - 1) >> 1; at && before(items[at], items[up]); at = up, up = (at - 1) >> 1) swap(at, up);
  };
  const pop = () => {
    swap(0, items.length - 1);
    const top = items.pop();
    for (let at = 0, best; ; at = best) {
      best = at;
      for (const down of [2 * at + 1, 2 * at + 2]) if (down < items.length && before(items[down], items[best])) best = down;
      if (best === at) return top;
      swap(at, best);
    }
  };
  return { push, pop, items };
}

/**
 * Byte-pair merges as SentencePiece does them: always the pair whose piece has the highest score, of equal ones the
 * leftmost. `scores` is a Map of piece -> score. Characters -> [{ text, start, end }], ends exclusive.
 */
export function merged(characters, scores) {
  const symbols = characters.map(({ text }, i) => ({ text, start: i, end: i + 1, before: i - 1, after: i + 1 }));
  const pairs = heap((a, b) => a.score > b.score || (a.score === b.score && a.left < b.left));
  const offer = (left, right) => {
    if (left < 0 || right >= symbols.length) return;
    const text = symbols[left].text + symbols[right].text;
    const score = scores.get(text);
    if (score !== undefined) pairs.push({ left, right, text, score });
  };
  for (let i = 1; i < symbols.length; i += 1) offer(i - 1, i);
  while (pairs.items.length) {
    const { left, right, text } = pairs.pop();
    const [one, other] = [symbols[left], symbols[right]];
    // Pieces only grow or vanish: where the length is no longer the same, one of the two has been merged since.
    if (!one.text || !other.text || one.text.length + other.text.length !== text.length) continue;
    Object.assign(one, { text, end: other.end, after: other.after });
    if (other.after < symbols.length) symbols[other.after].before = left;
    other.text = "";
    offer(one.before, left);
    offer(left, one.after);
  }
  return symbols.filter(({ text }) => text);
}
