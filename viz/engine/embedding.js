import { PAD } from "./tokenizer.js";

/** Row `position` of the table of section 3.5. */
function sinusoidal(position, width) {
  const row = new Float32Array(width);
  for (let i = 0; i < width; i += 1) {
    const angle = position / 10000 ** ((i - (i % 2)) / width);
    row[i] = i % 2 ? Math.cos(angle) : Math.sin(angle);
  }
  return row;
}

/** Token embedding and positions of one side, without padding: (ids, offset) -> (ids, D). */
export function embedding({ tensors, row }, side, config) {
  const { d_model: width, positions } = config;
  const shared = side === "target" && config.shared_embedding;
  const table = tensors.get(`${shared ? "source" : side}_embedding.table.weight`);
  const learned = tensors.get(`${side}_embedding.positional_encoding.table`);
  const scale = config.scale_embedding ? Math.fround(Math.sqrt(width)) : 1;
  const sines = new Map();
  const encoding = (id, position) => {
    if (positions === "learned") return row(learned, position);
    // The table with a row for PAD has it before all others: those of real tokens are the same.
    if (positions === "sinusoidal_pad_row" && id === PAD) return new Float32Array(width);
    if (!sines.has(position)) sines.set(position, sinusoidal(position, width));
    return sines.get(position);
  };
  const rows = (ids, offset) => {
    const out = new Float32Array(ids.length * width);
    ids.forEach((id, at) => {
      out.set(row(table, id), at * width);
      const own = encoding(id, offset + at);
      for (let i = 0; i < width; i += 1) out[at * width + i] = Math.fround(out[at * width + i] * scale) + own[i];
    });
    return out;
  };
  return { table, rows };
}
