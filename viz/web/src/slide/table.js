import { element } from "../shared/element.js";

function rowOf(cells, tags) {
  const row = element("tr");
  row.append(...cells.map(([text, look], at) => element(tags[Math.min(at, tags.length - 1)], look, text)));
  return row;
}

/** A table whose first column names its row; a cell is a text and the class that says how it looks. */
export function table(host, { headings, rows, name }) {
  const [made, head, body] = ["table", "thead", "tbody"].map((tag) => element(tag));
  made.setAttribute("aria-label", name);
  head.append(rowOf(headings.map((text) => [text, ""]), ["th"]));
  body.append(...rows.map((cells) => rowOf(cells, ["th", "td"])));
  head.querySelectorAll("th").forEach((one) => (one.scope = "col"));
  body.querySelectorAll("th").forEach((one) => (one.scope = "row"));
  made.append(head, body);
  host.classList.add("table");
  host.append(made);
  return () => {};
}
