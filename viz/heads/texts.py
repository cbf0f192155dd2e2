"""What the page Heads says in words; every number is computed from what it speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from model.atlas.links import KEYS_A_ROW, STEPS
from model.atlas.measures import EXPLAINED
from model.language.say import say, say_many, sentences, to_say
from model.text.tags import MODELS

if TYPE_CHECKING:
    from model.heads.atlas import Atlas
    from model.heads.projection import Projection, Space
    from model.live.live_model import LiveModel
    from model.trace import Head

CLICK = to_say(
    "Click a dot to see what the head does, in sentences; draw a box with the mouse to list the heads in it. A large "
    "dot costs much when it is switched off."
)
TENTHS = {
    "top": to_say("Where it looks most decidedly: rows of the top tenth by their largest weight."),
    "middle": to_say("In the middle: rows of the fifth tenth."),
    "bottom": to_say("Where it looks least decidedly: rows of the bottom tenth."),
}
SHADED = to_say(
    "The token that attends is framed; shaded are the three keys that it gives most weight to. In the decoder's "
    "self-attention it is the token fed in, in cross-attention the token predicted."
)
PAIRS = to_say(
    "Share: of the weight of rows whose query has the first part of speech, what goes to the second. Lift: that share "
    "over what rows spread evenly would give it. Rows: all such rows of the corpus that may look at two tokens or more."
)
WHAT: dict[Space, str] = {
    "queries and keys": to_say(
        "What the head compares: a query and a key attract each other where they point the same way. Both are moved to "
        "one centre and scaled to one mean length, which changes no weight (Yeh et al. 2023, arXiv 2305.03210)."
    ),
    "encoder outputs": to_say("What the encoder has made of each token of the source, for the decoder to read."),
    "token embeddings": to_say(
        "What stands for each piece before any layer has read it; a dot is a piece, in the first sentence that has it."
    ),
}
BRUSH_TOKENS = to_say("Click a dot, or draw a box with the mouse, to read the sentences.")
HOW = to_say(
    "Write what attends, an arrow, and what is attended to: word=dog, word~^un (a regular expression), pos=NOUN; "
    "beside them distance=-1 or distance=-3..-1, weight>=0.5, map=cross, head=2.3."
)


def corpus(atlas: Atlas) -> str:
    """What an atlas was made of."""
    manifest = atlas.manifest
    skipped = sum(manifest.skipped.values())
    of = {
        "count": manifest.sentences,
        # A word joiner keeps Streamlit from making a link of an address.
        "source": manifest.licence.replace("www.", "www\u2060.") or manifest.plan.source,
    }
    measured = (
        say("Measured on {count:,} sentences with given translations; {source}.", **of)
        if manifest.plan.target
        else say("Measured on {count:,} sentences with the model's own translations; {source}.", **of)
    )
    left_out = say_many("{count:,} line was left out.", "{count:,} lines were left out.", skipped)
    return sentences(measured, left_out if skipped else "")


def links(atlas: Atlas) -> str:
    """What a search counts."""
    least = max(1, round(atlas.manifest.plan.least_weight * STEPS))
    return say(
        "A link is one of the {keys} keys that a row gives most weight to, with a weight of {least:g} at least, "
        "rounded to steps of {step:g}; rows that may look at one token alone have none.",
        keys=KEYS_A_ROW,
        least=least / STEPS,
        step=1 / STEPS,
    )


def facts(model: LiveModel, atlas: Atlas) -> dict[str, str]:
    """What is needed to make a view of an atlas again."""
    return {"model": model.name, "hash": model.weights_hash, "corpus": corpus(atlas)}


def measures(across: str, up: str) -> str:
    """What the two measures of the map mean."""
    return sentences(*(say(EXPLAINED[name]) for name in dict.fromkeys((across, up))))


def map_of(sides: Sequence[tuple[str, Atlas, int]], across: str, up: str) -> str:
    """What the map shows of each model, by name, and how many heads it leaves out; the number says how many it has."""
    said = [measures(across, up)]
    for name, atlas, shown in sides:
        if left_out := len(atlas.names) - shown:
            said.append(
                say_many(
                    "{count} head of {model} has none of one of them and is left out.",
                    "{count} heads of {model} have none of one of them and are left out.",
                    left_out,
                    model=name,
                )
            )
    for name, atlas, _ in sides[1:]:
        said.append(
            say("Axes and sizes are the same on both maps. {model}: {corpus}", model=name, corpus=corpus(atlas))
        )
    return sentences(*said)


def brushed(name: str, inside: int, heads: int) -> str:
    """How many heads of a model a box holds."""
    return say(
        "{model}: {inside} of {heads} heads in the box, those that cost most first.",
        model=name,
        inside=inside,
        heads=heads,
    )


def cost(atlas: Atlas, head: Head) -> str:
    """What switching a head off costs, with its interval; "" for an atlas without costs."""
    row = atlas.row(head)
    if "cost" not in row or pd.isna(row["cost"]):
        return ""
    low, high = float(row["cost_low"]), float(row["cost_high"])
    costs = say(
        "Switching it off alone costs {cost:.4f} nats a token (95% of resampled corpora: {low:.4f} to {high:.4f}), "
        "rank {rank} of {heads}.",
        cost=float(row["cost"]),
        low=low,
        high=high,
        rank=int((atlas.heads["cost"] > row["cost"]).sum()) + 1,
        heads=len(atlas.heads),
    )
    if low > 0 or high < 0:
        return costs
    return sentences(costs, say("The interval holds 0: this corpus does not tell whether it matters."))


def untagged(languages: tuple[str, str]) -> str:
    """Which side's parts of speech are not known; "" where both are."""
    source, target = (one in MODELS for one in languages)
    if source and target:
        return ""
    if source:
        return say("Parts of speech of the translation are not known: only punctuation and numbers are tagged.")
    if target:
        return say("Parts of speech of the source are not known: only punctuation and numbers are tagged.")
    return say(
        "Parts of speech of the source and the translation are not known: only punctuation and numbers are tagged."
    )


