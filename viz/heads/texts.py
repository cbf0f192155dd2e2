"""What the page Heads says in words; every number is computed from what it speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from model.atlas.measures import EXPLAINED
from model.text.tags import MODELS

from ..ui.addresses.heads import MEASURE_NAMES

if TYPE_CHECKING:
    from model.heads.atlas import Atlas
    from model.heads.projection import Projection, Space
    from model.trace import Head
    from model.translate import Translator

CLICK = (
    "Click a dot to see what the head does, in sentences; draw a box with the mouse to list the heads in it. A large "
    "dot costs much when it is switched off."
)
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
WHAT: dict[Space, str] = {
    "queries and keys": (
        "What the head compares: a query and a key attract each other where they point the same way. Both are moved to "
        "one centre and scaled to one mean length, which changes no weight (Yeh et al. 2023, arXiv 2305.03210)."
    ),
    "encoder outputs": "What the encoder has made of each token of the source, for the decoder to read.",
    "token embeddings": (
        "What stands for each piece before any layer has read it; a dot is a piece, in the first sentence that has it."
    ),
}
BRUSH_TOKENS = "Click a dot, or draw a box with the mouse, to read the sentences."
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


def facts(model: Translator, atlas: Atlas) -> dict[str, str]:
    """What is needed to make a view of an atlas again."""
    return {"model": model.name, "hash": model.checkpoint.hash, "corpus": corpus(atlas)}


def measures(across: str, up: str) -> str:
    """What the two measures of the map mean."""
    said = [f"{MEASURE_NAMES[name].capitalize()}: {lower(EXPLAINED[name])}" for name in dict.fromkeys((across, up))]
    return " ".join(said)


def map_of(sides: Sequence[tuple[str, Atlas, int]], across: str, up: str) -> str:
    """What the map shows of each model, by name, and how many heads it leaves out; the number says how many it has."""
    said = [measures(across, up)]
    for name, atlas, shown in sides:
        if left_out := len(atlas.names) - shown:
            said.append(f"{left_out} heads of {name} have none of one of them and are left out.")
    for name, atlas, _ in sides[1:]:
        said.append(f"Axes and sizes are the same on both maps. {name}: {corpus(atlas)}")
    return " ".join(said)


def brushed(name: str, inside: int, heads: int) -> str:
    """How many heads of a model a box holds."""
    return f"{name}: {inside} of {heads} heads in the box, those that cost most first."


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


def lower(text: str) -> str:
    """A sentence that goes on after a colon."""
    return text[0].lower() + text[1:]


def components(found: Projection) -> tuple[str, str]:
    """The titles of the two axes."""
    first, second = (f"{share:.0%}" for share in found.shares)
    return f"first principal component, {first} of the variance", f"second, {second}"


def projected(found: Projection, space: Space) -> str:
    """What is drawn, and how much of it the plane shows."""
    count, width, tokens = len(found.tokens), found.width, "pieces" if space == "token embeddings" else "tokens"
    said = [WHAT[space]]
    part = "all" if found.sentences == found.lines else f"{found.sentences:,} of"
    said.append(f"{count:,} {tokens} of {part} {found.lines:,} sentences, each a vector of {width} numbers.")
    said.append(
        f"The plane holds {sum(found.shares):.0%} of their variance: what is far apart in it is far apart, what "
        "is near in it need not be near."
    )
    return " ".join(said)


def marked(found: Projection, word: str) -> str:
    """How often a marked word is among the tokens that are drawn."""
    own = found.tokens[found.tokens["word"].str.casefold() == word.casefold()]
    if own.empty:
        return f"No token of “{word}” is drawn: the sentences that are hold no such word."
    counts = (len(own), "dot"), (own["sentence"].nunique(), "sentence")
    return f"“{word}”: " + " in ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in counts) + "."


def brushed_tokens(inside: int, drawn: int, listed: int) -> str:
    """How many tokens a box holds, and how many of them are listed."""
    rest = "" if listed == inside else f"; the {listed} next to its middle are listed"
    return f"{inside:,} of {drawn:,} dots in the box{rest}."
