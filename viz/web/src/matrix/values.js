import { written } from "../shared/number.js";
import { FULL } from "../shared/packed.js";

const fixed = (value, decimals) => written(value.toFixed(decimals).replace(/^-(?=[0.]*$)/, "")); // No minus before zero.
const power = (size) => written(size.toExponential(1));

/** Numbers between the two ends of the colours: how level `n` is printed, and where it lies from 0 to 1. */
function even({ low, high, full, decimals }) {
  const text = (n) => fixed(low + ((high - low) * n) / full, decimals);
  return { text, share: (n) => n / full, lowest: fixed(low, decimals), highest: fixed(high, decimals) };
}

/** Sizes of two significant digits each, coloured by their logarithm; what lies outside has the colours of the ends. */
function significant({ low, high, least }) {
  const parts = (n) => [10 + ((n - 1) % 90), least + Math.floor((n - 1) / 90)];
  const text = (n) => (n ? power(Number(parts(n).join("e"))) : "0");
  const share = (n) => {
    if (!n) return 0;
    const [digits, exponent] = parts(n);
    return Math.min(1, Math.max(0, (Math.log10(digits) + exponent - low) / (high - low)));
  };
  return { text, share, lowest: `≤ ${power(10 ** low)}`, highest: `≥ ${power(10 ** high)}` };
}

/** The cells as components/matrix packs them: the text of each, its byte on the ramp of colours, and the ramp's ends. */
export function readCells(header, body) {
  const numbers = header.full === FULL ? body : new Uint16Array(body.slice().buffer); // A copy: it may begin at an odd address.
  const { text, share, lowest, highest } = (header.exponent ? significant : even)(header);
  const ramp = Uint8Array.from({ length: 256 ** numbers.BYTES_PER_ELEMENT }, (_, n) => Math.round(FULL * share(n)));
  return { text: (at) => text(numbers[at]), bytes: numbers.map((n) => ramp[n]), lowest, highest };
}
