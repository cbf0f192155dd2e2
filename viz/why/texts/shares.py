"""What the view Source or prefix says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.language.say import say, to_say
from viz.figures.labels import quoted, signed

if TYPE_CHECKING:
    from model.attribution.source_shares import SourceShares
    from model.attribution.target import Target
    from model.evaluation.attribution_scores import LooseThreshold

EXPLAINED = to_say(
    "Upper picture: the share of the source in each piece by ALTI+, the rest is from what was written before, {start} "
    "included; the mark is the attention to {end}, mean of all layers and heads. Lower picture: an intervention, log p "
    "of the piece less log p with all source pieces blocked; below zero the source speaks against the piece. The alarm "
    "goes by the mean of the lower picture. Click a bar to choose its word."
)


def explained(target: Target) -> str:
    """What the pictures show; the target says how source and prefix begin and end."""
    return say(EXPLAINED, start=target.prefix_tokens[0].strip(), end=target.source_tokens[-1].strip())


def alarm(found: SourceShares, loose: LooseThreshold | None) -> str:
    """Whether the translation has come loose from its source, by the threshold that was measured."""
    gain = signed(found.mean_effect)
    if loose is None:
        return say(
            "With the source each piece gains {gain} nats on average. For this model no threshold was measured, so "
            "there is no alarm.",
            gain=gain,
        )
    measured = say(
        "measured on {pairs} true and {pairs} shuffled pairs: {false_alarms:.1%} false alarms, {misses:.1%} misses, "
        "area under the ROC curve {area:.3f}, by the mean share {share_area:.3f}",
        pairs=loose.pairs,
        false_alarms=loose.false_alarms,
        misses=loose.misses,
        area=loose.area,
        share_area=loose.share_area,
    )
    facts = {"gain": gain, "threshold": signed(loose.threshold), "measured": measured}
    if found.mean_effect < loose.threshold:
        return say(
            "Alarm: the translation has come loose from the source. With the source each piece gains {gain} nats on "
            "average, less than the threshold of {threshold} ({measured}).",
            **facts,
        )
    return say(
        "The translation holds to the source. With the source each piece gains {gain} nats on average; the alarm is "
        "below {threshold} ({measured}).",
        **facts,
    )


def word(found: SourceShares, target: Target) -> str:
    """The shares, the effect and the attention to </s> of the chosen word, the mean over its pieces."""
    at = slice(target.position, target.position + len(target.tokens))
    share, effect, end = (float(one[at].mean()) for one in (found.source, found.effect, found.end_attention))
    facts = {
        "word": quoted(target.word),
        "source": share,
        "prefix": 1 - share,
        "effect": signed(effect, plus=True),
        "end": end,
        "last": target.source_tokens[-1].strip(),
    }
    if len(target.tokens) == 1:
        return say(
            "{word}: {source:.0%} from the source, {prefix:.0%} from the prefix; log p {effect} nats with the source; "
            "{end:.0%} of attention on {last}.",
            **facts,
        )
    return say(
        "{word}, mean of its {count} pieces: {source:.0%} from the source, {prefix:.0%} from the prefix; log p "
        "{effect} nats with the source; {end:.0%} of attention on {last}.",
        count=len(target.tokens),
        **facts,
    )
