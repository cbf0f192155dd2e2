/** The fields of one protocol buffers message, in order: { number, value }, a value being a number or bytes. */
export function* fields(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * shift;
      if (byte < 128) return value;
    }
  };
  const take = (length) => bytes.subarray(at, (at += length));
  const read = {
    0: varint,
    1: () => (take(8), null),
    2: () => take(varint()),
    5: () => view.getFloat32((at += 4) - 4, true),
  };
  while (at < bytes.length) {
    const key = varint();
    const value = read[key & 7]?.();
    if (value === undefined || at > bytes.length) throw new Error("not a protocol buffers message");
    yield { number: Math.floor(key / 8), value };
  }
}
