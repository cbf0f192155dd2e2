"""What each view shows, in plain words and in equations with numbers. No Streamlit here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from model.positions.table import Cell

if TYPE_CHECKING:
    from model.positions.embedding_parts import EmbeddingParts
    from model.positions.experiments import ExperimentResult
    from model.positions.forms import FormError
    from model.positions.geometry import Uniqueness

    from .controls import Choice

EXPERIMENTS = {
    "remove": "No position is added at all: the sentence becomes a bag of words.",
    "shift": "Every piece is told a position further on. A model that only looked at distances would not notice.",
    "reverse": "The words stay, their positions run backwards.",
    "shuffle": "The words stay, their positions are dealt out anew.",
    "stretch": "Positions are multiplied: distances grow or shrink.",
    "swap": "Two pieces change positions, the words stay where they are.",
    "beyond": "The sentence begins where the table ends: positions that were never trained.",
}


def table(choice: Choice) -> str:
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


def equation(cell: Cell, d_model: int, base: float) -> str:
    """One value in LaTeX, a line a step: the formula, the exponent worked out, the angle, the value."""
    function = f"\\{cell.function}"
    steps = (
        f"PE_{{{cell.position},\\,{cell.dimension}}} &= "
        f"{function}\\!\\left(\\frac{{{cell.position}}}{{{base:g}^{{\\,{2 * cell.pair}/{d_model}}}}}\\right)",
        f"&= {function}\\!\\left(\\frac{{{cell.position}}}{{{cell.divisor:.6g}}}\\right)",
        f"&= {function}({cell.angle:.6g})",
        f"&= \\mathbf{{{cell.value:.6f}}}",
    )
    return "\\begin{aligned} " + " \\\\ ".join(steps) + " \\end{aligned}"


def stored(cell: Cell, value: float, first: int) -> str:
    """The worked value beside the stored one."""
    kind = "cosine" if cell.dimension % 2 else "sine"
    counted = " Positions count from 1 here, so the formula's number is one less." if first else ""
    return (
        f"Pair i = {cell.pair}, exponent {cell.exponent:.4f}: dimension {cell.dimension} is its {kind}. "
        f"The table holds {value:.6f}, off by {abs(value - cell.value):.1e}.{counted}"
    )


def waves(choice: Choice, lengths: np.ndarray) -> str:
    if not choice.sinusoidal:
        return "A learned table has no wavelengths: each line is one dimension of it over position."
    complete = int((lengths <= choice.positions).sum())
    return (
        f"Sine and cosine of a pair share one wavelength; from pair to pair it grows by the same factor, from 2π "
        f"towards {choice.table.base:g} · 2π. {complete} of {len(lengths)} pairs complete a turn within the "
        f"{choice.positions} positions shown; the others only tell near from far."
    )


def similarity(cosine: bool, first: int, second: int, value: float, spread: float, sinusoidal: bool) -> str:
    what = "cosine" if cosine else "dot product"
    rule = (
        f"Along every diagonal it is the same, up to {spread:.1e}: it depends on the distance alone."
        if sinusoidal
        else f"Pairs at one distance differ by up to {spread:.2f}: a learned table knows more than distance."
    )
    return f"Positions {first} and {second}, {abs(second - first)} apart: {what} {value:.3f}. {rule}"


def unique(found: Uniqueness, positions: int, first: int) -> str:
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


def rotation(choice: Choice, shift: int, error: float) -> str:
    odd = " The width is odd, so the last dimension is a sine without its cosine and is left out." * (
        choice.table.width % 2
    )
    if not choice.sinusoidal:
        return (
            f"A learned table does not turn: the matrix that shifts a sinusoidal table by {shift} misses this one by "
            f"up to {error:.2f}."
        )
    return (
        f"One matrix shifts every position by {shift}, wherever it stands. Checked on this table, all positions and "
        f"pairs: |M·PE(pos) − PE(pos + {shift})| is at most {error:.1e}.{odd}"
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


def effect(result: ExperimentResult) -> str:
    """How much of its own translation the model still believes."""
    before = np.exp(np.mean([step.log_prob for step in result.before.steps]))
    after = np.exp(result.log_probs.mean())
    same = "The translation is the same." if result.after.text == result.before.text else ""
    return (
        f"{same} Fed its old translation, the model gave each piece {before:.0%} before and {after:.0%} now "
        "(geometric mean)."
    ).strip()
