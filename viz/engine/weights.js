const PAGE = 65536;

/**
 * Matrices in WebAssembly's memory and the product with them (kernel.wat). `code` are the bytes of kernel.wasm, `floats`
 * how many numbers all matrices have together.
 */
export function kernel(code, floats) {
  const memory = new WebAssembly.Memory({ initial: Math.ceil((4 * floats) / PAGE) + 1 });
  const product = /** @type {Function} */ (
    new WebAssembly.Instance(new WebAssembly.Module(code), { engine: { memory } }).exports.product
  );
  let end = 16;
  const room = (at, bytes) => {
    const missing = at + bytes - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / PAGE));
    return at;
  };

  /** Room for a matrix (outer, inner): its place, and the numbers to be filled in before anything else is asked for. */
  const matrix = (outer, inner) => {
    const at = room(end, 4 * outer * inner);
    end = (at + 4 * outer * inner + 15) & ~15;
    return { at, outer, inner, values: new Float32Array(memory.buffer, at, outer * inner) };
  };

  /** x (R, inner) times the matrix transposed: -> (R, outer). */
  const times = (x, { at, outer, inner }) => {
    const rows = x.length / inner;
    const from = room(end, 4 * (x.length + rows * outer) + 16);
    const to = (from + 4 * x.length + 15) & ~15;
    new Float32Array(memory.buffer, from, x.length).set(x);
    product(from, at, to, rows, 4 * inner, outer);
    return new Float32Array(memory.buffer, to, rows * outer).slice();
  };
  /** One row of a matrix, to be read before anything else is asked for. */
  const row = ({ at, inner }, index) => new Float32Array(memory.buffer, at + 4 * index * inner, inner);
  return { matrix, times, row };
}

/** The number of each of the 65,536 half-precision numbers. */
function halves() {
  const table = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits += 1) {
    const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
    const size = exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction;
    table[bits] = (bits & 32768 ? -1 : 1) * (exponent === 31 ? (fraction ? NaN : Infinity) : size);
  }
  return table;
}

const HALVES = halves();

/** How each form of a tensor is read (engine/package.py writes them): `fill(bytes, count, to, outer)`. */
const READ = {
  /** All low bytes, then all high bytes: alike ones beside each other are compressed better. */
  half(bytes, count, to) {
    for (let i = 0; i < count; i += 1) to[i] = HALVES[bytes[i] | (bytes[count + i] << 8)];
  },
  /** A float32 scale for each row, then the rows as signed bytes. */
  int8(bytes, count, to, rows) {
    const scales = new Float32Array(bytes.slice(0, 4 * rows).buffer);
    const numbers = new Int8Array(bytes.buffer, bytes.byteOffset + 4 * rows, count);
    const width = count / rows;
    for (let i = 0; i < count; i += 1) to[i] = numbers[i] * scales[Math.floor(i / width)];
  },
};

/** The tensors of a model by name, matrices in the kernel's memory and vectors as they are, with the kernel's functions. */
export function readWeights(described, body, code) {
  const size = ({ shape }) => shape.reduce((product, one) => product * one, 1);
  const floats = described.reduce((sum, one) => sum + size(one) + 4, 0);
  const { matrix, ...functions } = kernel(code, floats);
  const tensors = new Map();
  for (const one of described) {
    const { name, shape, at, length, form } = one;
    const isMatrix = shape.length === 2;
    const made = isMatrix ? matrix(...shape) : new Float32Array(size(one));
    READ[form](body.subarray(at, at + length), size(one), isMatrix ? made.values : made, shape[0]);
    tensors.set(name, made);
  }
  return { tensors, ...functions };
}
