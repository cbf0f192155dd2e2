"""What Heads says of what is kept beside a model: alignment, pruning, and heads over training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from model.atlas.measures import EXPLAINED
from model.atlas.places import PLACES
from model.trace import KINDS
from model.word_alignment.gold import RELEASED, read_gold, read_passes
from model.word_alignment.links import GoldError, agreement

from ..figures.labels import KIND_NAMES
from ..ui.addresses.heads import MEASURE_NAMES
from .texts import lower

if TYPE_CHECKING:
    from model.heads.pruning_curves import Pruning
    from model.heads.timeline_table import Timeline
    from model.trace import Kind
    from model.word_alignment.rates import Rate, Rates

KEPT = 0.95
"""The share of BLEU of which the page says up to where it is kept."""
ERROR_RATE = (
    "Error rate (Och and Ney 2003): 1 less the links that are right, sure and possible ones, over all links of the "
    "head and all sure ones of the gold; the lower, the better. Each piece of the given translation is linked to the "
    "source piece of most weight, special tokens left out; two words are linked when any of their pieces are. The "
    "interval is of pairs drawn again. Click a cell to look at the head."
)
PRUNING = (
    "A head that is taken away adds nothing (its context is zero), and nothing is trained again (Michel et al. 2019). "
    "The band goes from the least to the most of the random orders, its line is their mean. Below, the sentence "
    "translated greedily with the heads left by cost; click a row or move the slider."
)


def alignment(found: Rates) -> str:
    """Which head aligns best, and what averages, order alone and a choice on other pairs give."""
    head, layer, every = (found.best(part) for part in ("head", "layer", "all"))
    return (
        f"Best: head {head.layer + 1}.{head.head + 1} read at {_read_at(head)}, {_rate(head)}; chosen on one half of "
        f"the pairs and measured on the other, {found.held_out:.1%}. Mean of the heads of a layer, at best: layer "
        f"{layer.layer + 1} read at {_read_at(layer)}, {_rate(layer)}. Mean of all heads read at {_read_at(every)}: "
        f"{_rate(every)}. Linking words by their place in the sentence alone: {found.diagonal:.1%}."
    )


def gold(found: Rates) -> str:
    """What was measured against."""
    folder = RELEASED / found.gold
    parts = [
        f"Against {found.pairs:,} pairs of sentences with {found.sure:,} sure and {found.possible:,} possible links"
    ]
    parts += [f"{found.left_out:,} pairs left out, which the model cannot read"] if found.left_out else []
    if _is_released(folder, found):
        passes = agreement(*read_passes(folder))
        parts += [
            f"drawn by hand in two passes of one annotator, which agree in {passes.any:.1%} of all links and "
            f"{passes.sure:.1%} of the sure ones; sentences of Tatoeba, selection of ManyThings.org, CC BY 2.0"
        ]
    else:
        parts += [f"gold: {found.gold}"]
    return "; ".join(parts) + "."


def pruning(found: Pruning) -> str:
    """How many heads can go, by cost and by chance."""
    whole = found.by_cost.bleu[0]
    mean = [sum(values) / len(values) for values in zip(*(one.bleu for one in found.random), strict=True)]
    by_cost, by_chance = (found.fewest_with(KEPT, bleu) for bleu in (found.by_cost.bleu, mean))
    return (
        f"With heads taken away by cost, BLEU stays at {KEPT:.0%} of the whole model's {whole:.1f} or more down to "
        f"{by_cost} of {found.left[0]} heads; with random orders, on average, down to {by_chance}."
    )


def pruned_on(found: Pruning) -> str:
    """What pruning was measured on."""
    return (
        f"Measured on {found.sentences:,} sentences of {found.source}, from line {found.first_line:,} on, at "
        f"{len(found.left)} numbers of heads, with {len(found.random)} random orders; costs are those of the atlas."
    )


def over_training(found: Timeline, measure: str) -> str:
    """How a measure changed from the first snapshot to the last, and when heads were first labelled with it."""
    name, names = MEASURE_NAMES[measure], [stop_name(step) for step in found.steps]
    parts = [
        f"{KIND_NAMES[kind].lower()} {first:.2f}, then {last:.2f}"
        for kind, (first, last) in _means(found, measure).items()
    ]
    said = f"Mean {name}, {names[0]} and {names[-1]}: {'; '.join(parts)}."
    if measure not in PLACES:
        return said
    counts = found.labelled(measure)
    if not any(counts):
        return f"{said} No head is labelled “{name}” at any snapshot."
    first = next(at for at, count in enumerate(counts) if count)
    each = ", ".join(f"{count} ({one})" for count, one in zip(counts, names, strict=True))
    return f"{said} Heads labelled “{name}”: {each}; the first at: {names[first]}."


def tracked(found: Timeline, measure: str) -> str:
    """What the measure means, and what it was taken on."""
    return (
        f"{MEASURE_NAMES[measure].capitalize()}: {lower(EXPLAINED[measure])} Measured on {found.sentences:,} sentences "
        f"of {found.source} with given translations at {len(found.steps)} moments of the training. Click a dot to look "
        "at the head, as it is in the released weights."
    )


def stop_name(step: int | None) -> str:
    """A snapshot in a word or two."""
    return "released" if step is None else "random" if step == 0 else f"step {step:,}"


def _means(found: Timeline, measure: str) -> dict[Kind, tuple[float, float]]:
    """The mean over the heads of each map that have the measure, at the first stop and at the last."""
    means: dict[Kind, tuple[float, float]] = {}
    for kind in KINDS:
        values = np.array([(one[0], one[-1]) for head, one in found.courses(measure).items() if head[0] == kind])
        values = values[~np.isnan(values).any(1)] if len(values) else values
        if len(values):
            first, last = values.mean(0)
            means[kind] = (float(first), float(last))
    return means


def _is_released(folder: Path, found: Rates) -> bool:
    """Whether rates were measured against a gold of the project, as it is now."""
    try:
        return read_gold(folder).sha256 == found.gold_sha256
    except GoldError:
        return False


def _read_at(rate: Rate) -> str:
    return {"predicted": "the token predicted", "fed": "the token fed in"}[rate.reading]


def _rate(rate: Rate) -> str:
    return f"{rate.aer:.1%} (95%: {rate.low:.1%} to {rate.high:.1%})"