def components(found: Projection) -> tuple[str, str]:
    """The titles of the two axes."""
    first, second = found.shares
    return (
        say("first principal component, {share:.0%} of the variance", share=first),
        say("second, {share:.0%}", share=second),
    )


def projected(found: Projection, space: Space) -> str:
    """What is drawn, and how much of it the plane shows."""
    plane = say(
        "The plane holds {share:.0%} of their variance: what is far apart in it is far apart, what is near in it need "
        "not be near.",
        share=sum(found.shares),
    )
    return sentences(say(WHAT[space]), _drawn(found, space), plane)


def _drawn(found: Projection, space: Space) -> str:
    """How many tokens are drawn, of how many sentences."""
    of = {"count": len(found.tokens), "lines": found.lines, "width": found.width}
    if space == "token embeddings":
        if found.sentences == found.lines:
            return say("{count:,} pieces of all {lines:,} sentences, each a vector of {width} numbers.", **of)
        return say(
            "{count:,} pieces of {sentences:,} of {lines:,} sentences, each a vector of {width} numbers.",
            sentences=found.sentences,
            **of,
        )
    if found.sentences == found.lines:
        return say("{count:,} tokens of all {lines:,} sentences, each a vector of {width} numbers.", **of)
    return say(
        "{count:,} tokens of {sentences:,} of {lines:,} sentences, each a vector of {width} numbers.",
        sentences=found.sentences,
        **of,
    )


def marked(found: Projection, word: str) -> str:
    """How often a marked word is among the tokens that are drawn."""
    own = found.tokens[found.tokens["word"].str.casefold() == word.casefold()]
    if own.empty:
        return say("No token of “{word}” is drawn: the sentences that are hold no such word.", word=word)
    count, lines = len(own), own["sentence"].nunique()
    if lines == 1:
        return say_many(
            "“{word}”: {count} dot in 1 sentence.", "“{word}”: {count} dots in 1 sentence.", count, word=word
        )
    return say("“{word}”: {dots} dots in {sentences} sentences.", word=word, dots=count, sentences=lines)


def brushed_tokens(inside: int, drawn: int, listed: int) -> str:
    """How many tokens a box holds, and how many of them are listed."""
    if listed == inside:
        return say("{inside:,} of {drawn:,} dots in the box.", inside=inside, drawn=drawn)
    return say(
        "{inside:,} of {drawn:,} dots in the box; the {listed} next to its middle are listed.",
        inside=inside,
        drawn=drawn,
        listed=listed,
    )
