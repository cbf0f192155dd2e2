"""All methods together: shapes, names, attention norms by a slow loop, rank correlation, threads."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from attenscope.analysis.flow import compute_rollout
from attenscope.attribution.methods import (
    ATTRIBUTION_METHODS,
    Attribution,
    attribute_all_methods,
    attribute_target,
    rank_correlation,
    record_target_pass,
)
from attenscope.attribution.target import AttributionError, Target, make_piece_target, make_word_target
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import parse_changes
from attenscope.runnable_model import Translation
from attenscope.translate import Translator
from tests.model.attribution.conftest import read


def test_every_method_scores_every_piece(any_translator: Translator) -> None:
    target = make_word_target(any_translator, read(any_translator), 2)
    for method, found in attribute_all_methods(any_translator, target).items():
        assert found.method == method
        assert found.source.shape == (len(target.source_ids),)
        assert len(found.prefix) in (0, len(target.prefix_tokens))
        assert np.isfinite(found.scores).all()
        assert found.total == pytest.approx(found.scores.sum())
        assert found.target_value <= 0
        assert (found.completeness_error is None) == (method != "integrated-gradients")
        assert {"word", "against", "method", "source", "prefix", "target_value", "completeness_error"} <= set(
            found.as_json()
        )


def test_attention_norms_by_a_slow_loop(toy_translator: Translator, toy_target: Target) -> None:
    found = attribute_target(toy_translator, toy_target, "attention-norm")
    recording = record_target_pass(toy_translator.model, toy_target)
    for kind, scores in (("cross", found.source), ("self", found.prefix)):
        path = f"decoder.layers.1.{kind}_attention"
        module = toy_translator.model.get_submodule(path)
        weights, values = recording[f"{path}.weights"], recording[f"{path}.v"]
        projection = module.get_parameter("out_proj.weight").detach().double()
        for key, score in enumerate(scores):
            vector = torch.zeros(64, dtype=torch.float64)
            for head in range(2):
                for unit in range(32):
                    carried = weights[head, toy_target.position, key] * values[head, key, unit]
                    vector += carried * projection[:, head * 32 + unit]
            assert score == pytest.approx(float(vector.norm()), abs=1e-9)


def test_attention_and_rollout_are_those_of_the_trace(toy_translator: Translator, toy_target: Target) -> None:
    whole = toy_translator.translate("the old dog sees a red cat here.")
    row = toy_target.position
    attention = attribute_target(toy_translator, toy_target, "attention")
    cross = whole.trace.maps["cross"]
    np.testing.assert_allclose(attention.source, cross.weights[-1, :, row].mean(0), atol=1e-5)
    assert attention.prefix.size == 0
    rolled = compute_rollout(whole.trace).maps
    found = attribute_target(toy_translator, toy_target, "rollout")
    np.testing.assert_allclose(found.source, rolled["cross"].weights[-1, 0, row], atol=1e-5)
    np.testing.assert_allclose(found.prefix, rolled["decoder"].weights[-1, 0, row, : row + 1], atol=1e-5)


def test_the_right_word_is_found(toy_translator: Translator) -> None:
    """The toy language is translated word by word, so the word that matters most is known."""
    sentence = "a small child likes the old tree here."
    translation = toy_translator.translate(sentence, capture=False)
    number = translation.text.split().index("Baum") + 1
    found = attribute_target(toy_translator, make_word_target(toy_translator, translation, number))
    pieces = [token.strip() for token in translation.source_tokens]
    assert "tree".startswith(pieces[int(found.source.argmax())])


def with_scores(found: Attribution, source: list[float], prefix: list[float]) -> Attribution:
    return dataclasses.replace(found, source=np.array(source), prefix=np.array(prefix))


def test_rank_correlation(toy_translator: Translator, toy_target: Target) -> None:
    found = attribute_target(toy_translator, toy_target, "attention")
    first = with_scores(found, [1, 2, 3], [4, 5])
    assert rank_correlation(first, with_scores(found, [10, 20, 30], [40, 50])) == pytest.approx(1)
    assert rank_correlation(first, with_scores(found, [3, 2, 1], [])) == pytest.approx(-1)
    assert rank_correlation(first, with_scores(found, [1, 2, 2], [4, 5])) == pytest.approx(0.9747, abs=1e-4)
    assert np.isnan(rank_correlation(first, with_scores(found, [1, 1, 1], [])))


def test_an_unknown_method_is_named(toy_translator: Translator, toy_target: Target) -> None:
    with pytest.raises(AttributionError, match="There is no method 'magic'; the methods are leave-one-out"):
        attribute_target(toy_translator, toy_target, "magic")


def test_threads_side_by_side_see_their_own(toy_translator: Translator, toy_translation: Translation) -> None:
    targets = [make_piece_target(toy_translator, toy_translation, place) for place in (1, 3)]
    changes = [(), parse_changes("cross.2.1:off")]

    def job(index: int) -> np.ndarray:
        with apply_changes(toy_translator.model, changes[index % 2]):
            found = attribute_all_methods(toy_translator, targets[index % 2])
        return np.concatenate([found[method].scores for method in ATTRIBUTION_METHODS])

    alone = [job(0), job(1)]
    with ThreadPoolExecutor(4) as pool:
        for index, scores in enumerate(pool.map(job, range(8))):
            np.testing.assert_allclose(scores, alone[index % 2], atol=1e-4)
