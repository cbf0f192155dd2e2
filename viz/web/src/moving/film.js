/*! GIF: gifenc 1.0.3, MIT License, Copyright (c) 2017 Matt DesLauriers */
import { encodeGif } from "./gif.js";
import { encodeWebm } from "./webm.js";

const ENCODERS = { gif: encodeGif, webm: encodeWebm };

async function loaded(address) {
  const image = new Image();
  image.src = address;
  await image.decode();
  return image;
}

/** The pictures one after the other on one canvas, which is as large as the largest of them, in even numbers. */
async function* painted(pictures, size, fill) {
  const [width, height] = size.map((one) => 2 * Math.ceil(one / 2)); // VP9 keeps colours of two by two pixels.
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  for (const { address, size: [across, down], seconds } of pictures) {
    pen.fillStyle = fill;
    pen.fillRect(0, 0, width, height);
    pen.drawImage(await loaded(address), 0, 0, across, down);
    yield { canvas, seconds };
  }
}

/**
 * A film as the bytes of a file, `kind` webm (VP9) or gif. `pictures` have each an `address` of an image, its `size` in
 * pixels of the film, and the `seconds` for which it stands still; `fill` is the paper under them.
 */
export default async function film({ kind, pictures, fill }) {
  const size = [0, 1].map((side) => Math.max(...pictures.map((one) => one.size[side])));
  return ENCODERS[kind](painted(pictures, size, fill));
}
