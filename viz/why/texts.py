"""The sentences of the page Why, each computed from the result that it describes; no Streamlit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attenscope.analysis.heads import head_name
from attenscope.attribution.alti_and_leave_one_out import SourceShares, WordsLeftOut
from attenscope.attribution.logit import LogitPart, LogitParts, ScoreParts
from attenscope.attribution.methods import (
    ATTENTION_X_GRADIENT_METHOD,
    ATTRIBUTION_METHODS,
    DEFAULT_METHOD,
    Attribution,
    rank_correlation,
)
from attenscope.attribution.target import Target, format_missing_piece_message
from attenscope.evaluation.attribution import BAND_PERCENTILES, AttributionScores, DeletionCurves, LooseThreshold
from attenscope.experiments.ablation import HeadEffects
from attenscope.experiments.lens import DecoderLens
from attenscope.experiments.patching import Contrast, PatchMap
from attenscope.language import format_number, join_items, join_sentences, say, say_many, to_say
from attenscope.trace import AttentionMap
from attenscope.viz.figures.figure_style import (
    KIND_NAMES,
    format_percent,
    format_signed,
    quote_token,
    readable_token,
    translate_component_name,
    translate_stream_place_name,
)
from attenscope.viz.figures.why import format_share

if TYPE_CHECKING:
    from attenscope.viz.ui.addresses.why import AttentionCell

# The answer: what is left of the word without each other word.


MATTERS_BELOW = 0.9
"""A word matters to X where less than this share of its probability is left without the word."""
NEEDED_BELOW = 0.5
"""And X needs it where less than this share is left."""
ABOUT_EQUAL = math.log(1.05)
"""A difference of two logits below which one piece is "1.0 times" as probable as the other."""


def describe_left_out_values(found: WordsLeftOut) -> str:
    """What stands under the words: a probability, or how much more X is worth to the model than Y."""
    target, value = found.target, format_target_value(found.target, found.value)
    if target.against is None:
        return say("under each word: how probable the chosen word is without it; with all words, {value}", value=value)
    return say(
        "under each word: the logit of {first} minus that of {second} without it; with all words, {value}",
        first=quote_token(target.tokens[0]),
        second=quote_token(target.against),
        value=value,
    )


def is_single_word_needed(found: WordsLeftOut, below: float = NEEDED_BELOW) -> bool:
    """Whether the absence of a single word leaves less than this share of the probability of X, or of X over Y."""
    return bool(np.any(found.without < found.value + math.log(below)))


def describe_leave_one_out_answer(found: WordsLeftOut) -> str:
    """What the word rests on, in a sentence or two that need no knowledge of methods."""
    target = found.target
    if not found.words:
        return describe_target_value(target, found.value)
    if target.against is not None:
        own = quote_token(target.tokens[0])
        if len(target.tokens) > 1:  # What is compared with Y is the piece that the word begins with.
            own = say("{piece} of {word}", piece=own, word=quote_token(target.word))
        return _describe_contrast_answer(found, own, quote_token(target.against))
    first, *others = found.by_fall
    before, after = (format_remaining_probability(value) for value in (found.value, float(found.without[first])))
    facts = {
        "word": _name_left_out_word(found, first),
        "target": quote_token(target.word),
        "before": before,
        "after": after,
    }
    if not is_single_word_needed(found, MATTERS_BELOW):
        return say(
            "No single word decides this: the probability of {target} is {before}, and without any one word it is "
            "{after} at the lowest.",
            **facts,
        )
    if before == after:
        times = format_probability_ratio(found.value - float(found.without[first]))
        return say(
            "Without {word} the probability of {target}, {before} as it is, becomes {times} times smaller.",
            times=times,
            **facts,
        )
    said = say("Without {word} the probability of {target} falls from {before} to {after}.", **facts)
    if not others:
        return said
    left = float(found.without[others[0]])
    if left < found.value + math.log(NEEDED_BELOW):
        name = _name_left_out_word(found, others[0])
        more = say("Without {word} it falls to {after}.", word=name, after=format_remaining_probability(left))
    else:
        more = say(
            "Without any other single word it is {least} at the lowest.", least=format_remaining_probability(left)
        )
    return join_sentences(said, more)


def _describe_contrast_answer(found: WordsLeftOut, own: str, other: str) -> str:
    """The same for X compared with Y, whose values are differences of logits."""
    at = found.by_fall[0]
    after = float(found.without[at])
    facts = {
        "own": own,
        "other": other,
        "word": _name_left_out_word(found, at),
        "times": format_probability_ratio(found.value),
    }
    then = format_probability_ratio(after)
    if not is_single_word_needed(found, MATTERS_BELOW):
        return join_sentences(
            say("No single word decides between {own} and {other}.", **facts),
            describe_target_value(found.target, found.value),
        )
    if abs(after) < ABOUT_EQUAL:
        return say(
            "{own} is {times} times as probable as {other}; without {word} both are about equally probable.", **facts
        )
    if found.value > 0 > after:
        return say(
            "{own} is {times} times as probable as {other}; without {word} it is the other way round: {other} is "
            "{then} times as probable.",
            then=then,
            **facts,
        )
    if found.value > 0:
        return say(
            "{own} is {times} times as probable as {other}; without {word} {then} times.",
            then=then,
            **facts,
        )
    return say(
        "{other} is {times} times as probable as {own}; without {word} {then} times.",
        then=then,
        **facts,
    )


def _name_left_out_word(found: WordsLeftOut, at: int) -> str:
    """A word that was left out, and whether the model itself had written it."""
    name = quote_token(found.words[at])
    return name if at < len(found.source_words) else say("{word}, which it had written before,", word=name)


def format_remaining_probability(log_prob: float) -> str:
    """A probability of which little may be left."""
    share = math.exp(log_prob)
    return say("under {share}", share=format_number(0.001, ".1%")) if 0 < share < 0.0005 else format_percent(share)


def list_remaining_probabilities(found: WordsLeftOut) -> list[str]:
    """What is left without each word, as it stands under the word."""
    return [format_target_value(found.target, float(value)) for value in found.without]


def format_target_value(target: Target, value: float) -> str:
    """The value of a word, for people: its probability, or the difference of its logit and another's."""
    return format_percent(math.exp(value)) if target.against is None else format_signed(value, plus=True)


