"""What the page Training says of a stop and of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.checkpoint.bleu_scores import Score
    from model.checkpoint.history import HistoryRow


def stop_name(step: int | None, last: int | None) -> str:
    if step is None:
        return "released weights"
    if step == 0:
        return "random weights, step 0"
    return f"step {step:,}" + (f" of {last:,}" if last else "")


def tick(step: int | None) -> str:
    return "released" if step is None else "random" if step == 0 else f"{step:,}"


def quality(step: int | None, history: Sequence[HistoryRow], scores: Sequence[Score]) -> str:
    """BLEU at a stop as far as it is known: kept for it, or measured while training, there or last before it.

    Of several scores that of the text which the snapshots were scored on, so that it can stand beside theirs.
    """
    comparable = {one.key[:-1] for one in scores if one.step is not None}
    measured_here = sorted((one for one in scores if one.step == step), key=lambda one: one.key[:-1] not in comparable)
    if measured_here:
        return f"BLEU {measured_here[0].bleu:.1f} on {measured_here[0].set}"
    measured = [row for row in history if row.bleu is not None and (step is None or row.step <= step)]
    if not measured:
        return "dev BLEU not measured yet"
    last = measured[-1]
    return f"dev BLEU {last.bleu:.1f}" + ("" if last.step == step else f" at step {last.step:,}")


def watched(count: int, first: int, last: int) -> str:
    """What the stops of a watched training are."""
    steps = f"step {first:,}" if count == 1 else f"step {first:,} to step {last:,}"
    traces = f"{count} trace{'s' * (count > 1)}, {steps}."
    return f"{traces} They hold attention only: what the model was trained on, and how good it is, they do not say."


def end_alone(model: str) -> str:
    """What is said of a model of which no moment of the training is here but its end."""
    return (
        f"{model} kept no snapshots, and the weights that its training began with are not here: there are the released "
        "ones alone, which the other pages show."
    )


def axes(model: str, translation: str, snapshots: int) -> str:
    """What the reader must know of the axes, and of the stops."""
    said = (
        f"At every stop the model reads one fixed translation, “{translation}”, by teacher forcing, so that the axes "
        f"stay the same; it is what the released {model} writes. In large type: what the model itself writes at that "
        "stop. Bars over the slider: how probable it finds a piece of the fixed translation (geometric mean)."
    )
    if not snapshots:
        said += (
            f" {model} kept no snapshots, so there are the two ends only: weights drawn at random with the seed of its "
            "recipe, and the released ones."
        )
    return said
