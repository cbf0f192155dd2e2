"""The sentences of the page Heads, computed from atlases and from measurements saved with a model."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from attenscope.analysis.heads import head_name
from attenscope.atlas.heads_over_training import Timeline
from attenscope.atlas.measure import KEYS_A_ROW, MEASURE_EXPLANATIONS, WEIGHT_STEPS
from attenscope.atlas.projection import Projection, ProjectionSpace
from attenscope.atlas.pruning import Pruning
from attenscope.atlas.query import Atlas
from attenscope.atlas.teacher_forced_batches import PLACES
from attenscope.language import format_number, join_items, join_sentences, say, say_many, to_say
from attenscope.runnable_model import RunnableModel
from attenscope.text.parts_of_speech import END_TAG, START_TAG, TAGGER_MODELS, UNKNOWN_TAG
from attenscope.trace import KINDS, Head, Kind
from attenscope.viz.ui.addresses.heads import HEADS_MEASURE_NAMES
from attenscope.viz.ui.head_alignment import READING_TOKENS
from attenscope.word_alignment.gold import (
    GOLD_FOLDER,
    GoldError,
    compare_annotation_passes,
    read_annotation_passes,
    read_gold,
)
from attenscope.word_alignment.measure import AlignmentRate, AlignmentRates

HEAD_MAP_HINT = to_say(
    "Click a dot to see what the head does, in sentences; draw a box with the mouse to list the heads in it. A large "
    "dot costs much when it is switched off."
)
TENTH_HEADINGS = {
    "top": to_say("Where it looks most decidedly: rows of the top tenth by their largest weight."),
    "middle": to_say("In the middle: rows of the fifth tenth."),
    "bottom": to_say("Where it looks least decidedly: rows of the bottom tenth."),
}
SHADED_ROWS_HINT = to_say(
    "The token that attends is framed; shaded are the three keys that it gives most weight to. In the decoder's "
    "self-attention it is the token fed in, in cross-attention the token predicted."
)
ONE_TEXT_ROWS_HINT = to_say("The token that attends is framed; shaded are the three keys that it gives most weight to.")
TAG_PAIRS_HINT = to_say(
    "Share: of the weight of rows whose query has the first part of speech, what goes to the second. Lift: that share "
    "over what rows spread evenly would give it. Rows: all such rows of the corpus that may look at two tokens or more."
)
SPACE_MEANINGS: dict[ProjectionSpace, str] = {
    "queries and keys": to_say(
        "What the head compares: a query and a key attract each other where they point the same way. Both are moved to "
        "one centre and scaled to one mean length, which changes no weight (Yeh et al. 2023, arXiv 2305.03210)."
    ),
    "encoder outputs": to_say("What the encoder has made of each token of the source, for the decoder to read."),
    "token embeddings": to_say(
        "What stands for each piece before any layer has read it; a dot is a piece, in the first sentence that has it."
    ),
}
PROJECTION_HINT = to_say("Click a dot, or draw a box with the mouse, to read the sentences.")
SEARCH_HINT = to_say(
    "Write what attends, an arrow, and what is attended to: word=dog, word~^un (a regular expression), pos=NOUN; "
    "beside them distance=-1 or distance=-3..-1, weight>=0.5, map={map}, head=2.3."
)


def describe_corpus(atlas: Atlas) -> str:
    """What an atlas was made of."""
    manifest = atlas.manifest
    skipped = sum(manifest.skipped.values())
    of = {
        "count": manifest.sentences,
        # A word joiner keeps Streamlit from making a link of an address.
        "source": manifest.licence.replace("www.", "www\u2060.") or manifest.plan.source,
    }
    if atlas.is_one_text:
        measured = say("Measured on {count:,} texts, which the model reads; {source}.", **of)
    elif manifest.plan.target:
        measured = say("Measured on {count:,} sentences with given translations; {source}.", **of)
    else:
        measured = say("Measured on {count:,} sentences with the model's own translations; {source}.", **of)
    if manifest.repeats:
        on_repeats = say(
            "Induction, duplicate and previous tokens also on {sequences} sequences of {tokens} random tokens, which "
            "stand {times} times in a row.",
            **manifest.repeats,
        )
        measured = join_sentences(measured, on_repeats)
    left_out = say_many("{count:,} line was left out.", "{count:,} lines were left out.", skipped)
    return join_sentences(measured, left_out if skipped else "")


def describe_shaded_rows(atlas: Atlas, late: bool = False) -> str:
    """What the example rows of an atlas show; `late` if some frame the token fed in, in cross-attention too."""
    hint = say(ONE_TEXT_ROWS_HINT if atlas.is_one_text else SHADED_ROWS_HINT)
    return join_sentences(hint, say("For the late aligner it is the token fed in.") if late else "")


def explain_link_search_counts(atlas: Atlas) -> str:
    """What a search counts."""
    least = max(1, round(atlas.manifest.plan.least_weight * WEIGHT_STEPS))
    return say(
        "A link is one of the {keys} keys that a row gives most weight to, with a weight of {least:g} at least, "
        "rounded to steps of {step:g}; rows that may look at one token alone have none.",
        keys=KEYS_A_ROW,
        least=least / WEIGHT_STEPS,
        step=1 / WEIGHT_STEPS,
    )


def collect_atlas_facts(model: RunnableModel, atlas: Atlas) -> dict[str, str]:
    """What is needed to make a view of an atlas again."""
    return {"model": model.name, "hash": model.weights_hash, "corpus": describe_corpus(atlas)}


def describe_measures(across: str, up: str) -> str:
    """What the two measures of the map mean."""
    return join_sentences(*(say(MEASURE_EXPLANATIONS[name]) for name in dict.fromkeys((across, up))))


def describe_measure_scatter(sides: Sequence[tuple[str, Atlas, int]], across: str, up: str) -> str:
    """What the map shows of each model, by name, and how many heads it leaves out; the number says how many it has."""
    said = [describe_measures(across, up)]
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
            say(
                "Axes and sizes are the same on both maps. {model}: {corpus}", model=name, corpus=describe_corpus(atlas)
            )
        )
    return join_sentences(*said)


def describe_heads_in_box(name: str, inside: int, heads: int) -> str:
    """How many heads of a model a box holds."""
    return say(
        "{model}: {inside} of {heads} heads in the box, those that cost most first.",
        model=name,
        inside=inside,
        heads=heads,
    )


def describe_head_ablation_cost(atlas: Atlas, head: Head) -> str:
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
    return join_sentences(costs, say("The interval holds 0: this corpus does not tell whether it matters."))


def explain_untagged_decoder_text(tags: Collection[str]) -> str:
    """Whether only what needs no tagger is tagged in the texts of a decoder alone, whose language is guessed."""
    if {*tags} - {"PUNCT", "NUM", START_TAG, END_TAG, UNKNOWN_TAG}:
        return ""
    return say("Parts of speech of these texts are not known: only punctuation and numbers are tagged.")


def describe_untagged_sides(languages: tuple[str, str]) -> str:
    """Which side's parts of speech are not known; "" where both are."""
    source, target = (one in TAGGER_MODELS for one in languages)
    if source and target:
        return ""
    if source:
        return say("Parts of speech of the translation are not known: only punctuation and numbers are tagged.")
    if target:
        return say("Parts of speech of the source are not known: only punctuation and numbers are tagged.")
    return say(
        "Parts of speech of the source and the translation are not known: only punctuation and numbers are tagged."
    )


