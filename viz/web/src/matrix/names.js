/** At most `most` evenly spaced names, at round steps. */
function ticks(names, most) {
  const step = [1, 2, 4, 8, 16, 32, 64, 128, 256].find((one) => names.length / one <= most) ?? 512;
  return names.map((name, at) => ({ name, at })).filter(({ at }) => at % step === 0);
}

/** The names along one side, as many as have room, under what they are names of. */
export function label(parent, names, most, side, title) {
  const heading = document.createElement("em");
  heading.textContent = title;
  const texts = ticks(names, most).map(({ name, at }) => {
    const text = document.createElement("span");
    text.textContent = name;
    text.style[side] = `${((at + 0.5) / names.length) * 100}%`;
    return text;
  });
  parent.replaceChildren(heading, ...texts);
}
