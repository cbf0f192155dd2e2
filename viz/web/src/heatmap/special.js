/** The rows and the columns of a map that are no special tokens. */
const plainPlaces = ({ rows, columns, special }) =>
  [rows, columns].map((tokens, side) => tokens.map((_, at) => at).filter((at) => !special[side].includes(at)));

/** The two-byte levels of those rows and columns. */
function selectCells(levels, width, rows, columns) {
  return new Uint8Array(Uint16Array.from(rows.flatMap((row) => columns.map((column) => levels[row * width + column]))).buffer);
}

/**
 * What Python sends once the special tokens are hidden. Null where nothing would be left, or nothing would go. Until
 * Python has answered no cell can be pinned: it still knows the others.
 */
export function withoutSpecial({ header, body }) {
  const [rows, columns] = plainPlaces(header);
  const goes = rows.length < header.rows.length || columns.length < header.columns.length;
  if (!goes || !rows.length || !columns.length) return null;
  const only = (places, list) => places.map((at) => list[at]);
  const [row, column] = [rows, columns].map((places, side) => places.indexOf(header.pinned[side]));
  const shown = {
    ...header,
    rows: only(rows, header.rows),
    columns: only(columns, header.columns),
    rowLabels: only(rows, header.rowLabels),
    columnLabels: only(columns, header.columnLabels),
    pinned: [row < 0 ? null : row, column < 0 ? null : column],
    special: [[], []],
    pins: false,
    alt: header.title,
  };
  const levels = new Uint16Array(body.slice().buffer); // A copy: the body may begin at an odd address.
  return { header: shown, body: selectCells(levels, header.columns.length, rows, columns) };
}

const identity = ({ title, model, rows, columns }) => JSON.stringify([title, model, rows, columns]);

/** The map `whole` with what has been chosen since its special tokens were hidden; null where `header` is of another. */
export function withSpecial(whole, header) {
  const hidden = whole && withoutSpecial(whole);
  if (!hidden || identity(hidden.header) !== identity(header)) return null;
  const { scale, pinned } = header;
  const places = plainPlaces(whole.header);
  const back = pinned.map((at, side) => (at === null ? null : places[side][at]));
  return { header: { ...whole.header, scale, pinned: back, pins: false }, body: whole.body };
}