# View Deletion.


RANDOM_ORDER = to_say("random order")
DELETION_BY_MASKS = to_say(
    "Source pieces are taken away, the largest score first: blocked in every mask of every layer, with a zero "
    "embedding."
)
DELETION_BY_EMBEDDINGS = to_say(
    "Source pieces are taken away, the largest score first: their embeddings are made zero, as the masks of this model "
    "cannot be reached."
)
DELETION_NOT_MEASURED = to_say(
    "For this model nothing was measured over many sentences: `python -m model attribution` does it and keeps the "
    "table beside the checkpoint."
)
DELETION_NEVER_MEASURED = to_say("Of a model from a folder nothing is measured over many sentences.")


def describe_deletion_method(how: str) -> str:
    """How pieces are taken away (:data:`DELETION_BY_MASKS`, :data:`DELETION_BY_EMBEDDINGS`), and what the lines are."""
    lines = say(
        "An order that finds what the word rests on falls at once. The thick line is the chosen method, thin lines are "
        "the others; between the {low}th and the {high}th percentile of random orders lies the band, dotted is their "
        "mean.",
        low=BAND_PERCENTILES[0],
        high=BAND_PERCENTILES[1],
    )
    return join_sentences(say(how), lines)


def describe_top_two_pieces_deletion(curves: DeletionCurves, found: Attribution) -> str:
    """What is left without the first two pieces of a method, beside two random pieces."""
    count = min(2, len(found.source))
    order = np.argsort(-found.source, kind="stable")[:count]
    pieces = [quote_token(found.target.source_tokens[at]) for at in order]
    show = format_percent if curves.against is None else format_signed
    low, mean, high = (show(float(line[count])) for line in curves.band)
    left = show(float(curves.remaining_share(curves.methods[found.method])[count]))
    facts = {
        "names": join_two_names(pieces),
        "method": say(found.method),
        "left": left,
        "low": low,
        "mean": mean,
        "high": high,
    }
    if curves.against is None:
        return say(
            "Without {names}, the first by {method}, {left} of the probability is left; in random orders {mean} on "
            "average after as many pieces (band {low} to {high}).",
            **facts,
        )
    return say(
        "Without {names}, the first by {method}, {left} is the difference left; in random orders {mean} on average "
        "after as many pieces (band {low} to {high}).",
        **facts,
    )


