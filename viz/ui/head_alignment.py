"""How well a head aligns against links drawn by hand: one answer for Explore and Heads."""

from __future__ import annotations

from attenscope.analysis.heads import AlignmentReading, head_name
from attenscope.checkpoint.load import CheckpointError
from attenscope.language import say, to_say
from attenscope.trace import Head
from attenscope.viz.ui.cache import load_alignment_rates
from attenscope.word_alignment.measure import AlignmentError

READING_TOKENS: dict[AlignmentReading, str] = {
    "predicted": to_say("the token predicted"),
    "fed": to_say("the token fed in"),
}


def describe_head_alignment(name: str, model_hash: str, head: Head, reading: AlignmentReading) -> str:
    """How well one head of a model's cross-attention aligns, and which does it best; "" where it was not measured."""
    try:
        found = load_alignment_rates(name, model_hash)
    except (AlignmentError, CheckpointError):
        return ""
    own, best = found.select_rate("head", *head[1:], reading), found.best("head")
    if own == best:
        return say("Against links drawn by hand its error is {rate:.1%}, the least of all heads.", rate=own.aer)
    return say(
        "Against links drawn by hand its error is {rate:.1%}; the least of all heads, {best_rate:.1%}, is that of "
        "{best} read at {token}.",
        rate=own.aer,
        best=head_name(("cross", best.layer, best.head)),
        best_rate=best.aer,
        token=say(READING_TOKENS[best.reading]),
    )
