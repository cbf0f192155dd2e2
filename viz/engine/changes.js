const HEAD = /^(encoder|decoder|cross)\.([1-9]\d{0,5})\.([1-9]\d{0,5}):(off|uniform|head\.([1-9]\d{0,5}))$/;
const MASK = /^mask\.(encoder|decoder|cross)\.([1-9]\d{0,5}|\*)\.([1-9]\d{0,5}|\*)\.([1-9]\d{0,5}|\*):(allow|block)$/;
const from0 = (text) => (text === "*" ? null : Number(text) - 1);

function changeOf(text) {
  const head = HEAD.exec(text);
  if (head) {
    const [, kind, layer, own, change, source] = head;
    return { kind, layer: from0(layer), head: from0(own), change: source ? "copy" : change, source: source ? from0(source) : null };
  }
  const mask = MASK.exec(text);
  if (!mask) throw new RangeError(`“${text}” is no change to a model.`);
  const [, kind, layer, query, key, change] = mask;
  return { kind, layer: from0(layer), query: from0(query), key: from0(key), change };
}

/**
 * Changes to heads and masks, in the text form of model/interventions/changes.py, for one translation: what they do to
 * the attention of `kind` in `layer` (from 0), as { head(h) -> change or undefined, allowed(query, key, own) }.
 */
export function changesOf(text) {
  const every = text.split(",").map((part) => part.trim()).filter(Boolean).map(changeOf);
  return (kind, layer) => {
    const own = every.filter((one) => one.kind === kind && (one.layer === null || one.layer === layer));
    const heads = new Map(own.filter(({ head }) => head !== undefined).map((one) => [one.head, one]));
    const masks = own.filter(({ head }) => head === undefined);
    const touches = (place, at) => place === null || place === at;
    const allowed = (query, key, before) =>
      masks.reduce((now, one) => (touches(one.query, query) && touches(one.key, key) ? one.change === "allow" : now), before);
    return { heads, allowed };
  };
}
