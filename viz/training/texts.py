"""The texts and controls of the page Training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attenscope.checkpoint.measurements import HistoryRow, Score
from attenscope.language import format_number, join_sentences, say, say_many
from attenscope.viz.ui import controls
from attenscope.viz.ui.addresses.training import (
    FIRST_VIEWS,
    TRAINING_LOG_STEPS,
    TRAINING_STOP,
    TRAINING_VIEW,
    TrainingView,
)

# Sentences about a stop and a model.


def describe_snapshot(step: int | None, last: int | None) -> str:
    if step is None:
        return say("released weights")
    if step == 0:
        return say("random weights, step 0")
    return say("step {step:,} of {last:,}", step=step, last=last) if last else say("step {step:,}", step=step)


def format_stop_tick(step: int | None) -> str:
    return say("released") if step is None else say("random") if step == 0 else format_number(step, ",")


def describe_snapshot_bleu(step: int | None, history: Sequence[HistoryRow], scores: Sequence[Score]) -> str:
    """BLEU at a stop as far as it is known: kept for it, or measured while training, there or last before it.

    Of several scores that of the text which the snapshots were scored on, so that it can stand beside theirs.
    """
    comparable = {one.key[:-1] for one in scores if one.step is not None}
    measured_here = sorted((one for one in scores if one.step == step), key=lambda one: one.key[:-1] not in comparable)
    if measured_here:
        return say("BLEU {bleu:.1f} on {set}", bleu=measured_here[0].bleu, set=measured_here[0].set)
    measured = [row for row in history if row.bleu is not None and (step is None or row.step <= step)]
    if not measured:
        return say("dev BLEU not measured yet")
    last = measured[-1]
    if last.step == step:
        return say("dev BLEU {bleu:.1f}", bleu=last.bleu)
    return say("dev BLEU {bleu:.1f} at step {step:,}", bleu=last.bleu, step=last.step)


def describe_opened_run_snapshots(count: int, first: int, last: int) -> str:
    """What the stops of a watched training are."""
    return say_many(
        "{count} trace, step {first:,}. It holds attention only: what the model was trained on, and how good it is, it "
        "does not say.",
        "{count} traces, step {first:,} to step {last:,}. They hold attention only: what the model was trained on, and "
        "how good it is, they do not say.",
        count,
        first=first,
        last=last,
    )


def no_snapshots_text(model: str) -> str:
    """What is said of a model of which no moment of the training is here but its end."""
    return say(
        "No snapshots of {model} are here, nor the weights that its training began with: there are the released ones "
        "alone, which the other pages show.",
        model=model,
    )


def explain_snapshot_teacher_forcing(model: str, translation: str, snapshots: int) -> str:
    """What the reader must know of the axes, and of the stops."""
    said = say(
        "At every stop the model reads the same translation, “{translation}”, by teacher forcing, so that the axes "
        "stay the same; it is what the released {model} writes. In large type: what the model itself writes at that "
        "stop. Bars over the slider: how probable it finds a piece of that translation (geometric mean).",
        translation=translation,
        model=model,
    )
    if snapshots:
        return said
    ends = say(
        "No snapshots of {model} are here, so there are the two ends only: weights drawn at random with the seed of "
        "its recipe, and the released ones.",
        model=model,
    )
    return join_sentences(said, ends)


# Controls; the address holds all their values.


TRAINING_STYLE = Path(__file__).parent / "training.css"
RELEASED_STOP = "released"


def draw_training_view_control() -> TrainingView:
    """Draw the choice of the view."""
    return controls.view_control(TRAINING_VIEW, FIRST_VIEWS)[0]


def draw_log_steps_toggle() -> bool:
    """Draw the toggle of a logarithmic axis of steps, and return whether it is on."""
    return controls.toggle(say("Logarithmic steps"), TRAINING_LOG_STEPS)


def get_chosen_snapshot_index(steps: Sequence[int | None]) -> int:
    """The index of the stop that the address names (``at=366``, ``at=released``); the last where it names none."""
    names = [_format_snapshot_address(step) for step in steps]
    return names.index(TRAINING_STOP.hold(["", *names]) or names[-1])


def write_snapshot_to_address(step: int | None) -> None:
    """Keep the stop in the address; for callbacks."""
    TRAINING_STOP.set(_format_snapshot_address(step))


def _format_snapshot_address(step: int | None) -> str:
    return RELEASED_STOP if step is None else str(step)
