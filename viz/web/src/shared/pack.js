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
