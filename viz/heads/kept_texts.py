"""What Heads says of what is kept beside a model: alignment, pruning, and heads over training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from model.atlas.measures import EXPLAINED
from model.atlas.places import PLACES
from model.language.say import listed, number, say, say_many, sentences, to_say
from model.trace import KINDS, Kind
from model.word_alignment.gold import RELEASED, read_gold, read_passes
from model.word_alignment.links import GoldError, agreement

from ..ui.addresses.heads import MEASURE_NAMES

if TYPE_CHECKING:
    from model.heads.pruning_curves import Pruning
    from model.heads.timeline_table import Timeline
    from model.word_alignment.rates import Rate, Rates

KEPT = 0.95
"""The share of BLEU of which the page says up to where it is kept."""
ERROR_RATE = to_say(
    "Error rate (Och and Ney 2003): 1 less the links that are right, sure and possible ones, over all links of the "
    "head and all sure ones of the gold; the lower, the better. Each piece of the given translation is linked to the "
    "source piece of most weight, special tokens left out; two words are linked when any of their pieces are. The "
    "interval is of pairs drawn again. Click a cell to look at the head."
)
PRUNING = to_say(
    "A head that is taken away adds nothing (its context is zero), and nothing is trained again (Michel et al. 2019). "
    "The band goes from the least to the most of the random orders, its line is their mean. Below, the sentence "
    "translated greedily with the heads left by cost; click a row or move the slider."
)
READ_AT = {"predicted": to_say("the token predicted"), "fed": to_say("the token fed in")}
KINDS_IN_A_ROW: dict[Kind, str] = {
    "encoder": to_say("encoder self-attention {first:.2f}, then {last:.2f}"),
    "decoder": to_say("decoder self-attention {first:.2f}, then {last:.2f}"),
    "cross": to_say("cross-attention {first:.2f}, then {last:.2f}"),
}


def alignment(found: Rates) -> str:
    """Which head aligns best, and what averages, order alone and a choice on other pairs give."""
    head, layer, every = (found.best(part) for part in ("head", "layer", "all"))
    return say(
        "Best: head {head} read at {head_token}, {head_rate}; chosen on one half of the pairs and measured on the "
        "other, {held_out:.1%}. Mean of the heads of a layer, at best: layer {layer} read at {layer_token}, "
        "{layer_rate}. Mean of all heads read at {token}: {rate}. Linking words by their place in the sentence alone: "
        "{diagonal:.1%}.",
        head=f"{head.layer + 1}.{head.head + 1}",
        head_token=say(READ_AT[head.reading]),
        head_rate=_rate(head),
        held_out=found.held_out,
        layer=layer.layer + 1,
        layer_token=say(READ_AT[layer.reading]),
        layer_rate=_rate(layer),
        token=say(READ_AT[every.reading]),
        rate=_rate(every),
        diagonal=found.diagonal,
    )


def gold(found: Rates) -> str:
    """What was measured against."""
    against = say(
        "Against {pairs:,} pairs of sentences with {sure:,} sure and {possible:,} possible links.",
        pairs=found.pairs,
        sure=found.sure,
        possible=found.possible,
    )
    left_out = say_many(
        "{count:,} pair was left out, which the model cannot read.",
        "{count:,} pairs were left out, which the model cannot read.",
        found.left_out,
    )
    return sentences(against, left_out if found.left_out else "", _whose(found))


def _whose(found: Rates) -> str:
    """Who has drawn the gold."""
    folder = RELEASED / found.gold
    if not _is_released(folder, found):
        return say("Gold: {name}.", name=found.gold)
    passes = agreement(*read_passes(folder))
    return say(
        "They were drawn by hand in two passes of one annotator, which agree in {any:.1%} of all links and {sure:.1%} "
        "of the sure ones; sentences of Tatoeba, selection of ManyThings.org, CC BY 2.0.",
        any=passes.any,
        sure=passes.sure,
    )


def pruning(found: Pruning) -> str:
    """How many heads can go, by cost and by chance."""
    whole = found.by_cost.bleu[0]
    mean = [sum(values) / len(values) for values in zip(*(one.bleu for one in found.random), strict=True)]
    return say(
        "With heads taken away by cost, BLEU stays at {kept:.0%} of the whole model's {whole:.1f} or more down to "
        "{by_cost} of {heads} heads; with random orders, on average, down to {by_chance}.",
        kept=KEPT,
        whole=whole,
        by_cost=found.fewest_with(KEPT, found.by_cost.bleu),
        heads=found.left[0],
        by_chance=found.fewest_with(KEPT, mean),
    )


def pruned_on(found: Pruning) -> str:
    """What pruning was measured on."""
    return say(
        "Measured on {sentences:,} sentences of {source}, from line {line:,} on, at {points} numbers of heads, with "
        "{orders} random orders; costs are those of the atlas.",
        sentences=found.sentences,
        source=found.source,
        line=found.first_line,
        points=len(found.left),
        orders=len(found.random),
    )


def over_training(found: Timeline, measure: str) -> str:
    """How a measure changed from the first snapshot to the last, and when heads were first labelled with it."""
    name, names = say(MEASURE_NAMES[measure]), [stop_name(step) for step in found.steps]
    means = [say(KINDS_IN_A_ROW[kind], first=one, last=other) for kind, (one, other) in _means(found, measure).items()]
    mean = say(
        "Mean {measure}, {first} and {last}: {kinds}.",
        measure=name,
        first=names[0],
        last=names[-1],
        kinds=say("; ").join(means),
    )
    if measure not in PLACES:
        return mean
    counts = found.labelled(measure)
    if not any(counts):
        return sentences(mean, say("No head is labelled “{measure}” at any snapshot.", measure=name))
    labelled = say(
        "Heads labelled “{measure}”: {counts}; the first at: {first}.",
        measure=name,
        counts=listed(say("{count} ({stop})", count=count, stop=one) for count, one in zip(counts, names, strict=True)),
        first=names[next(at for at, count in enumerate(counts) if count)],
    )
    return sentences(mean, labelled)


def tracked(found: Timeline, measure: str) -> str:
    """What the measure means, and what it was taken on."""
    taken = say(
        "Measured on {sentences:,} sentences of {source} with given translations at {stops} moments of the training. "
        "Click a dot to look at the head, as it is in the released weights.",
        sentences=found.sentences,
        source=found.source,
        stops=len(found.steps),
    )
    return sentences(say(EXPLAINED[measure]), taken)


def stop_name(step: int | None) -> str:
    """A snapshot in a word or two."""
    return say("step {step:,}", step=step) if step else stop_tick(step)


def stop_tick(step: int | None) -> str:
    """A snapshot on an axis of steps."""
    return say("released") if step is None else say("random") if step == 0 else number(step, ",")


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


def _rate(rate: Rate) -> str:
    return say("{rate:.1%} (95%: {low:.1%} to {high:.1%})", rate=rate.aer, low=rate.low, high=rate.high)
