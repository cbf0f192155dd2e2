"""What the view Layers says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viz.figures.labels import quoted

if TYPE_CHECKING:
    from model.experiments.decoder_lens import DecoderLens

DECODER_LENS = (
    "The decoder reads each encoder layer, through the final norm, as if it were the last; it was trained on the last "
    "alone. Rank and probability are those of the chosen piece when the decoder is given the pieces before it."
)
EXPLAINED = (
    "Each cell is the token that the decoder would write if it stopped there, coloured by its probability. Early "
    "layers were never trained to be read in this way. Click a column to choose its word."
)


def encoder(found: DecoderLens, position: int) -> str:
    """From which layer on the whole translation and the piece at a position are those of the model."""
    token = quoted(found.target_tokens[position])
    same = _from([text == found.texts[-1] for text in found.texts])
    first = _from([rank == 1 for rank in found.ranks[:, position].tolist()])
    whole = f"The translation is that of the whole model from {found.places[same or 0]} on"
    if first is None:
        return f"{whole}; from no layer on is {token} the first choice."
    return f"{whole}; {token} is the first choice from {found.places[first]} on."


def _from(true: list[bool]) -> int | None:
    """The place from which on all are true, None where the last is not."""
    if not true[-1]:
        return None
    return max((at + 1 for at, one in enumerate(true) if not one), default=0)