def compute_curve_areas(curves: DeletionCurves) -> dict[str, float]:
    """What each order leaves on average over its curve, that of random orders too: the smaller, the better."""
    found = {name: curves.area(values) for name, values in curves.methods.items()}
    return found | {RANDOM_ORDER: curves.area(curves.random)}


def describe_best_deletion_order(curves: DeletionCurves) -> str:
    """The order that leaves least of this word, and the methods that leave more than a random order."""
    found = compute_curve_areas(curves)
    methods = {name: area for name, area in found.items() if name != RANDOM_ORDER}
    least = min(methods, key=methods.__getitem__)
    worse = [name for name, area in methods.items() if area > found[RANDOM_ORDER]]
    return join_sentences(
        say("For this word the order of {method} leaves least.", method=say(least)),
        say("No better than a random order: {methods}.", methods=join_items(map(say, worse))) if worse else "",
    )


def describe_measured_method_scores(scores: AttributionScores) -> str:
    """What was measured, on what, and which method was best."""
    return say(
        "{set}, {sentences} sentences, a random piece of each translation, the model as it was released: in "
        "{share:.1%} of them taking away the first two pieces by {method} lowers log p more than two random pieces do. "
        "Fall of log p in nats; left on average is the mean over the whole curve.",
        set=scores.set,
        sentences=scores.sentences,
        share=scores.methods[0].beats_random,
        method=say(scores.best_method),
    )


# View Heads, parts of the logit.


OPEN_HEAD_HINT = to_say("Click the bar of a head to open it on Explore, at the row of this word.")


def format_head_link_label(head: LogitPart) -> str:
    """The head with the largest part of the logit, as a button says it."""
    score = format_signed(head.score, plus=True)
    return say("The head with the largest part: {head} ({score})", head=head.part.label, score=score)


def format_logit_name(word: str, against: str | None) -> str:
    """logit X, or logit X − logit Y."""
    if against is None:
        return say("logit {word}", word=quote_token(word))
    return say("logit {word} − logit {other}", word=quote_token(word), other=quote_token(against))


def describe_logit_sum(found: LogitParts) -> str:
    """The sum of all parts beside the logit that the model computed."""
    return say(
        "{name}: the {count} parts sum to {sum}; the model computed {logit}.",
        name=format_logit_name(found.word, found.against),
        count=len(found.parts),
        sum=format_signed(found.sum, 3),
        logit=format_signed(found.logit, 3),
    )


def describe_largest_head(found: LogitParts) -> str:
    """The head with the largest share, and how much all heads of each attention add."""
    heads = [one for one in found.parts_by_size if one.part.head is not None]
    first = heads[0]
    cross, own = (
        format_signed(sum(one.score for one in heads if one.part.kind == kind), plus=True)
        for kind in ("cross", "decoder")
    )
    return say(
        "The head with the largest part of the logit is {head}, {score}; all heads of cross-attention {cross} and "
        "self-attention {own}. What switching a head off changes is another question, which “switched off” answers.",
        head=first.part.label,
        score=format_signed(first.score, plus=True),
        cross=cross,
        own=own,
    )


# View Heads, heads switched off.


SMALL_CHANGE = 0.05
"""A head that changes the value by less (nats or logits) counts as changing next to nothing."""
HEADS_OFF_EXPLANATION = to_say(
    "Each head is switched off alone, its output zero, and the same translation is read again: the number is how far "
    "{value} falls without it. Indigo speaks for the word, orange against it. The numbers do not add up: what one head "
    "does another may do when it is gone. Click a head to open it on Explore."
)


def describe_largest_head_effect(found: HeadEffects, target: Target) -> str:
    """The head without which the value changes most, and how many change next to nothing."""
    every = found.strongest()
    head, change = every[0]
    facts = {"head": head_name(head), "value": format_target_value_name(target), "size": format_signed(abs(change))}
    first = say("Without {head} {value} falls by {size}, more than without any other head.", **facts)
    if change > 0:
        first = say("Without {head} {value} rises by {size}, more than without any other head.", **facts)
    idle = sum(abs(one) < SMALL_CHANGE for _, one in every)
    return join_sentences(
        first,
        say_many(
            "{count} of {all} heads changes it by less than {small} when it is off.",
            "{count} of {all} heads change it by less than {small}, each switched off by itself.",
            idle,
            all=len(every),
            small=format_signed(SMALL_CHANGE),
        ),
    )


