"""What the page Heads says in words; every number is computed from what it speaks of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from model.atlas.measures import EXPLAINED
from model.text.tags import MODELS
from model.word_alignment.gold import RELEASED, read_gold, read_passes
from model.word_alignment.links import GoldError, agreement

from ..ui.addresses.heads import MEASURE_NAMES

if TYPE_CHECKING:
    from model.heads.atlas import Atlas
    from model.heads.pruning_curves import Pruning
    from model.trace import Head
    from model.translate import Translator
    from model.word_alignment.rates import Rate, Rates

CLICK = "Click a dot to see what the head does, in sentences. A large dot costs much when it is switched off."
KEPT = 0.95
"""The share of BLEU of which the page says up to where it is kept."""
TENTHS = {
    "top": "Where it looks most decidedly: rows of the top tenth by their largest weight.",
    "middle": "In the middle: rows of the fifth tenth.",
    "bottom": "Where it looks least decidedly: rows of the bottom tenth.",
}
SHADED = (
    "The token that attends is framed; shaded are the three keys that it gives most weight to. In the decoder's "
    "self-attention it is the token fed in, in cross-attention the token predicted."
)
PAIRS = (
    "Share: of the weight of rows whose query has the first part of speech, what goes to the second. Lift: that share "
    "over what rows spread evenly would give it."
)
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
HOW = (
    "Write what attends, an arrow, and what is attended to: word=dog, word~^un (a regular expression), pos=NOUN; "
    "beside them distance=-1 or distance=-3..-1, weight>=0.5, map=cross, head=2.3."
)


def corpus(atlas: Atlas) -> str:
    """What an atlas was made of."""
    manifest = atlas.manifest
    skipped = sum(manifest.skipped.values())
    given = "given translations" if manifest.plan.target else "the model's own translations"
    parts = [f"Measured on {manifest.sentences:,} sentences with {given}"]
    # A word joiner keeps Streamlit from making a link of an address.
    parts += [manifest.licence.replace("www.", "www\u2060.") or manifest.plan.source]
    parts += [f"{skipped:,} lines left out"] if skipped else []
    return "; ".join(parts) + "."


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
            f"drawn by hand in two passes, which agree in {passes.any:.1%} of all links and {passes.sure:.1%} of the "
            "sure ones; sentences of Tatoeba, selection of ManyThings.org, CC BY 2.0"
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


def facts(model: Translator, atlas: Atlas) -> dict[str, str]:
    """What is needed to make a view of an atlas again."""
    return {"model": model.name, "hash": model.checkpoint.hash, "corpus": corpus(atlas)}


def measures(across: str, up: str) -> str:
    """What the two measures of the map mean."""
    said = [f"{MEASURE_NAMES[name].capitalize()}: {_lower(EXPLAINED[name])}" for name in dict.fromkeys((across, up))]
    return " ".join(said)


def cost(atlas: Atlas, head: Head) -> str:
    """What switching a head off costs, with its interval; "" for an atlas without costs."""
    row = atlas.row(head)
    if "cost" not in row or pd.isna(row["cost"]):
        return ""
    rank = int((atlas.heads["cost"] > row["cost"]).sum()) + 1
    low, high = row["cost_low"], row["cost_high"]
    sure = "" if low > 0 or high < 0 else " The interval holds 0: this corpus does not tell whether it matters."
    return (
        f"Switching it off alone costs {row['cost']:.4f} nats a token (95% of resampled corpora: {low:.4f} to "
        f"{high:.4f}), rank {rank} of {len(atlas.heads)}.{sure}"
    )


def untagged(languages: tuple[str, str]) -> str:
    """Which side's parts of speech are not known; "" where both are."""
    missing = [side for side, one in zip(("source", "translation"), languages, strict=True) if one not in MODELS]
    if not missing:
        return ""
    return f"Parts of speech of the {' and the '.join(missing)} are not known: only punctuation and numbers are tagged."


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


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]
