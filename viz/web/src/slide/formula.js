const MATHML = "http://www.w3.org/1998/Math/MathML";

function made([tag, inside]) {
  const one = document.createElementNS(MATHML, tag);
  one.append(...(typeof inside === "string" ? [inside] : inside.map(made)));
  return one;
}

/** Steps of a calculation below each other, set by the browser itself. */
export function formula(host, { math }) {
  host.classList.add("formula");
  host.append(made(math));
  return () => {};
}
