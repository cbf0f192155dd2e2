"""What the view Layers says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.language.say import say, to_say
from viz.figures.labels import quoted
from viz.figures.places import place_name

if TYPE_CHECKING:
    from model.experiments.decoder_lens import DecoderLens

DECODER_LENS = to_say(
    "The decoder reads each encoder layer, through the final norm, as if it were the last; it was trained on the last "
    "alone. Rank and probability are those of the chosen piece when the decoder is given the pieces before it."
)
EXPLAINED = to_say(
    "Each cell is the token that the decoder would write if it stopped there, coloured by its probability. Early "
    "layers were never trained to be read in this way. Click a column to choose its word."
)


LAYERS_ALONE = to_say("So the decoder is read after each layer, and not after each sublayer.")


def titles(*, sublayers: bool) -> tuple[str, str]:
    """The titles of the lens and of the ranks."""
    if sublayers:
        return say("What the decoder would write after each sublayer"), say("Ranks after each sublayer")
    return say("What the decoder would write after each layer"), say("Ranks after each layer")


def encoder(found: DecoderLens, position: int) -> str:
    """From which layer on the whole translation and the piece at a position are those of the model."""
    token = quoted(found.target_tokens[position])
    same = _from([text == found.texts[-1] for text in found.texts])
    first = _from([rank == 1 for rank in found.ranks[:, position].tolist()])
    whole = place_name(found.places[same or 0])
    if first is None:
        return say(
            "The translation is that of the whole model from {whole} on; from no layer on is {token} the first choice.",
            whole=whole,
            token=token,
        )
    return say(
        "The translation is that of the whole model from {whole} on; {token} is the first choice from {first} on.",
        whole=whole,
        token=token,
        first=place_name(found.places[first]),
    )


def _from(true: list[bool]) -> int | None:
    """The place from which on all are true, None where the last is not."""
    if not true[-1]:
        return None
    return max((at + 1 for at, one in enumerate(true) if not one), default=0)