def make_projection_axis_titles(found: Projection) -> tuple[str, str]:
    """The titles of the two axes."""
    first, second = found.shares
    return (
        say("first principal component, {share:.0%} of the variance", share=first),
        say("second, {share:.0%}", share=second),
    )


def describe_projection(found: Projection, space: ProjectionSpace) -> str:
    """What is drawn, and how much of it the plane shows."""
    plane = say(
        "The plane holds {share:.0%} of their variance: what is far apart in it is far apart, what is near in it need "
        "not be near.",
        share=sum(found.shares),
    )
    return join_sentences(say(SPACE_MEANINGS[space]), _describe_drawn_tokens(found, space), plane)


def _describe_drawn_tokens(found: Projection, space: ProjectionSpace) -> str:
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


def describe_marked_word(found: Projection, word: str) -> str:
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


def describe_tokens_in_box(inside: int, drawn: int, listed: int) -> str:
    """How many tokens a box holds, and how many of them are listed."""
    if listed == inside:
        return say("{inside:,} of {drawn:,} dots in the box.", inside=inside, drawn=drawn)
    return say(
        "{inside:,} of {drawn:,} dots in the box; the {listed} next to its middle are listed.",
        inside=inside,
        drawn=drawn,
        listed=listed,
    )


# Measurements saved beside a model: alignment, pruning, and heads over training.