def explain_head_ablation_colours(target: Target) -> str:
    """What the numbers and colours are."""
    return say(HEADS_OFF_EXPLANATION, value=format_target_value_name(target))


# View Layers.


DECODER_LENS_EXPLANATION = to_say(
    "The decoder reads each encoder layer, through the final norm, as if it were the last; it was trained on the last "
    "alone. Rank and probability are those of the chosen piece when the decoder is given the pieces before it."
)
LOGIT_LENS_EXPLANATION = to_say(
    "Each cell is the token that the decoder would write if it stopped there, coloured by its probability. Early "
    "layers were never trained to be read in this way. Click a column to choose its word."
)


LAYERS_ALONE_NOTE = to_say("So the decoder is read after each layer, and not after each sublayer.")


def make_lens_titles(*, sublayers: bool) -> tuple[str, str]:
    """The titles of the lens and of the ranks."""
    if sublayers:
        return say("What the decoder would write after each sublayer"), say("Ranks after each sublayer")
    return say("What the decoder would write after each layer"), say("Ranks after each layer")


def describe_encoder_lens(found: DecoderLens, position: int) -> str:
    """From which layer on the whole translation and the piece at a position are those of the model."""
    token = quote_token(found.target_tokens[position])
    same = _find_last_true_run_start([text == found.texts[-1] for text in found.texts])
    first = _find_last_true_run_start([rank == 1 for rank in found.ranks[:, position].tolist()])
    whole = translate_stream_place_name(found.places[same or 0])
    if first is None:
        return say(
            "The translation is that of the whole model from {whole} on; from no layer on is {token} the first choice.",
            whole=whole,
            token=token,
        )
    return say(
        "The translation is that of the whole model from {whole} on; {token} is the first choice from {first} on.",
        whole=whole,
        token=token,
        first=translate_stream_place_name(found.places[first]),
    )


def _find_last_true_run_start(true: list[bool]) -> int | None:
    """The place from which on all are true, None where the last is not."""
    if not true[-1]:
        return None
    return max((at + 1 for at, one in enumerate(true) if not one), default=0)


# View Two sentences.


SECOND_SENTENCE_HINT = to_say("to compare with “{sentence}”: as many pieces, another translation")
NO_SECOND_SENTENCE = to_say(
    "Type a second sentence that has as many pieces as the one above and another translation: a word "
    "in another number or tense, another pronoun."
)
NO_CONTROL_SENTENCE = to_say(
    "No control: type a third sentence whose translation has the same word at this place. What a patch from the first "
    "sentence into it changes has nothing to do with the difference."
)
PATCHING_EXPLANATION = to_say(
    "Rows are layers, columns positions or heads; the last column patches a whole row at once. 0% is the run of the "
    "second sentence as it is, 100% brings the whole difference back; orange moves it further away."
)


def describe_patched_word(pair: Contrast, found: PatchMap, columns: Sequence[str]) -> str:
    """What one patch does to the word at which the translations part, in plain words."""
    target = pair.target
    row, column = (int(at) for at in np.unravel_index(int(found.fraction.argmax()), found.fraction.shape))
    facts = {
        "x": quote_token(target.tokens[0]),
        "y": quote_token(target.against or ""),
        "place": quote_token(columns[column]),
    }
    value = pair.second_value + float(found.change[row, column])
    if pair.first_value > 0 > pair.second_value and value > 0:
        return say(
            "The first sentence makes the model write {x}, the second {y}. With what the first run holds at {place} "
            "alone, the second run prefers {x} as well.",
            **facts,
        )
    return say(
        "The first sentence makes the model write {x}, the second {y}. No place of the first run alone makes the "
        "second run prefer {x}: {place} comes nearest, {share} of the way.",
        share=format_share(float(found.fraction[row, column])),
        **facts,
    )


def describe_translation_divergence(found: Contrast) -> str:
    """Where the translations part, and the difference that there is to bring back."""
    target = found.target
    facts = {
        "x": quote_token(target.tokens[0]),
        "y": quote_token(target.against or ""),
        "first": format_signed(found.first_value),
        "second": format_signed(found.second_value),
    }
    if target.position == 0:
        return say(
            "The translations part at the first piece: {x} for the first sentence, {y} for the second. logit {x} − "
            "logit {y} is {first} with the first and {second} with the second sentence.",
            **facts,
        )
    return say(
        "The translations part after {prefix}: {x} for the first sentence, {y} for the second. logit {x} − logit {y} "
        "is {first} with the first and {second} with the second sentence.",
        prefix=quote_token("".join(target.tokens_before_target)),
        **facts,
    )


