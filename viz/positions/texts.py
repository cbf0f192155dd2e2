"""The sentences of the page Positions, computed from what each view shows; no Streamlit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attenscope.language import format_number, join_sentences, say, say_many
from attenscope.positions.table import EmbeddingParts, FormError, TableCell

if TYPE_CHECKING:
    from attenscope.positions.analysis import DistanceProfile, Uniqueness
    from attenscope.viz.positions.controls import TableChoice

ROUNDING_TOLERANCE = 1e-4
"""The largest error, relative to the largest value, that passes for the rounding of float32 angles (at most 6e-5 over
1,024 positions); tables stored or computed in half precision are off by more."""


def describe_table_heatmap(choice: TableChoice) -> str:
    """How to read the heatmap."""
    parts = [
        say(
            "Each row is what is added to the token at that position (the tensor the loaded model adds): orange below "
            "zero, indigo above."
        )
        if choice.own
        else say(
            "Each row is what is added to the token at that position (made from the formula): orange below zero, "
            "indigo above."
        )
    ]
    if choice.is_sinusoidal:
        parts.append(say("Early dimensions swing from row to row, late ones hardly at all."))
    if choice.table.first:
        parts.append(say("The row PAD is all zero; positions count from 1."))
    if choice.sentence is not None and choice.sentence < choice.positions:
        parts.append(say("Dashed: the last of the {count} pieces of your sentence.", count=choice.sentence))
    return join_sentences(*parts, say("Click a cell to see its number worked out."))


def describe_computed_and_stored_value(cell: TableCell, value: float, first: int) -> str:
    """The worked value beside the stored one."""
    at = {"pair": cell.pair, "exponent": cell.exponent, "dimension": cell.dimension}
    return join_sentences(
        say("Pair i = {pair}, exponent {exponent:.4f}: dimension {dimension} is its cosine.", **at)
        if cell.dimension % 2
        else say("Pair i = {pair}, exponent {exponent:.4f}: dimension {dimension} is its sine.", **at),
        say("The table holds {value:.6f}, off by {error:.1e}.", value=value, error=abs(value - cell.value)),
        say("Positions count from 1 here, so the formula's number is one less.") if first else "",
    )


def describe_wavelengths(choice: TableChoice, lengths: np.ndarray) -> str:
    if not choice.is_sinusoidal:
        return say("A learned table has no wavelengths: each line is one dimension of it over position.")
    grows = (
        say("There is one pair, with a wavelength of 2π.")
        if len(lengths) == 1
        else say(
            "Sine and cosine of a pair share one wavelength; from pair to pair it grows by the same factor, from 2π to "
            "{turns:,.6g} · 2π.",
            turns=float(lengths[-1] / (2 * np.pi)),
        )
    )
    return join_sentences(
        grows, _describe_complete_turns(int((lengths <= choice.positions).sum()), len(lengths), choice)
    )


def _describe_complete_turns(complete: int, pairs: int, choice: TableChoice) -> str:
    """How many of the pairs complete a turn within what is shown."""
    shown = {"positions": choice.positions}
    if complete == pairs:
        return say_many(
            "The pair completes a turn within the {positions} positions shown.",
            "All {count} pairs complete a turn within the {positions} positions shown.",
            pairs,
            **shown,
        )
    if complete == 0:
        return say(
            "No pair completes a turn within the {positions} positions shown: each only tells near from far.", **shown
        )
    return say(
        "{complete} of {pairs} pairs complete a turn within the {positions} positions shown; the others only tell near "
        "from far.",
        complete=complete,
        pairs=pairs,
        **shown,
    )


def describe_position_similarity(
    choice: TableChoice, cosine: bool, pair: tuple[int, int], value: float, profile: DistanceProfile
) -> str:
    """The similarity of the two positions `pair`, and whether distance alone decides it, from the whole profile."""
    first, second = pair
    places = {"first": first, "second": second, "distance": abs(second - first), "value": value}
    said = (
        say("Positions {first} and {second}, {distance} apart: cosine {value:.3f}.", **places)
        if cosine
        else say("Positions {first} and {second}, {distance} apart: dot product {value:.3f}.", **places)
    )
    even = choice.is_sinusoidal and choice.table.width % 2 == 0
    if even and profile.spread <= ROUNDING_TOLERANCE * np.abs(profile.mean).max():
        alike = say(
            "Along every diagonal it is the same, up to {spread:.1e}: the distance alone decides it.",
            spread=profile.spread,
        )
        return join_sentences(said, alike)
    return join_sentences(said, _explain_distance_spread(choice, profile.spread))


def _explain_distance_spread(choice: TableChoice, spread: float) -> str:
    if not choice.is_sinusoidal:
        return say(
            "Pairs at one distance differ by up to {spread:.2g}: a learned table knows more than distance.",
            spread=spread,
        )
    if choice.table.width % 2:
        return say(
            "Pairs at one distance differ by up to {spread:.2g}: the width is odd, so the last sine has no cosine "
            "beside it.",
            spread=spread,
        )
    return say(
        "Pairs at one distance differ by up to {spread:.2g}: this way of computing the table rounds its angles or "
        "values.",
        spread=spread,
    )


def describe_position_uniqueness(found: Uniqueness, positions: int, first: int) -> str:
    one, other = sorted(found.pair)
    of = {"positions": positions, "one": one + first, "other": other + first}
    if found.smallest == 0:
        return say(
            "Not unique: of all {positions} positions of the table, {one} and {other} have the very same row, so the "
            "model cannot tell them apart.",
            **of,
        )
    return say(
        "Unique: of all {positions} positions of the table, the two most alike are {one} and {other}, {distance:.4f} "
        "apart.",
        distance=found.smallest,
        **of,
    )


def describe_shift_rotation(choice: TableChoice, shift: int, error: float) -> str:
    """Whether one matrix shifts every position, from the largest error of all positions and pairs."""
    if not choice.is_sinusoidal:
        return say(
            "A learned table does not turn: the matrix that shifts a sinusoidal table by {shift} misses this one by up "
            "to {error:.2f}.",
            shift=format_number(shift),
            error=error,
        )
    shifted = (
        say(
            "One matrix shifts every position by {shift}, wherever it stands: of all positions and pairs of this "
            "table, |M·PE(pos) − PE(pos + {shift})| is at most {error:.1e}.",
            shift=format_number(shift),
            error=error,
        )
        if error <= ROUNDING_TOLERANCE
        else say(
            "One matrix would shift every position by {shift}, but this way of computing the table rounds its angles "
            "or values: of all positions and pairs of this table, |M·PE(pos) − PE(pos + {shift})| is at most "
            "{error:.1e}.",
            shift=format_number(shift),
            error=error,
        )
    )
    odd = choice.table.width % 2
    without = say("The width is odd, so the last dimension is a sine without its cosine and is left out.")
    return join_sentences(shifted, without if odd else "")


def describe_form_error(error: FormError, note: str) -> str:
    measured = say(
        "At most {largest:.1e} from the float64 formula, at position {position}, dimension {dimension}; {rms:.1e} on "
        "average (root mean square).",
        largest=error.largest,
        position=error.position,
        dimension=error.dimension,
        rms=error.rms,
    )
    return join_sentences(note, measured)


def describe_piece_vectors(parts: EmbeddingParts) -> str:
    """What the vectors of the piece that is clicked are."""
    if parts.normalised:
        return say(
            "Click a piece to see its three vectors: the first two are added, the first layer reads the third, which a "
            "norm takes first."
        )
    return say("Click a piece to see its three vectors: the first two are added, the first layer reads the third.")


def describe_embedding_norms(parts: EmbeddingParts) -> str:
    tokens, encoding = (float(np.linalg.norm(one, axis=1).mean()) for one in (parts.tokens, parts.encoding))
    if parts.scale == 1:
        return say(
            "This model adds embeddings as they are: {tokens:.2f} long on average, the encoding {encoding:.2f}. "
            "Position is {ratio:.1f} times as long as meaning.",
            tokens=tokens,
            encoding=encoding,
            ratio=encoding / tokens,
        )
    return say(
        "Embeddings are multiplied by √{width} = {scale:.3g}: from {before:.2f} (the mark) to {tokens:.2f} on average, "
        "beside an encoding of {encoding:.2f}. Without that factor position would be {without:.1f} times as long as "
        "meaning; with it, {ratio:.1f} times.",
        width=len(parts.tokens[0]),
        scale=parts.scale,
        before=tokens / parts.scale,
        tokens=tokens,
        encoding=encoding,
        without=encoding * parts.scale / tokens,
        ratio=encoding / tokens,
    )