KEPT_BLEU_SHARE = 0.95
"""The share of BLEU of which the page says up to where it is kept."""
ERROR_RATE_EXPLANATION = to_say(
    "Error rate (Och and Ney 2003): 1 less the links that are right, sure and possible ones, over all links of the "
    "head and all sure ones of the gold; the lower, the better. Each piece of the given translation is linked to the "
    "source piece of most weight, special tokens left out; two words are linked when any of their pieces are. The "
    "interval is of pairs drawn again. Click a cell to look at the head."
)
PRUNING_EXPLANATION = to_say(
    "A head that is taken away adds nothing (its context is zero), and nothing is trained again (Michel et al. 2019). "
    "The band goes from the least to the most of the random orders, its line is their mean. Below, the sentence "
    "translated greedily with the heads left by cost; click a row or move the slider."
)
KIND_MEAN_CHANGES: dict[Kind, str] = {
    "encoder": to_say("encoder self-attention {first:.2f}, then {last:.2f}"),
    "decoder": to_say("decoder self-attention {first:.2f}, then {last:.2f}"),
    "cross": to_say("cross-attention {first:.2f}, then {last:.2f}"),
}


def describe_alignment(found: AlignmentRates) -> str:
    """Which head aligns best, and what averages, order alone and a choice on other pairs give."""
    head, layer, every = (found.best(part) for part in ("head", "layer", "all"))
    names = {
        "head": head_name(("cross", head.layer, head.head)),
        "token": say(READING_TOKENS[head.reading]),
        "rate": _format_error_rate_with_interval(head),
    }
    best = (
        say(
            "Best: {head} read at {token}, {rate}, chosen and measured on the same pairs, which are too few to part.",
            **names,
        )
        if math.isnan(found.held_out)
        else say(
            "Best: {head} read at {token}, {rate}; chosen on one half of the pairs and measured on the other, "
            "{held_out:.1%}.",
            **names,
            held_out=found.held_out,
        )
    )
    means = say(
        "The weights of all heads of a layer averaged, at best: layer {layer} read at {layer_token}, {layer_rate}. The "
        "weights of all heads averaged, read at {token}: {rate}. Linking words by their place in the sentence alone: "
        "{diagonal:.1%}.",
        layer=layer.layer + 1,
        layer_token=say(READING_TOKENS[layer.reading]),
        layer_rate=_format_error_rate_with_interval(layer),
        token=say(READING_TOKENS[every.reading]),
        rate=_format_error_rate_with_interval(every),
        diagonal=found.diagonal,
    )
    return join_sentences(best, means)


def describe_gold_alignments(found: AlignmentRates) -> str:
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
    return join_sentences(against, left_out if found.left_out else "", _describe_annotators(found))


def _describe_annotators(found: AlignmentRates) -> str:
    """Who has drawn the gold."""
    folder = GOLD_FOLDER / found.gold
    if not _is_measured_against_gold(folder, found):
        return say("Gold: {name}.", name=found.gold)
    passes = compare_annotation_passes(*read_annotation_passes(folder))
    return say(
        "They were drawn by hand in two passes of one annotator, which agree in {any:.1%} of all links and {sure:.1%} "
        "of the sure ones; sentences of Tatoeba, selection of ManyThings.org, CC BY 2.0.",
        any=passes.any,
        sure=passes.sure,
    )


_COST_TEXT = to_say(
    "A cost is that of one head alone: heads that can stand in for each other cost little until all are gone."
)