def describe_largest_patch(found: PatchMap, columns: Sequence[str]) -> str:
    """The single patch that brings most back, and the rows that together bring back nine tenths."""
    row, column = (int(at) for at in np.unravel_index(int(found.fraction.argmax()), found.fraction.shape))
    most = format_share(float(found.fraction[row, column]))
    line = say(
        "One patch brings back most at {place}, {column}: {share}.",
        place=translate_stream_place_name(found.rows[row]),
        column=quote_token(translate_component_name(columns[column])),
        share=most,
    )
    whole = [at for at, part in enumerate(found.whole_row_recovered_fraction) if part >= 0.9]
    if not whole:
        best = int(found.whole_row_recovered_fraction.argmax())
        all_at_once = say(
            "A whole row brings back {share} at most, at {place}.",
            share=format_share(float(found.whole_row_recovered_fraction[best])),
            place=translate_stream_place_name(found.rows[best]),
        )
    else:
        rows = join_items(translate_stream_place_name(found.rows[at]) for at in whole)
        all_at_once = say("A whole row brings back nine tenths or more at: {rows}.", rows=rows)
    return join_sentences(line, all_at_once)


def describe_control_patch_map(found: PatchMap) -> str:
    """How much a patch moves that should bring nothing back."""
    row, column = np.unravel_index(int(np.abs(found.fraction).argmax()), found.fraction.shape)
    moved = format_share(float(found.fraction[row, column]))
    return say("In the control one patch moves {share} of that difference at most.", share=moved)


# View Score.


SCORE_EXPLANATION = to_say(
    "Each cell is the dot product of one part of the query with one part of the key, scaled as the model scales it; "
    "the heads of a sublayer are added up here, and by themselves in the CSV. In the first layer of self-attention the "
    "parts are words, positions and biases alone. The sum is exact; the scale of every norm before the score is held "
    "at its value in this run. Indigo raises the score, orange lowers it."
)


def format_row_name(attention: AttentionMap, row: int) -> str:
    """A row by its number and token; one of the decoder by the token fed and the one it predicts."""
    name = f"{row + 1} · {readable_token(attention.query_tokens[row])}"
    return f"{name} → {readable_token(attention.predicted_tokens[row])}" if attention.predicted_tokens else name


def make_attention_cell_title(attention: AttentionMap, cell: AttentionCell) -> str:
    """The head of a cell, and its row and column by their tokens."""
    return say(
        "{attention}, layer {layer}, head {head}: {query} looks at {key}",
        attention=say(KIND_NAMES[cell.kind]),
        layer=cell.layer + 1,
        head=cell.head + 1,
        query=quote_token(attention.query_tokens[cell.query]),
        key=quote_token(attention.key_tokens[cell.key]),
    )


def describe_attention_score(found: ScoreParts, attention: AttentionMap, cell: AttentionCell) -> str:
    """The score, the sum of its parts and the weight that it became."""
    masked = say("The cell is masked, so its weight is 0 whatever its score.")
    said = say(
        "{query} looks at {key}: the cells sum to {sum}, the model's score is {score}, and the weight after softmax "
        "{weight:.2f}.",
        query=quote_token(attention.query_tokens[cell.query]),
        key=quote_token(attention.key_tokens[cell.key]),
        sum=format_signed(float(found.cells.sum()), 3),
        score=format_signed(found.score, 3),
        weight=found.weight,
    )
    return join_sentences(said, "" if attention.mask[cell.query, cell.key] else masked)


def describe_largest_score_part(found: ScoreParts) -> str:
    """The largest cell of the matrix, and the row and the column with the largest sums."""
    rows, columns, cells = found.group_by_sublayer()
    row, column = np.unravel_index(int(np.abs(cells).argmax()), cells.shape)
    by_row, by_column = cells.sum(1), cells.sum(0)
    query, key = int(np.abs(by_row).argmax()), int(np.abs(by_column).argmax())
    return say(
        "The largest cell: {row} of the query with {column} of the key, {score}. Over all key parts, {query} of the "
        "query adds {query_sum}; over all query parts, {key} of the key adds {key_sum}.",
        row=rows[row],
        column=columns[column],
        score=format_signed(float(cells[row, column]), plus=True),
        query=rows[query],
        query_sum=format_signed(float(by_row[query]), plus=True),
        key=columns[key],
        key_sum=format_signed(float(by_column[key]), plus=True),
    )


