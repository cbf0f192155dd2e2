import { GIFEncoder, applyPalette, quantize } from "gifenc/dist/gifenc.esm.js";

// WebM: elements of EBML (RFC 8794, RFC 9559), each its number, its length and what it holds.
const RATE = 10; // Frames a second: who jumps in a film lands near.
const BITS = 4_000_000; // A second, of what moves; a picture that stands still takes next to none.
const CODEC = "vp09.00.51.08";
const MICROSECONDS = 1_000_000;
const CLUSTER = 30_000; // Milliseconds, fewer than the 16 bits of a block's time hold.

/** Numbers of colour spaces as ISO/IEC 23091-2 has them; 2 is unknown. */
const COLOUR_CODES = { bt709: 1, smpte170m: 6, bt470bg: 5, "iec61966-2-1": 13, rgb: 0 };

const joined = (parts) => {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  parts.reduce((at, part) => (bytes.set(part, at), at + part.length), 0);
  return bytes;
};

/** A whole number in as few bytes as it needs. */
function whole(value) {
  const bytes = [];
  for (let rest = value; rest > 0 || !bytes.length; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Uint8Array.from(bytes);
}

function float(value) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setFloat64(0, value);
  return bytes;
}

const ascii = (text) => new TextEncoder().encode(text);

/** A length, in eight bytes always. */
function lengthOf(size) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(size));
  bytes[0] = 1;
  return bytes;
}

function element(id, ...parts) {
  const body = joined(parts);
  return joined([whole(id), lengthOf(body.length), body]);
}

const HEAD = element(
  0x1a45dfa3,
  ...[[0x4286, 1], [0x42f7, 1], [0x42f2, 4], [0x42f3, 8]].map(([id, value]) => element(id, whole(value))),
  element(0x4282, ascii("webm")),
  element(0x4287, whole(4)),
  element(0x4285, whole(2)),
);

function colourOf(space) {
  const code = (name) => whole(COLOUR_CODES[space?.[name]] ?? 2);
  return element(0x55b0, element(0x55b1, code("matrix")), element(0x55b9, whole(space?.fullRange ? 2 : 1)), element(0x55ba, code("transfer")), element(0x55bb, code("primaries")));
}

function trackOf(width, height, colour) {
  const video = element(0xe0, element(0xb0, whole(width)), element(0xba, whole(height)), colourOf(colour));
  return element(0x1654ae6b, element(0xae, element(0xd7, whole(1)), element(0x73c5, whole(1)), element(0x83, whole(1)), element(0x86, ascii("V_VP9")), video));
}

/** A block of the cluster that begins at `start`: the track, the time in it, whether it stands alone, and the frame. */
function block({ time, isKey, bytes }, start) {
  const head = new Uint8Array(4);
  head[0] = 0x81;
  new DataView(head.buffer).setInt16(1, time - start);
  head[3] = isKey ? 0x80 : 0;
  return element(0xa3, head, bytes);
}

/** Encoded frames as a file; `milliseconds` is how long it plays. */
function muxed(chunks, { width, height, colour, milliseconds }) {
  const clusters = [];
  for (const chunk of chunks) {
    if (chunk.isKey && (!clusters.length || chunk.time - clusters.at(-1)[0].time > CLUSTER / 2)) clusters.push([]);
    clusters.at(-1).push(chunk);
  }
  const info = element(0x1549a966, element(0x2ad7b1, whole(MICROSECONDS)), element(0x4489, float(milliseconds)), element(0x4d80, ascii("Attenscope")), element(0x5741, ascii("Attenscope")));
  const written = clusters.map((of) => element(0x1f43b675, element(0xe7, whole(of[0].time)), ...of.map((one) => block(one, of[0].time))));
  return joined([HEAD, element(0x18538067, info, trackOf(width, height, colour), ...written)]);
}

/** Frames, each a canvas and its seconds, as WebM with VP9. */
async function encodeWebm(frames) {
  const chunks = [];
  let [encoder, failed, colour, size, time] = [null, null, undefined, null, 0];
  const output = (chunk, about) => {
    colour ??= about?.decoderConfig?.colorSpace;
    const bytes = new Uint8Array(chunk.byteLength);
    chunk.copyTo(bytes);
    chunks.push({ time: Math.round(chunk.timestamp / 1000), isKey: chunk.type === "key", bytes });
  };
  for await (const { canvas, seconds } of frames) {
    if (!encoder) {
      size = { width: canvas.width, height: canvas.height };
      encoder = new VideoEncoder({ output, error: (error) => (failed = error) });
      encoder.configure({ codec: CODEC, ...size, bitrate: BITS, framerate: RATE, latencyMode: "quality" });
    }
    const count = Math.max(1, Math.round(seconds * RATE));
    for (let at = 0; at < count && !failed; at += 1) {
      const frame = new VideoFrame(canvas, { timestamp: (time + at) * (MICROSECONDS / RATE), duration: MICROSECONDS / RATE });
      encoder.encode(frame, { keyFrame: at === 0 });
      frame.close();
    }
    time += count;
    await encoder.flush().catch((error) => (failed ??= error)); // The canvas is painted anew.
    if (failed) throw failed;
  }
  encoder.close();
  return muxed(chunks, { ...size, colour, milliseconds: (1000 * time) / RATE });
}

const COLOURS = 256;

/** Frames, each a canvas and its seconds, as an animated GIF that begins anew at its end. */
async function encodeGif(frames) {
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

/*! GIF: gifenc 1.0.3, MIT License, Copyright (c) 2017 Matt DesLauriers */

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
