"""What each view shows, in plain words and in equations with numbers. No Streamlit here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from model.positions.table import Cell

from ..figures.labels import signed

if TYPE_CHECKING:
    from model.positions.embedding_parts import EmbeddingParts
    from model.positions.forms import FormError
    from model.positions.geometry import DistanceProfile, Uniqueness
    from model.positions.table import PositionTable

    from .controls import TableChoice

ROUNDING = 1e-4
"""The largest error, relative to the largest value, that passes for the rounding of float32 angles (at most 6e-5 over
1,024 positions); tables stored or computed in half precision are off by more."""


def table(choice: TableChoice) -> str:
    """How to read the heatmap."""
    whose = "the tensor the loaded model adds" if choice.own else "made from the formula"
    parts = [f"Each row is what is added to the token at that position ({whose}): orange below zero, indigo above."]
    if choice.sinusoidal:
        parts.append("Early dimensions swing from row to row, late ones hardly at all.")
    if choice.table.first:
        parts.append("The row PAD is all zero; positions count from 1.")
    if choice.sentence is not None and choice.sentence < choice.positions:
        parts.append(f"Dashed: the last of the {choice.sentence} pieces of your sentence.")
    return " ".join([*parts, "Click a cell to see its number worked out."])


def equation(cell: Cell, d_model: int, base: float, *, inclusive: bool = False) -> str:
    """One value in LaTeX, a line a step: the formula, the exponent worked out, the angle, the value."""
    above, below = (cell.pair, max((d_model + 1) // 2 - 1, 1)) if inclusive else (2 * cell.pair, d_model)
    function = f"\\{cell.function}"
    steps = (
        f"PE_{{{cell.position},\\,{cell.dimension}}} &= "
        f"{function}\\!\\left(\\frac{{{cell.position}}}{{{base:g}^{{\\,{above}/{below}}}}}\\right)",
        f"&= {function}\\!\\left(\\frac{{{cell.position}}}{{{cell.divisor:.6g}}}\\right)",
        f"&= {function}({cell.angle:.6g})",
        f"&= \\mathbf{{{cell.value:.6f}}}",
    )
    return "\\begin{aligned} " + " \\\\ ".join(steps) + " \\end{aligned}"


def equation_in_a_line(cell: Cell, table: PositionTable) -> str:
    """:func:`equation` where no LaTeX is set: in a saved file."""
    exponent = f"{2 * cell.pair}/{table.width}"
    steps = (
        f"{cell.position} / {table.base:g}^({exponent})",
        f"{cell.position} / {cell.divisor:.6g}",
        f"{cell.angle:.6g}",
    )
    functions = " = ".join(f"{cell.function}({step})" for step in steps)
    return f"PE({cell.position}, {cell.dimension}) = {functions} = {signed(cell.value, 6)}"


def stored_value(cell: Cell, value: float, first: int) -> str:
    """The worked value beside the stored one."""
    kind = "cosine" if cell.dimension % 2 else "sine"
    counted = " Positions count from 1 here, so the formula's number is one less." if first else ""
    return (
        f"Pair i = {cell.pair}, exponent {cell.exponent:.4f}: dimension {cell.dimension} is its {kind}. "
        f"The table holds {value:.6f}, off by {abs(value - cell.value):.1e}.{counted}"
    )


def waves(choice: TableChoice, lengths: np.ndarray) -> str:
    if not choice.sinusoidal:
        return "A learned table has no wavelengths: each line is one dimension of it over position."
    complete = int((lengths <= choice.positions).sum())
    if len(lengths) == 1:
        grows = "There is one pair, with a wavelength of 2π"
    else:
        grows = (
            "Sine and cosine of a pair share one wavelength; from pair to pair it grows by the same factor, from 2π to "
            f"{lengths[-1] / (2 * np.pi):,.6g} · 2π"
        )
    return (
        f"{grows}. {complete} of {len(lengths)} pairs complete a turn within the {choice.positions} positions shown; "
        "the others only tell near from far."
    )


def similarity(choice: TableChoice, cosine: bool, pair: tuple[int, int], value: float, profile: DistanceProfile) -> str:
    """The similarity of the two positions `pair`, and whether distance alone decides it, from the whole profile."""
    first, second = pair
    what = "cosine" if cosine else "dot product"
    said = f"Positions {first} and {second}, {abs(second - first)} apart: {what} {value:.3f}."
    even = choice.sinusoidal and choice.table.width % 2 == 0
    if even and profile.spread <= ROUNDING * np.abs(profile.mean).max():
        return f"{said} Along every diagonal it is the same, up to {profile.spread:.1e}: the distance alone decides it."
    why = _why_not_by_distance(choice)
    return f"{said} Pairs at one distance differ by up to {profile.spread:.2g}: {why}."


def _why_not_by_distance(choice: TableChoice) -> str:
    if not choice.sinusoidal:
        return "a learned table knows more than distance"
    if choice.table.width % 2:
        return "the width is odd, so the last sine has no cosine beside it"
    return "this way of computing the table rounds its angles or values"


def uniqueness(found: Uniqueness, positions: int, first: int) -> str:
    one, other = sorted(found.pair)
    if found.smallest == 0:
        return (
            f"Not unique: of all {positions} positions of the table, {one + first} and {other + first} have the "
            "very same row, so the model cannot tell them apart."
        )
    return (
        f"Unique: of all {positions} positions of the table, the two most alike are {one + first} and {other + first}, "
        f"{found.smallest:.4f} apart."
    )


def rotation(choice: TableChoice, shift: int, error: float) -> str:
    """Whether one matrix shifts every position, from the largest error of all positions and pairs."""
    if not choice.sinusoidal:
        return (
            f"A learned table does not turn: the matrix that shifts a sinusoidal table by {shift} misses this one by "
            f"up to {error:.2f}."
        )
    odd = " The width is odd, so the last dimension is a sine without its cosine and is left out." * (
        choice.table.width % 2
    )
    checked = f"of all positions and pairs of this table, |M·PE(pos) − PE(pos + {shift})| is at most {error:.1e}"
    if error <= ROUNDING:
        return f"One matrix shifts every position by {shift}, wherever it stands: {checked}.{odd}"
    return (
        f"One matrix would shift every position by {shift}, but this way of computing the table rounds its angles or "
        f"values: {checked}.{odd}"
    )


def block(pair: int, matrix: np.ndarray, before: np.ndarray, after: np.ndarray) -> tuple[str, ...]:
    """The 2 by 2 block of one pair in LaTeX, and what it does to one position."""
    rows = " \\\\ ".join(" & ".join(f"{value:.3f}" for value in row) for row in matrix)
    vectors = [" \\\\ ".join(f"{value:.3f}" for value in vector) for vector in (before, after)]
    return (
        f"M_k^{{({pair})}} = \\begin{{pmatrix}} \\cos k\\omega & \\sin k\\omega \\\\ "
        "-\\sin k\\omega & \\cos k\\omega \\end{pmatrix}",
        f"\\begin{{pmatrix}} {rows} \\end{{pmatrix}} \\begin{{pmatrix}} {vectors[0]} \\end{{pmatrix}} = "
        f"\\begin{{pmatrix}} {vectors[1]} \\end{{pmatrix}}",
    )


def precision(error: FormError, note: str) -> str:
    return (
        f"{note} At most {error.largest:.1e} from the float64 formula, at position {error.position}, dimension "
        f"{error.dimension}; {error.rms:.1e} on average (root mean square)."
    )


def three_vectors(parts: EmbeddingParts) -> str:
    """What the vectors of the piece that is clicked are."""
    reads = "the first layer reads the third" + (", which a norm takes first" if parts.normalised else "")
    return f"Click a piece to see its three vectors: the first two are added, {reads}."


def sentence(parts: EmbeddingParts) -> str:
    tokens, encoding = np.linalg.norm(parts.tokens, axis=1).mean(), np.linalg.norm(parts.encoding, axis=1).mean()
    if parts.scale == 1:
        ratio = f"This model adds embeddings as they are: {tokens:.2f} long on average, the encoding {encoding:.2f}."
        return f"{ratio} Position is {encoding / tokens:.1f} times as long as meaning."
    return (
        f"Embeddings are multiplied by √{len(parts.tokens[0])} = {parts.scale:.3g}: from {tokens / parts.scale:.2f} "
        f"(the mark) to {tokens:.2f} on average, beside an encoding of {encoding:.2f}. Without that factor position "
        f"would be {encoding * parts.scale / tokens:.1f} times as long as meaning; with it, "
        f"{encoding / tokens:.1f} times."
    )
