"""What the view Source or prefix says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viz.figures.labels import quoted, signed

if TYPE_CHECKING:
    from model.attribution.source_shares import SourceShares
    from model.attribution.target import Target
    from model.evaluation.attribution_scores import LooseThreshold

EXPLAINED = (
    "Upper picture: the share of the source in each piece by ALTI+, the rest is from what was written before, <s> "
    "included; the mark is the attention to </s>, mean of all layers and heads. Lower picture: an intervention, log p "
    "of the piece less log p with all source pieces blocked; below zero the source speaks against the piece. The alarm "
    "goes by the mean of the lower picture. Click a bar to choose its word."
)


def alarm(found: SourceShares, loose: LooseThreshold | None) -> str:
    """Whether the translation has come loose from its source, by the threshold that was measured."""
    gain = f"With the source each piece gains {signed(found.mean_effect)} nats on average"
    if loose is None:
        return f"{gain}. For this model no threshold was measured, so there is no alarm."
    measured = (
        f"measured on {loose.pairs} true and {loose.pairs} shuffled pairs: {loose.false_alarms:.1%} false alarms, "
        f"{loose.misses:.1%} misses, area under the ROC curve {loose.area:.3f}, by the mean share "
        f"{loose.share_area:.3f}"
    )
    if found.mean_effect < loose.threshold:
        return (
            f"Alarm: the translation has come loose from the source. {gain}, less than the threshold of "
            f"{signed(loose.threshold)} ({measured})."
        )
    return f"The translation holds to the source. {gain}; the alarm is below {signed(loose.threshold)} ({measured})."


def word(found: SourceShares, target: Target) -> str:
    """The shares, the effect and the attention to </s> of the chosen word, the mean over its pieces."""
    at = slice(target.position, target.position + len(target.tokens))
    share, effect, end = (float(one[at].mean()) for one in (found.source, found.effect, found.end_attention))
    count = f", mean of its {len(target.tokens)} pieces" if len(target.tokens) > 1 else ""
    return (
        f"{quoted(target.word)}{count}: {share:.0%} from the source, {1 - share:.0%} from the prefix; log p "
        f"{signed(effect, plus=True)} nats with the source; {end:.0%} of attention on </s>."
    )
