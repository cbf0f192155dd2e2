import { grouped, say, sentences } from "../web/src/shared/say.js";
import { changesOf, explained, lookedAt } from "./explain.js";
import { marianTokenizer } from "./marian_tokenizer.js";
import { beamSearch, forced, greedy } from "./search.js";
import { tokenizer } from "./tokenizer.js";
import { transformer } from "./transformer.js";
import { readWeights } from "./weights.js";

const CHARACTERS_A_TOKEN = 30; // As in model/translate.py, whose sentences these are.

/** A text that cannot be translated; the message is the sentence to show. */
export class InputError extends Error {}

/** Text -> its pieces; InputError where it is empty, too long or no Unicode. */
function pieces(text, tokens, limit) {
  const room = { tokens: limit, words: Math.floor((limit * 2) / 3) };
  const tooLong = say("This model reads {tokens} tokens at most, about {words} words; please shorten the text.", room);
  const length = [...text].length;
  if (length > limit * CHARACTERS_A_TOKEN) {
    throw new InputError(sentences(say("This text has {count} characters.", { count: grouped(length) }), tooLong));
  }
  if (/\p{Surrogate}/u.test(text)) {
    throw new InputError(say("This text is not valid Unicode: it holds half of a character. Please type it again."));
  }
  const encoded = tokens.encode(text);
  if (encoded.ids.length === 1 || /^[\p{Z}\p{Cc}\p{Cf}]*$/u.test(text)) {
    throw new InputError(say("There is nothing to translate yet: please type a sentence."));
  }
  if (encoded.ids.length > limit) {
    throw new InputError(sentences(say("This text has {count} tokens.", { count: grouped(encoded.ids.length) }), tooLong));
  }
  return encoded;
}

/** Rows of (H, keys) by layer and query as one array (L, H, Q, K), zero where a key comes after its query. */
function stacked(layers, heads, keys) {
  const queries = layers[0].length;
  const data = new Float32Array(layers.length * heads * queries * keys);
  layers.forEach((rows, layer) =>
    rows.forEach((row, query) => {
      const count = row.length / heads;
      for (let head = 0; head < heads; head += 1) {
        data.set(row.subarray(head * count, (head + 1) * count), ((layer * heads + head) * queries + query) * keys);
      }
    }),
  );
  return { shape: [layers.length, heads, queries, keys], data };
}

/** Which keys each query may attend to, in each layer: (L, Q, K) of 0 and 1. */
function maskOf(kind, /** @type {number[]} */ [layers, , queries, keys], changes) {
  const mask = new Uint8Array(layers * queries * keys);
  for (let layer = 0, at = 0; layer < layers; layer += 1) {
    const { allowed } = changes(kind, layer);
    for (let query = 0; query < queries; query += 1) {
      for (let key = 0; key < keys; key += 1, at += 1) {
        mask[at] = (kind !== "decoder" || key <= query) && allowed(query, key, true) ? 1 : 0;
      }
    }
  }
  return mask;
}

function mapsOf(encoded, steps, heads, sourceLength, changes) {
  const layersOf = (name) => steps[0][name].map((_, layer) => steps.map((step) => step[name][layer]));
  const maps = {
    encoder: stacked(encoded, heads, sourceLength),
    decoder: stacked(layersOf("own"), heads, steps.length),
    cross: stacked(layersOf("cross"), heads, sourceLength),
  };
  for (const [kind, map] of Object.entries(maps)) map.mask = maskOf(kind, map.shape, changes);
  return maps;
}

/** Without the rows that went into the maps, and with the names of all tokens. */
function told({ own, cross, candidates, ...step }, token) {
  return { ...step, token: token(step.id), candidates: candidates.map((one) => ({ ...one, token: token(one.id) })) };
}

/**
 * A model that translates: `packed` is the { header, body } that engine/package.py wrote, `code` the bytes of kernel.wasm.
 * `translate(text, { beam, alpha, stop, changes, constraints, target })` -> the translation with all its attention;
 * `target` are ids to be read by teacher forcing instead, `special` those of the tokens in it that stand for no text.
 * Throws InputError. `explain({ sourceIds, ids, changes })` is the generator of what a translation rests on.
 */
export function engine({ header, body }, code) {
  const { config, tensors, vocabulary, tokenizer: [from, length] } = header;
  const bytes = body.subarray(from, from + length);
  const tokens = vocabulary ? marianTokenizer(bytes, vocabulary) : tokenizer(bytes);
  const weights = readWeights(tensors, body, code);
  const [model, looked] = [transformer(config, weights), lookedAt(weights, config)];

  const named = ({ best, nodes }) => ({
    best: best.map((one) => ({ ...one, text: tokens.decode(one.ids) })),
    nodes: nodes.map((node) => ({ ...node, token: tokens.token(node.ids.at(-1)) })),
  });

  /** Why a translation ends where it does; null for one that is given and goes on from there. */
  const stopOf = (ids, target) => (config.ids.end.includes(ids.at(-1)) ? "eos" : target ? null : "length");

  const translate = (text, { beam = 1, alpha = 1, stop = "proven", changes: given = "", constraints: asked = /** @type {{ prefix?: number[], forbidden?: number[][] }} */ ({}), target = null } = {}) => {
    const encoded = pieces(text, tokens, config.max_length);
    const changes = changesOf(given);
    const { memory, weights: seen } = model.encode(encoded.ids, changes);
    const constraints = { ...asked, forbidden: [...config.forbidden, ...(asked.forbidden ?? [])] };
    const limit = Math.min(config.max_length - 1, 2 * encoded.ids.length + 20);
    const task = { crossing: model.crossOf(memory), changes, limit, constraints };
    const tree = beam > 1 ? beamSearch(model, task, { width: beam, alpha, stop }) : null;
    const fixed = target ?? tree?.best[0].ids;
    const steps = fixed ? forced(model, task, fixed) : greedy(model, task);
    const ids = steps.map(({ id }) => id);
    const names = [config.ids.start, ...ids].map(tokens.token);
    return {
      text: tokens.decode(ids),
      ids,
      start: names[0],
      tokens: names.slice(1),
      special: [...new Set([...encoded.tokens, ...names])].filter((token) => tokens.special.has(token)),
      sourceIds: encoded.ids,
      sourceTokens: encoded.tokens,
      unknown: encoded.unknown,
      logProbs: Float32Array.from(steps, ({ logProb }) => logProb),
      steps: steps.map((step) => told(step, tokens.token)),
      stopped: stopOf(ids, target),
      tree: tree && named(tree),
      looked: looked(steps, task.crossing),
      maps: mapsOf(seen, steps, config.heads, encoded.ids.length, changes),
    };
  };
  return { translate, explain: (asked) => explained(model, asked), tokens, config };
}
