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