def describe_missing_cell(cell: AttentionCell, attention: AttentionMap) -> str:
    """Why a cell of the address cannot be shown."""
    layers, heads, rows, columns = attention.weights.shape
    return say(
        "{attention} has {layers} layers, {heads} heads, {rows} rows and {columns} columns here, so there is no layer "
        "{layer}, head {head}, row {row}, column {column}. Shown instead: the head that matters most for the word.",
        attention=say(KIND_NAMES[cell.kind]),
        layers=layers,
        heads=heads,
        rows=rows,
        columns=columns,
        layer=cell.layer + 1,
        head=cell.head + 1,
        row=cell.query + 1,
        column=cell.key + 1,
    )


# View Source or prefix.


SHARES_EXPLANATION = to_say(
    "Upper picture: the share of the source in each piece by ALTI+, the rest is from what was written before, {start} "
    "included; the mark is the attention to {end}, mean of all layers and heads. Lower picture: an intervention, log p "
    "of the piece less log p with all source pieces blocked; below zero the source speaks against the piece. The alarm "
    "goes by the mean of the lower picture. Click a bar to choose its word."
)


def explain_source_shares(target: Target) -> str:
    """What the pictures show; the target says how source and prefix begin and end."""
    return say(SHARES_EXPLANATION, start=target.prefix_tokens[0].strip(), end=target.source_tokens[-1].strip())


def describe_source_detachment(found: SourceShares, loose: LooseThreshold | None) -> str:
    """Whether the translation has come loose from its source, by the threshold that was measured."""
    gain = format_signed(found.mean_effect)
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
    facts = {"gain": gain, "threshold": format_signed(loose.threshold), "measured": measured}
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


