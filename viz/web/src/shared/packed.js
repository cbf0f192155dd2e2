export const MASKED = 255;
export const FULL = 254;
export const FINE_MASKED = 65535;
export const FINE_FULL = 65534;

/** Read what component_scripts.py packed: a JSON header and the bytes after it (a view, not a copy). */
export function unpack(packed) {
  // The array handed over is a window into a larger buffer, so its byteOffset is not zero.
  const length = new DataView(packed.buffer, packed.byteOffset, 4).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(packed.subarray(4, 4 + length)));
  return { header, body: packed.subarray(4 + length) };
}

const encoder = new TextEncoder();

/** The inverse of components/shared/packed.js. */
export function pack(header, body) {
  const text = encoder.encode(JSON.stringify(header));
  const packed = new Uint8Array(4 + text.length + body.length);
  new DataView(packed.buffer).setUint32(0, text.length, true);
  packed.set(text, 4);
  packed.set(body, 4 + text.length);
  return packed;
}
