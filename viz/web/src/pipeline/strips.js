const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** Rows of signed numbers as rows of coloured cells: the middle colour is 0, the ends the largest size in sight. */
export function strips(numbers, width, colours) {
  const rows = numbers.length / width;
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = rows;
  const [negative, zero, positive] = colours.map(rgb);
  const largest = numbers.reduce((most, number) => Math.max(most, Math.abs(number)), 1e-12);
  const image = new ImageData(width, rows);
  numbers.forEach((number, i) => {
    const end = number < 0 ? negative : positive;
    const share = Math.sqrt(Math.abs(number) / largest);
    const colour = zero.map((from, channel) => from + (end[channel] - from) * share);
    image.data.set([...colour, 255], 4 * i);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}
