"""Deletion curves: their ends are known, and each step is a deletion by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from attenscope.attribution.alti_and_leave_one_out import compute_target_values_without_pieces
from attenscope.attribution.methods import attribute_all_methods, attribute_target
from attenscope.attribution.target import make_piece_target
from attenscope.evaluation.attribution import measure_deletion_curves
from attenscope.translate import Translator


def test_each_step_takes_the_next_piece_away(toy_translator: Translator) -> None:
    translation = toy_translator.translate("a cat finds the old tree.", capture=False)
    target = make_piece_target(toy_translator, translation, 3)
    found = attribute_target(toy_translator, target)
    pieces = len(target.source_ids)
    scores = np.arange(pieces, dtype=float)  # the last piece first
    curves = measure_deletion_curves(toy_translator, target, {"by hand": dataclasses.replace(found, source=scores)}, 5)
    values = curves.methods["by hand"]
    whole = torch.ones(1, len(target.prefix_tokens), dtype=torch.bool)
    for step in range(pieces + 1):
        keep = torch.arange(pieces)[None] < pieces - step
        expected = compute_target_values_without_pieces(toy_translator.model, target, keep, whole)
        assert values[step] == pytest.approx(float(expected[0]), abs=1e-5)
    assert curves.random.shape == (5, pieces + 1)
    assert values[0] == pytest.approx(found.target_value, abs=1e-5)
    np.testing.assert_allclose(curves.random[:, -1], values[-1], atol=1e-5)
    low, mean, high = curves.band
    assert (low <= high).all()
    assert mean[0] == pytest.approx(1)


def test_what_is_left_is_a_share_and_leave_one_out_beats_chance(toy_translator: Translator) -> None:
    translation = toy_translator.translate("a small cat finds the old tree today.", capture=False)
    target = make_piece_target(toy_translator, translation, 3)
    curves = measure_deletion_curves(toy_translator, target, attribute_all_methods(toy_translator, target))
    values = curves.methods["leave-one-out"]
    np.testing.assert_allclose(curves.remaining_share(values), np.exp(values - values[0]))
    assert curves.area(values) < curves.area(curves.random)


def test_of_a_difference_of_logits_the_difference_is_left(toy_translator: Translator) -> None:
    translation = toy_translator.translate("a cat finds the tree.", capture=False)
    target = make_piece_target(toy_translator, translation, 2, against=40)
    curves = measure_deletion_curves(toy_translator, target, {}, 2)
    assert (curves.remaining_share(curves.random) == curves.random).all()