def describe_pruning(found: Pruning) -> str:
    """How many heads can go, by cost and by chance."""
    whole = found.by_cost.bleu[0]
    mean = [sum(values) / len(values) for values in zip(*(one.bleu for one in found.random), strict=True)]
    by_cost = found.find_fewest_heads_keeping_bleu(KEPT_BLEU_SHARE, found.by_cost.bleu)
    by_chance = found.find_fewest_heads_keeping_bleu(KEPT_BLEU_SHARE, mean)
    counted = say(
        "With heads taken away by cost, BLEU stays at {kept:.0%} of the whole model's {whole:.1f} or more down to "
        "{by_cost} of {heads} heads; with random orders, on average, down to {by_chance}.",
        kept=KEPT_BLEU_SHARE,
        whole=whole,
        by_cost=by_cost,
        heads=found.left[0],
        by_chance=by_chance,
    )
    return join_sentences(counted, say(_COST_TEXT) if by_cost > by_chance else "")


def describe_pruning_data(found: Pruning) -> str:
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


def describe_measure_over_training(found: Timeline, measure: str) -> str:
    """How a measure changed from the first snapshot to the last, and when heads were first labelled with it."""
    name, names = say(HEADS_MEASURE_NAMES[measure]), [format_snapshot_name(step) for step in found.steps]
    means = [
        say(KIND_MEAN_CHANGES[kind], first=one, last=other)
        for kind, (one, other) in _compute_first_and_last_means_by_kind(found, measure).items()
    ]
    mean = say(
        "Mean {measure}, {first} and {last}: {kinds}.",
        measure=name,
        first=names[0],
        last=names[-1],
        kinds=say("; ").join(means),
    )
    if measure not in PLACES:
        return mean
    counts = found.count_labelled_heads(measure)
    if not any(counts):
        return join_sentences(mean, say("No head is labelled “{measure}” at any snapshot.", measure=name))
    labelled = say(
        "Heads labelled “{measure}”: {counts}; the first at: {first}.",
        measure=name,
        counts=join_items(
            say("{count} ({stop})", count=count, stop=one) for count, one in zip(counts, names, strict=True)
        ),
        first=names[next(at for at, count in enumerate(counts) if count)],
    )
    return join_sentences(mean, labelled)


def explain_timeline_measure(found: Timeline, measure: str) -> str:
    """What the measure means, and what it was taken on."""
    taken = say(
        "Measured on {sentences:,} sentences of {source} with given translations at {stops} moments of the training. "
        "Click a dot to look at the head, as it is in the released weights.",
        sentences=found.sentences,
        source=found.source,
        stops=len(found.steps),
    )
    return join_sentences(say(MEASURE_EXPLANATIONS[measure]), taken)


def format_snapshot_name(step: int | None) -> str:
    """A snapshot in a word or two."""
    return say("step {step:,}", step=step) if step else format_snapshot_tick(step)


def format_snapshot_tick(step: int | None) -> str:
    """A snapshot on an axis of steps."""
    return say("released") if step is None else say("random") if step == 0 else format_number(step, ",")


def _compute_first_and_last_means_by_kind(found: Timeline, measure: str) -> dict[Kind, tuple[float, float]]:
    """The mean over the heads of each map that have the measure, at the first stop and at the last."""
    means: dict[Kind, tuple[float, float]] = {}
    for kind in KINDS:
        values = np.array([(one[0], one[-1]) for head, one in found.courses(measure).items() if head[0] == kind])
        values = values[~np.isnan(values).any(1)] if len(values) else values
        if len(values):
            first, last = values.mean(0)
            means[kind] = (float(first), float(last))
    return means


def _is_measured_against_gold(folder: Path, found: AlignmentRates) -> bool:
    """Whether rates were measured against a gold of the project, as it is now."""
    try:
        return read_gold(folder).sha256 == found.gold_sha256
    except GoldError:
        return False


def _format_error_rate_with_interval(rate: AlignmentRate) -> str:
    return say("{rate:.1%} (95%: {low:.1%} to {high:.1%})", rate=rate.aer, low=rate.low, high=rate.high)
