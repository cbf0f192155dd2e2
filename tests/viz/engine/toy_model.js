import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The bytes of the kernel, as files carry them. */
export const KERNEL = readFileSync(fileURLToPath(new URL("../../../viz/engine/kernel.wasm", import.meta.url)));

const encoder = new TextEncoder();

/** A whole number as protocol buffers write it. */
export function varint(value) {
  const bytes = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) + 128);
  }
}

/** Fields of a message: [number, value], a value being a whole number, a float ({ float }), a text or bytes. */
export function message(...fields) {
  return fields.flatMap(([number, value]) => {
    if (typeof value === "number") return [...varint(number * 8), ...varint(value)];
    if (value.float !== undefined) return [...varint(number * 8 + 5), ...new Uint8Array(Float32Array.of(value.float).buffer)];
    const bytes = typeof value === "string" ? encoder.encode(value) : value;
    return [...varint(number * 8 + 2), ...varint(bytes.length), ...bytes];
  });
}

const WORDS = ["▁", "t", "h", "e", "c", "a", "th", "the", "▁the", "▁c", "at", "▁cat", "s"];

/** A SentencePiece model of these pieces, the more probable the earlier; `spells` gives it the 256 byte pieces too. */
export function sentencePiece({ words = WORDS, spells = false, normalizer = [] } = {}) {
  const special = ["<pad>", "<unk>", "<s>", "</s>"].map((text, id) => message([1, text], [2, { float: 0 }], [3, id === 1 ? 2 : 3]));
  const name = (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
  const bytes = spells ? Array.from({ length: 256 }, (_, byte) => message([1, name(byte)], [3, 6])) : [];
  const normal = words.map((text, at) => message([1, text], [2, { float: -at }]));
  return Uint8Array.from(message(...[...special, ...bytes, ...normal].map((piece) => [1, piece]), [3, message(...normalizer)]));
}

export const CONFIG = {
  ...{ d_model: 8, heads: 2, encoder_layers: 2, decoder_layers: 2, max_length: 24, positions: "sinusoidal" },
  ...{ scale_embedding: true, shared_embedding: false, scale_scores: true, norm_form: "standard", norm_eps: 1e-5 },
  ...{ norm_order: "post", final_norm: false, activation: "relu", ids: { pad: 0, unknown: 1, start: 2, end: [3] }, forbidden: [] },
};
const INNER = 12;
const VOCABULARY = WORDS.length + 4;

function shapesOf(config) {
  const width = config.d_model;
  const norm = (name) => [[`${name}.weight`, [width]], [`${name}.bias`, [width]]];
  const linear = (name, outer, inner) => [[`${name}.weight`, [outer, inner]], [`${name}.bias`, [outer]]];
  const attention = (name) => ["q", "k", "v", "out"].flatMap((one) => linear(`${name}.${one}_proj`, width, width));
  const layer = (name, kinds) => [
    ...kinds.flatMap((kind) => [...attention(`${name}.${kind}_attention`), ...norm(`${name}.after_${kind}_attention.norm`)]),
    ...linear(`${name}.feed_forward.inner`, INNER, width),
    ...linear(`${name}.feed_forward.outer`, width, INNER),
    ...norm(`${name}.after_feed_forward.norm`),
  ];
  const stack = (name, count, kinds) => Array.from({ length: count }, (_, at) => layer(`${name}.layers.${at}`, kinds)).flat();
  return [
    ["source_embedding.table.weight", [VOCABULARY, width]],
    ...(config.shared_embedding ? [] : [["target_embedding.table.weight", [VOCABULARY, width]]]),
    ...(config.positions === "learned" ? ["source", "target"].map((side) => [`${side}_embedding.positional_encoding.table`, [config.max_length, width]]) : []),
    ...stack("encoder", config.encoder_layers, ["self"]),
    ...stack("decoder", config.decoder_layers, ["self", "cross"]),
    ...(config.final_norm ? [...norm("encoder.final_norm"), ...norm("decoder.final_norm")] : []),
    ...linear("generator", VOCABULARY, width),
  ];
}

/** A number of -1 to 1 for every place, always the same. */
const noise = (at) => 2 * ((Math.abs(Math.sin(at * 12.9898 + 4.1) * 43758.5453)) % 1) - 1;

/** A model with random weights as engine/package.py packs one: { header, body }. */
export function toyModel(fields = {}, pieces = sentencePiece()) {
  const config = { ...CONFIG, ...fields };
  const bytes = [...pieces];
  let drawn = 0;
  const tensors = shapesOf(config).map(([name, shape]) => {
    const [rows, count] = [shape[0], shape.reduce((product, one) => product * one, 1)];
    const at = bytes.length;
    const whole = Array.from({ length: count }, () => Math.round(127 * noise((drawn += 1))));
    bytes.push(...new Uint8Array(new Float32Array(rows).fill(1 / 127).buffer), ...new Uint8Array(Int8Array.from(whole).buffer));
    return { name, shape, at, length: bytes.length - at, form: "int8" };
  });
  return { header: { config, tensors, tokenizer: [0, pieces.length] }, body: Uint8Array.from(bytes) };
}
