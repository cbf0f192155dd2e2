import { applyPalette, GIFEncoder, quantize } from "gifenc";

const COLOURS = 256;

/** Frames, each a canvas and its seconds, as an animated GIF that begins anew at its end. */
export async function encodeGif(frames) {
  const gif = GIFEncoder();
  for await (const { canvas, seconds } of frames) {
    const { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    const palette = quantize(data, COLOURS);
    gif.writeFrame(applyPalette(data, palette), width, height, { palette, delay: 1000 * seconds });
  }
  gif.finish();
  return gif.bytes();
}