def describe_word_shares(found: SourceShares, target: Target) -> str:
    """The shares, the effect and the attention to </s> of the chosen word, the mean over its pieces."""
    at = slice(target.position, target.position + len(target.tokens))
    share, effect, end = (float(one[at].mean()) for one in (found.source, found.effect, found.end_attention))
    facts = {
        "word": quote_token(target.word),
        "source": share,
        "prefix": 1 - share,
        "effect": format_signed(effect, plus=True),
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


# The question, and the view Source words.


OPENED_TRACE_NOTE = to_say("The opened trace has no model to run: this page speaks of the model that is chosen below.")
COLOURS_HINT = to_say(
    "Indigo speaks for the word, orange against it; the strongest colour is the largest number shown."
)
METHOD_ROWS_HINT = to_say(
    "In the matrix each row is coloured by its own largest score, as the methods have different units; its last column "
    "is the rank correlation with leave-one-out over the pieces that both score. Click a row to see its method above."
)
METHOD_UNITS = {
    "leave-one-out": to_say("{method}: {meaning}; signed, in {value}."),
    "integrated-gradients": to_say(
        "{method}: {meaning}; signed, in {value}: the scores sum to what the pieces change together."
    ),
    "gradient-x-input": to_say("{method}: {meaning}; signed, in {value}, to first order."),
    "attention-x-gradient": to_say("{method}: {meaning}; signed, in {value}, to first order."),
    "attention": to_say("{method}: {meaning}; never negative: an attention weight, the same whichever piece X is."),
    "attention-norm": to_say(
        "{method}: {meaning}; never negative: the length of a vector, the same whichever piece X is."
    ),
    "rollout": to_say("{method}: {meaning}; never negative: a share of attention, the same whichever piece X is."),
    "alti": to_say("{method}: {meaning}; never negative: a share of 100%, the same whichever piece X is."),
}
"""Method -> what it is, whether it has a sign, and its unit."""


def describe_missing_piece(position: int, count: int) -> str:
    """Why a piece of the address, from 0, cannot be explained."""
    return join_sentences(format_missing_piece_message(position + 1, count), say("Another word of it is shown."))


def format_target_value_name(target: Target) -> str:
    """What is explained: log p(X), or logit X − logit Y."""
    if target.against is None:
        return say("log p({word})", word=quote_token(target.word))
    return format_logit_name(target.tokens[0], target.against)


def format_probability_ratio(number: float) -> str:
    """How many times as probable a piece is as another, from the difference of their logits."""
    ratio = math.exp(min(abs(number), math.log(1e7)))
    return say("more than a million") if ratio >= 1e6 else format_number(ratio, ",.0f" if ratio >= 10 else ".1f")


def describe_target_value(target: Target, number: float) -> str:
    """The value that is explained, as a probability or as how many times as probable X is."""
    facts = {"name": format_target_value_name(target), "value": format_signed(number)}
    if target.against is None:
        return say("{name} = {value}, a probability of {share}.", share=format_percent(math.exp(number)), **facts)
    first, second = quote_token(target.tokens[0]), quote_token(target.against)
    if number < 0:
        first, second = second, first
    return say(
        "{name} = {value}: {first} is {times} times as probable as {second}.",
        first=first,
        second=second,
        times=format_probability_ratio(number),
        **facts,
    )


def describe_attribution_unit(method: str, target: Target) -> str:
    """What the numbers of a method are: their sign and unit."""
    value = say("nats of log p") if target.against is None else say("logits of the difference")
    return say(
        METHOD_UNITS[method],
        method=say(method),
        meaning=say((ATTRIBUTION_METHODS | ATTENTION_X_GRADIENT_METHOD)[method]),
        value=value,
    )


def describe_highest_scored_pieces(found: Attribution) -> str:
    """The pieces with the largest scores of either sign."""
    pieces = [*found.target.source_tokens, *found.target.prefix_tokens][: len(found.scores)]
    order = sorted(range(len(pieces)), key=lambda at: -abs(found.scores[at]))[:2]
    scores = {at: format_signed(float(found.scores[at]), plus=True) for at in order}
    named = [say("{piece} ({score})", piece=quote_token(pieces[at]), score=score) for at, score in scores.items()]
    return join_sentences(
        say("The largest: {pieces}.", pieces=join_two_names(named)),
        "" if len(found.prefix) else say("This method says nothing of the prefix."),
    )


def join_two_names(names: Sequence[str]) -> str:
    """Two names, or the only one."""
    return say("{first} and {second}", first=names[0], second=names[1]) if len(names) == 2 else names[0]


def compute_leave_one_out_correlations(found: Mapping[str, Attribution]) -> dict[str, float]:
    """Rank correlation of each method with leave-one-out, NaN where it cannot be computed."""
    judge = found[DEFAULT_METHOD]
    return {name: rank_correlation(one, judge) for name, one in found.items()}


def describe_method_agreement(found: Mapping[str, Attribution]) -> str:
    """Which method agrees best with leave-one-out for this word."""
    known = {
        name: number
        for name, number in compute_leave_one_out_correlations(found).items()
        if name != DEFAULT_METHOD and not math.isnan(number)
    }
    if not known:
        return say("No other method orders the pieces, so none can be held against leave-one-out for this word.")
    best, worst = (choose(known, key=known.__getitem__) for choose in (max, min))
    tied = [[say(name) for name, number in known.items() if math.isclose(number, known[end])] for end in (best, worst)]
    if known[best] <= 0:
        return say(
            "For this word no method agrees with leave-one-out: the rank correlation of the best, {best}, is {high}.",
            best=join_items(tied[0]),
            high=format_signed(known[best]),
        )
    if max(map(len, tied)) > 1 or best == worst:
        return say(
            "For this word the rank correlation with leave-one-out is highest for {best}, {high}, and lowest for "
            "{worst}, {low}.",
            best=join_items(tied[0]),
            high=format_signed(known[best]),
            worst=join_items(tied[1]),
            low=format_signed(known[worst]),
        )
    return say(
        "For this word {best} agrees best with leave-one-out: rank correlation {high}; {worst} agrees least, {low}.",
        best=say(best),
        high=format_signed(known[best]),
        worst=say(worst),
        low=format_signed(known[worst]),
    )


def describe_completeness(found: Attribution) -> str:
    """How nearly the scores of integrated gradients sum to what they explain, and from which baseline."""
    assert found.completeness_error is not None
    assert found.baseline is not None
    return say(
        "Integrated gradients: baseline {baseline}; the scores sum to the difference from the baseline within "
        "{error:.2%}.",
        baseline=say(found.baseline),
        error=found.completeness_error,
    )


def format_pieces(tokens: Sequence[str]) -> list[str]:
    """Pieces as a table names them."""
    return [readable_token(one) for one in tokens]
