"""What Why says, held against numbers worked out by hand or anew."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from attenscope.attribution.alti_and_leave_one_out import SourceShares, WordsLeftOut
from attenscope.attribution.logit import LogitPart, LogitParts, ResidualPart, ScoreParts
from attenscope.attribution.methods import ATTENTION_X_GRADIENT_METHOD, ATTRIBUTION_METHODS, Attribution
from attenscope.attribution.target import Target
from attenscope.evaluation.attribution import AttributionScores, DeletionCurves, LooseThreshold, MethodScore
from attenscope.experiments.ablation import HeadEffects
from attenscope.experiments.lens import DecoderLens
from attenscope.experiments.patching import Contrast, PatchMap
from attenscope.trace import Kind
from attenscope.viz.ui.addresses.why import AttentionCell
from attenscope.viz.why import texts
from tests.viz.fakes import attention

TARGET = Target((4, 5, 3), (" a", " b", "</s>"), (2, 7), ("<s>", " x"), (9,), (" y",))
AGAINST = replace(TARGET, against_id=8, against="z")
LOOSE = LooseThreshold(0.5, 0.99, 0.7, 0.01, 0.02, 200)


def plain(text: str) -> str:
    """Without the signs that isolate a quoted token."""
    return text.replace("\u2068", "").replace("\u2069", "")


def attribution(method: str, source: list[float], prefix: list[float], target: Target = TARGET) -> Attribution:
    scores = np.array(source), np.array(prefix)
    return Attribution(method, *scores, float(sum(map(np.sum, scores))), target, -0.5, 0.0123, "zero")


def test_a_value_is_a_probability_or_a_ratio() -> None:
    assert plain(texts.describe_target_value(TARGET, math.log(0.25))) == "log p(“y”) = −1.39, a probability of 25%."
    assert plain(texts.describe_target_value(AGAINST, math.log(3))).endswith("“y” is 3.0 times as probable as “z”.")
    assert plain(texts.describe_target_value(AGAINST, -math.log(40))).endswith("“z” is 40 times as probable as “y”.")
    assert "more than a million times" in texts.describe_target_value(AGAINST, 30.0)


def left_out(value: float, without: list[float], target: Target = TARGET) -> WordsLeftOut:
    """The words a and b of the source and x, which was written before."""
    return WordsLeftOut(target, value, (" a", " b"), (" x",), np.array(without))


@pytest.mark.parametrize(
    ("shares", "answer"),
    [
        (
            (0.93, 0.0001, 0.9, 0.9),
            "Without “a” the probability of “y” falls from 93% to under 0.1%. Without any other",
        ),
        (
            (0.93, 0.9, 0.88, 0.2),
            "Without “x”, which it had written before, the probability of “y” falls from 93% to 20",
        ),
        ((0.93, 0.02, 0.3, 0.9), "falls from 93% to 2.0%. Without “b” it falls to 30%."),
        ((0.93, 0.9, 0.88, 0.95), "the probability of “y” is 93%, and without any one word it is 88% at the lowest."),
        ((4e-5, 1e-5, 4e-5, 4e-5), "the probability of “y”, under 0.1% as it is, becomes 4.0 times smaller."),
    ],
)
def test_the_answer_names_the_word_without_which_least_is_left(shares: tuple[float, ...], answer: str) -> None:
    value, *without = map(math.log, shares)
    assert answer in plain(texts.describe_leave_one_out_answer(left_out(value, without)))


@pytest.mark.parametrize(
    ("ratios", "answer"),
    [
        ((20, 1 / 5, 20, 19), "“y” is 20 times as probable as “z”; without “a” it is the other way round: “z” is 5.0"),
        ((20, 19, 20, 2), "“y” is 20 times as probable as “z”; without “x”, which it had written before, 2.0 times."),
        ((20, 1.04, 20, 19), "“y” is 20 times as probable as “z”; without “a” both are about equally probable."),
        ((1 / 4, 1 / 30, 1, 1), "“z” is 4.0 times as probable as “y”; without “a” 30 times."),
        ((20, 19, 20, 21), "No single word decides between “y” and “z”."),
    ],
)
def test_the_answer_of_a_comparison_is_a_ratio(ratios: tuple[float, ...], answer: str) -> None:
    value, *without = map(math.log, ratios)
    assert answer in plain(texts.describe_leave_one_out_answer(left_out(value, without, AGAINST)))


def test_a_comparison_names_the_piece_and_its_word() -> None:
    two = replace(AGAINST, token_ids=(9, 8), tokens=(" y", "z"))
    answer = plain(texts.describe_leave_one_out_answer(left_out(math.log(20), [math.log(19)] * 3, two)))
    assert answer.startswith("No single word decides between “y” of “yz” and “z”.")


def test_without_words_the_answer_is_the_probability_alone() -> None:
    found = WordsLeftOut(TARGET, math.log(0.25), (), (), np.zeros(0))
    assert texts.describe_leave_one_out_answer(found) == texts.describe_target_value(TARGET, math.log(0.25))
    assert not texts.is_single_word_needed(found)


def test_every_method_has_its_unit() -> None:
    every = ATTRIBUTION_METHODS | ATTENTION_X_GRADIENT_METHOD
    assert texts.METHOD_UNITS.keys() == every.keys()
    for method in every:
        assert texts.describe_attribution_unit(method, TARGET).endswith(".")
    assert "nats of log p" in texts.describe_attribution_unit("leave-one-out", TARGET)
    assert "logits of the difference" in texts.describe_attribution_unit("leave-one-out", AGAINST)


def test_heads_switched_off_are_said_by_the_largest_change() -> None:
    changes: dict[Kind, np.ndarray] = {
        "encoder": np.array([[[-0.2], [0.01]]]),
        "cross": np.array([[[0.3], [-1.5]]]),
    }
    said = plain(texts.describe_largest_head_effect(HeadEffects(changes), TARGET))
    assert said == (
        "Without cross 1.2 log p(“y”) falls by 1.50, more than without any other head. "
        "1 of 4 heads changes it by less than 0.05 when it is off."
    )
    changes["cross"] = -changes["cross"]
    assert "log p(“y”) rises by 1.50" in plain(texts.describe_largest_head_effect(HeadEffects(changes), TARGET))
    assert "how far log p(“y”) falls without it" in plain(texts.explain_head_ablation_colours(TARGET))
    assert "how far logit “y” − logit “z” falls" in plain(texts.explain_head_ablation_colours(AGAINST))


def test_the_largest_scores_are_of_either_sign() -> None:
    assert plain(texts.describe_highest_scored_pieces(attribution("leave-one-out", [0.1, -3.0, 0.2], [0.0, 2.0]))) == (
        "The largest: “b” (−3.00) and “x” (+2.00)."
    )
    assert "says nothing of the prefix" in texts.describe_highest_scored_pieces(
        attribution("attention", [0.1, 0.2, 0.7], [])
    )


def test_the_method_that_agrees_best_is_that_of_the_highest_rank_correlation() -> None:
    numbers = {
        "leave-one-out": ([3.0, 2.0, 1.0], [0.5, 0.1]),
        "alti": ([3.0, 1.0, 2.0], [0.5, 0.1]),
        "rollout": ([1.0, 2.0, 3.0], [4.0, 5.0]),
        "attention": ([2.0, 2.0, 2.0], []),
    }
    found = {name: attribution(name, *scores) for name, scores in numbers.items()}
    expected = {"alti": 1 - 6 * 2 / (5 * 24), "rollout": -1.0}  # 1 - 6 sum d² / n (n² - 1)
    correlations = texts.compute_leave_one_out_correlations(found)
    for name, number in expected.items():
        assert correlations[name] == pytest.approx(number)
    assert math.isnan(correlations["attention"])
    said = texts.describe_method_agreement(found)
    assert f"alti agrees best with leave-one-out: rank correlation {expected['alti']:.2f}" in said
    assert "rollout agrees least, −1.00" in said
    tied = found | {"rollout": found["alti"], "attention": found["leave-one-out"]}
    said = texts.describe_method_agreement({name: tied[name] for name in ("leave-one-out", "alti", "rollout")})
    assert "highest for alti, rollout, " in said
    assert "lowest for alti, rollout, " in said
    assert "no method agrees" in texts.describe_method_agreement(
        {name: found[name] for name in ("leave-one-out", "rollout")}
    )
    assert "No other method" in texts.describe_method_agreement(
        {name: found[name] for name in ("leave-one-out", "attention")}
    )


def test_completeness_is_said_with_its_baseline() -> None:
    assert (
        "baseline zero; the scores sum to the difference from the baseline within 1.23%"
        in texts.describe_completeness(attribution("integrated-gradients", [1.0, 2.0, 3.0], [1.0, 1.0]))
    )


def curves(against: str | None = None) -> DeletionCurves:
    values = {"leave-one-out": np.log([1, 0.5, 0.1, 0.1]), "alti": np.log([1, 1, 0.9, 0.1])}
    return DeletionCurves(values, np.log([[1, 0.8, 0.4, 0.1], [1, 0.6, 0.2, 0.1]]), against)


def test_deletion_says_what_is_left() -> None:
    found = attribution("leave-one-out", [1.0, 3.0, 2.0], [0.0, 0.0])
    said = plain(texts.describe_top_two_pieces_deletion(curves(), found))
    assert said.startswith("Without “b” and “</s>”, the first by leave-one-out, 10% of the probability is left")
    assert "in random orders 30% on average" in said
    assert "band 22% to 38%" in said
    areas = texts.compute_curve_areas(curves())
    assert areas["leave-one-out"] == pytest.approx(0.7 / 3)
    assert areas[texts.RANDOM_ORDER] == pytest.approx(2.2 / 6)
    assert texts.describe_best_deletion_order(curves()) == (
        "For this word the order of leave-one-out leaves least. No better than a random order: alti."
    )
    assert "is the difference left" in texts.describe_top_two_pieces_deletion(curves("z"), found)


def test_the_best_method_over_sentences_is_the_first() -> None:
    rows = tuple(MethodScore(name, share, 1.0, 0.1, 0.5) for name, share in (("alti", 0.91), ("rollout", 0.5)))
    said = texts.describe_measured_method_scores(AttributionScores("set", "hash", 200, rows, 0.1, 0.4, LOOSE))
    assert "in 91.0% of them taking away the first two pieces by alti" in said


def test_the_parts_of_a_logit_are_summed() -> None:
    parts = (
        LogitPart(ResidualPart("bias"), 0.5, 1),
        LogitPart(ResidualPart("cross", 1, 2), -3.0, 1),
        LogitPart(ResidualPart("cross", 0, 0), 1.0, 1),
        LogitPart(ResidualPart("decoder", 0, 1), 2.0, 1),
        LogitPart(ResidualPart("feed_forward", 0), -5.0, 1),
    )
    found = LogitParts("y", "z", parts, -4.5, -4.5001)
    assert plain(texts.describe_logit_sum(found)) == (
        "logit “y” − logit “z”: the 5 parts sum to −4.500; the model computed −4.500."
    )
    assert texts.describe_largest_head(found) == (
        "The head with the largest part of the logit is layer 2 cross-attention head 3, −3.00; all heads of "
        "cross-attention −2.00 and self-attention +2.00. What switching a head off changes is another question, "
        "which “switched off” answers."
    )
    assert "layer 2 cross-attention head 3 (−3.00)" in texts.format_head_link_label(parts[1])


def test_a_score_is_said_with_its_sum_and_its_weight() -> None:
    tokens = ("<s>", " a", " b")
    of = attention("decoder", tokens, tokens, (" a", " b", "</s>"))
    parts = (ResidualPart("bias"), ResidualPart("cross", 0, 0), ResidualPart("cross", 0, 1))
    found = ScoreParts(parts, parts, np.array([[1.0, 0, 0], [0, -4.0, 2.0], [0, 0, -1.0]]), -2.0, 0.25)
    said = plain(texts.describe_attention_score(found, of, AttentionCell("decoder", 0, 0, 2, 1)))
    assert (
        said
        == "“b” looks at “a”: the cells sum to −2.000, the model's score is −2.000, and the weight after softmax 0.25."
    )
    assert "masked" in texts.describe_attention_score(found, of, AttentionCell("decoder", 0, 0, 0, 2))
    assert texts.describe_largest_score_part(found) == (
        "The largest cell: layer 1 cross-attention of the query with layer 1 cross-attention of the key, −3.00. Over "
        "all key parts, layer 1 cross-attention of the query adds −3.00; over all query parts, layer 1 "
        "cross-attention of the key adds −3.00."
    )
    assert texts.format_row_name(of, 1) == "2 · a → b"
    layers, count = of.weights.shape[:2]
    assert f"has {layers} layers, {count} heads, 3 rows and 3 columns" in texts.describe_missing_cell(
        AttentionCell("decoder", 9, 0, 0, 0), of
    )


def test_the_alarm_goes_by_the_mean_effect() -> None:
    parts = np.array([0.75, 0.25]), np.zeros((2, 3)), np.zeros((2, 2))
    found = SourceShares((" x", " y"), *parts, np.array([2.0, 1.0]), np.array([0.1, 0.3]), "</s>")
    assert texts.describe_source_detachment(found, LOOSE).startswith("The translation holds to the source.")
    assert "1.50 nats on average" in texts.describe_source_detachment(found, LOOSE)
    loose = replace(found, effect=np.array([0.5, -0.1]))
    assert texts.describe_source_detachment(loose, LOOSE).startswith("Alarm: the translation has come loose")
    assert "threshold of 0.50" in texts.describe_source_detachment(loose, LOOSE)
    assert "1.0% false alarms, 2.0% misses" in texts.describe_source_detachment(loose, LOOSE)
    assert "no threshold was measured" in texts.describe_source_detachment(loose, None)
    assert plain(texts.describe_word_shares(found, TARGET)) == (
        "“y”: 25% from the source, 75% from the prefix; log p +1.00 nats with the source; 30% of attention on </s>."
    )


def test_a_patch_is_said_as_a_share_of_the_difference() -> None:
    pair = Contrast(AGAINST, (4, 6, 3), (" a", " c", "</s>"), 4.0, -4.0)
    assert plain(texts.describe_translation_divergence(pair)) == (
        "The translations part after “x”: “y” for the first sentence, “z” for the second. logit “y” − logit “z” is "
        "4.00 with the first and −4.00 with the second sentence."
    )
    found = PatchMap(
        ("embedding", "layer 1"), (" a", " c"), np.array([[0.0, 6.0], [1.0, -1.0]]), np.array([8.0, 4.0]), 8.0
    )
    assert plain(texts.describe_largest_patch(found, ["a", "b/c"])) == (
        "One patch brings back most at embedding, “b/c”: 75%. A whole row brings back nine tenths or more at: "
        "embedding."
    )
    few = replace(found, whole=np.array([4.0, 2.0]))
    assert "A whole row brings back 50% at most, at embedding." in texts.describe_largest_patch(few, ["a", "b/c"])
    assert texts.describe_control_patch_map(replace(found, change=-found.change)) == (
        "In the control one patch moves −75% of that difference at most."
    )


def test_the_lens_says_from_which_layer_on() -> None:
    places, written = ("embedding", "layer 1", "layer 2"), ("A.", "B.", "B.")
    ranks = np.array([[1, 5], [2, 1], [1, 1]])
    found = DecoderLens(places, written, ((),) * 3, (" x", " y"), ranks, np.zeros((3, 2)))
    assert plain(texts.describe_encoder_lens(found, 1)) == (
        "The translation is that of the whole model from layer 1 on; “y” is the first choice from layer 1 on."
    )
    assert "“x” is the first choice from layer 2 on" in plain(texts.describe_encoder_lens(found, 0))
    never = replace(found, ranks=ranks + 1)
    assert "from no layer on is “x” the first choice" in plain(texts.describe_encoder_lens(never, 0))
