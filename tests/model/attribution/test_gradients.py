"""Gradients against captum, and the axioms of integrated gradients."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor, nn

from attenscope.attribution.gradients import (
    compute_gradient_x_input,
    compute_integrated_gradients,
    integrate_along_line,
)
from attenscope.attribution.target import Target, make_piece_target, make_word_target
from attenscope.network.hooks import OutputHook, hook_outputs
from attenscope.runnable_model import Translation
from attenscope.translate import Translator
from tests.model.attribution.conftest import read


def value_at(translator: Translator, target: Target, source: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    """The target's value at token embeddings (B, S, D) and (B, T, D), by the model's own forward."""
    model, rows = translator.model, len(source)
    ids = torch.tensor([target.source_ids]).expand(rows, -1), torch.tensor([target.input_ids]).expand(rows, -1)
    hooks: dict[nn.Module, OutputHook] = {
        model.source_embedding.tokens: lambda _: source,
        model.target_embedding.tokens: lambda _: inputs,
    }
    with hook_outputs(hooks):
        return target.value(model(*ids)[:, target.position :])


def embeddings(translator: Translator, target: Target) -> tuple[torch.Tensor, torch.Tensor]:
    pairs = (
        (translator.model.source_embedding, target.source_ids),
        (translator.model.target_embedding, target.input_ids),
    )
    source, inputs = (one.table(torch.tensor([ids])).detach() * one.scale for one, ids in pairs)
    return source, inputs


def test_against_captum(toy_translator: Translator, toy_target: Target) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        captum = pytest.importorskip("captum.attr")

    def value(source: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        return value_at(toy_translator, toy_target, source, inputs)

    given = embeddings(toy_translator, toy_target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        integrated = captum.IntegratedGradients(value).attribute(given, n_steps=400, internal_batch_size=100)
        simple = captum.InputXGradient(value).attribute(given)
    for ours, theirs, tolerance in (
        (compute_integrated_gradients(toy_translator.model, toy_target, tolerance=1e-4), integrated, 2e-2),
        (compute_gradient_x_input(toy_translator.model, toy_target), simple, 1e-5),
    ):
        scale = theirs[0].sum(-1).abs().max().item()
        torch.testing.assert_close(ours.source, theirs[0].sum(-1)[0].double(), atol=tolerance * scale, rtol=0)
        torch.testing.assert_close(ours.prefix, theirs[1].sum(-1)[0].double(), atol=tolerance * scale, rtol=0)


def test_complete(any_translator: Translator) -> None:
    target = make_piece_target(any_translator, read(any_translator), 2)
    found = compute_integrated_gradients(any_translator.model, target)
    source, inputs = embeddings(any_translator, target)
    with torch.no_grad():
        ends = [value_at(any_translator, target, source * end, inputs * end).item() for end in (0, 1)]
    assert [found.baseline, found.value] == pytest.approx(ends, abs=1e-5)
    assert found.completeness_error <= 0.01
    assert float(found.source.sum() + found.prefix.sum()) == pytest.approx(
        ends[1] - ends[0], abs=0.01 * abs(ends[1] - ends[0])
    )


def test_the_pieces_of_the_word_itself_stay(toy_translator: Translator, toy_translation: Translation) -> None:
    target = make_piece_target(toy_translator, toy_translation, 2, count=3)
    found = compute_integrated_gradients(toy_translator.model, target)
    assert len(found.prefix) == 3
    assert found.completeness_error <= 0.01


def test_no_gradient_is_left_on_the_model(toy_translator: Translator, toy_target: Target) -> None:
    compute_integrated_gradients(toy_translator.model, toy_target)
    assert all(parameter.grad is None for parameter in toy_translator.model.parameters())


class Bent:
    """A line along which F has kinks: as many teeth as are asked for, on a rise from 0 to `rise`."""

    pieces = 1

    def __init__(self, teeth: int, rise: float) -> None:
        self.teeth, self.rise = teeth, rise

    def values(self, points: Tensor) -> Tensor:
        phase = (points.double() * self.teeth).remainder(1)
        return self.rise * points.double() + torch.minimum(phase, 3 - 3 * phase) / self.teeth

    def slopes(self, points: Tensor) -> Tensor:
        phase = (points.double() * self.teeth).remainder(1)
        return (self.rise + torch.where(phase < 0.75, 1.0, -3.0))[:, None].double()


@pytest.mark.parametrize("rise", [1.0, 0.2, 1e-4])
@pytest.mark.parametrize("teeth", [3, 29, 61, 97])
def test_the_line_is_cut_finer_until_the_promise_is_kept(teeth: int, rise: float) -> None:
    """Within 1% of the difference, or 0.001 nats where that is more; checked along lines of many kinks."""
    found = integrate_along_line(Bent(teeth, rise))
    left = abs(float(found.source.sum()) - rise)
    assert found.value - found.baseline == pytest.approx(rise, abs=1e-9)
    assert left <= max(0.01 * rise, 0.001) + 1e-12


@pytest.mark.sweep
def test_a_released_model_keeps_the_promise_where_many_cuts_are_needed() -> None:
    translator = Translator.load("everyday-en-de", "cpu")
    translation = translator.translate("She asked me if I had seen her keys.")
    found = compute_integrated_gradients(translator.model, make_word_target(translator, translation, 1))
    assert found.completeness_error <= 0.01
