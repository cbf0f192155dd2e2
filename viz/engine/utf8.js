const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export const toBytes = (text) => encoder.encode(text);
export const toText = (bytes) => decoder.decode(bytes);

/** How many bytes a character has, by its first. */
export const lengthOfCharacter = (first) => (first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4);

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Bytes as text; null for what is no UTF-8. */
export function toStrictText(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}

/** Bytes as text; what is no UTF-8 becomes one replacement character a byte. */
export function toTextByByte(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const own = toStrictText(bytes.subarray(at, at + lengthOfCharacter(bytes[at])));
    text += own ?? "\ufffd";
    at += own === null ? 1 : lengthOfCharacter(bytes[at]);
  }
  return text;
}
