"""What the app and the command line compute with a model, each as one function: to be compared between devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attenscope.atlas.measure import measure_heads
from attenscope.atlas.teacher_forced_batches import Sentence, make_batches, run_batch
from attenscope.attribution.alti_and_leave_one_out import compute_source_effect, compute_source_shares
from attenscope.attribution.logit import split_logit, split_score
from attenscope.attribution.methods import attribute_all_methods, record_target_pass
from attenscope.attribution.target import make_word_target
from attenscope.decoding.greedy_and_sampling import Sampling, Strategy
from attenscope.evaluation.attribution import measure_deletion_curves
from attenscope.experiments.ablation import compare_with_changes, head_effects, read_word_facts
from attenscope.experiments.lens import run_decoder_lens, run_logit_lens
from attenscope.experiments.mask_trial import (
    MaskTrial,
    measure_cache_agreement,
    perturb_each_input_token,
    run_mask_trial,
    run_trial_tests,
)
from attenscope.experiments.patching import compare_at_first_difference, patch_heads, patch_stream
from attenscope.interventions.changes import parse_changes
from attenscope.network.attention import make_padding_mask
from attenscope.network.config import PAD_ID
from attenscope.positions.analysis import score_positional_heads
from attenscope.positions.experiments import PositionExperiment, compute_log_prob_curve, run_experiment
from attenscope.positions.table import read_embedding_parts
from attenscope.trace import TENSOR_NAMES
from attenscope.training.trainer import smoothed_cross_entropy
from attenscope.translate import Translator
from tests import toy

NOT_COMPARED = ("seconds", "device", "path", "by_capture", "difference", "settings", "model_hash")
"""Fields that say how a result was made, not what it is."""


def numbers_and_texts(result: object, place: str = "") -> Iterator[tuple[str, object]]:
    """Every array, number and text in a result, with the place where it stands, in an order of its own."""
    if is_dataclass(result):
        result = {one.name: getattr(result, one.name) for one in fields(result) if one.name not in NOT_COMPARED}
    if isinstance(result, Tensor):
        result = result.cpu().numpy()
    if isinstance(result, dict):
        for name, one in result.items():
            yield from numbers_and_texts(one, f"{place}.{name}")
    elif isinstance(result, (list, tuple)):
        for at, one in enumerate(result):
            yield from numbers_and_texts(one, f"{place}[{at}]")
    else:
        yield place, result


def assert_same(first: object, second: object, tolerance: float) -> None:
    """Texts and whole numbers equal, other numbers within the tolerance, absolute and relative."""
    one, other = dict(numbers_and_texts(first)), dict(numbers_and_texts(second))
    assert one.keys() == other.keys()
    for place, value in one.items():
        expected, found = np.asarray(value), np.asarray(other[place])
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=place)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=place)


def _translated(translator: Translator, text: str) -> Any:
    return translator.translate(text)


def _sampled(translator: Translator, text: str) -> Any:
    return translator.translate(text, Strategy(Sampling(temperature=1.3, top_k=20), seed=7))


def _searched(translator: Translator, text: str) -> Any:
    return translator.search(text, 4)


def _batches(translator: Translator, text: str) -> Any:
    texts = [text, text[: len(text) // 2], text]
    return [translator.translate_batch(texts), translator.translate_batch(texts, beam=3)]


def _forced(translator: Translator, text: str) -> Any:
    return translator.force(text, translator.translate(text).target_ids, tensors=TENSOR_NAMES)


def _observed(translator: Translator, text: str) -> Any:
    """How far the attention that runs unobserved is away: a rounding, so only its size can be held."""
    return [
        translator.check_observer(one).difference < 1e-4
        for one in (_translated(translator, text), _forced(translator, text))
    ]


def _changed(translator: Translator, text: str) -> Any:
    changes = parse_changes("encoder.1.1:off,cross.2.1:uniform,decoder.1.1:head.2,mask.cross.*.*.1:block")
    return compare_with_changes(translator, translator.translate(text), changes)


def _head_effects(translator: Translator, text: str) -> Any:
    done = translator.translate(text)
    return head_effects(translator.model, done.source_ids, done.target_ids)


def _three_ways(translator: Translator, text: str) -> Any:
    done = translator.translate(text)
    return measure_cache_agreement(translator, done.source_ids, done.target_ids).largest


def _lenses(translator: Translator, text: str) -> Any:
    done = translator.translate(text)
    return [
        run_logit_lens(translator, done, sublayers=True),
        run_decoder_lens(translator, done),
        read_word_facts(translator, text, done.target_ids),
    ]


def _positions(translator: Translator, text: str) -> Any:
    done = translator.translate(text)
    shift = PositionExperiment("shift", 2.0)
    return [
        run_experiment(translator, done, shift),
        compute_log_prob_curve(translator, done, shift, (0.0, 1.0)),
        score_positional_heads(translator, done),
        read_embedding_parts(translator, done, "source"),
    ]


def _attributed(translator: Translator, text: str) -> Any:
    done = translator.translate(text)
    target = make_word_target(translator, done, 2)
    scores = attribute_all_methods(translator, target)
    return [
        scores,
        measure_deletion_curves(translator, target, scores, random_orders=2),
        split_logit(translator.model, target, record_target_pass(translator.model, target)),
        split_score(translator, done, "cross", 1, 0, 1, 1),
        compute_source_shares(translator, done),
        compute_source_effect(translator, done),
    ]


def _patched(translator: Translator, text: str) -> Any:
    first, second = (translator.translate(one) for one in (text, text.replace("a ", "the ")))
    pair = compare_at_first_difference(translator, first, second)
    return [patch_stream(translator, pair, "decoder"), patch_heads(translator, pair, "cross")]


def _tried_masks(translator: Translator, text: str) -> Any:
    trial = MaskTrial("decoder", "no causal mask")
    result = run_mask_trial(translator, text, None, 2)
    checks = run_trial_tests(translator, result, "decoder", trial)
    return [
        run_mask_trial(translator, text, trial, 2),
        perturb_each_input_token(translator, result, trial),
        [one.status for one in checks],
    ]


def _measured_heads(translator: Translator, text: str) -> Any:
    """What an atlas holds of two sentences."""
    done = translator.translate(text)
    ids = (done.source_ids, list(done.target_ids))
    sentences = [
        Sentence.from_source_and_target(line, (text, done.text), ids, translator.tokenizer, ("en", "de"))
        for line in (0, 1)
    ]
    (batch,) = make_batches(sentences, translator.device)
    return measure_heads(translator.model, run_batch(translator.model, batch), True)


def _trained(translator: Translator, text: str) -> Any:
    """The loss and the gradients of one step, as the trainer makes it."""
    model, batch = translator.model, toy.batches(4).batch(np.arange(3))
    source, target_in, target_out = (
        one.to(translator.device) for one in (batch.source, batch.target_in, batch.target_out)
    )
    states = model.decode(target_in, model.encode(source), make_padding_mask(source, PAD_ID))
    loss = smoothed_cross_entropy(
        states.flatten(0, 1), target_out.flatten(), model.generator.weight, model.generator.bias, 0.1
    )
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    return [loss.detach(), [one.norm() for one in gradients]]


WORK: dict[str, Callable[[Translator, str], Any]] = {
    name.removeprefix("_"): function
    for name, function in list(globals().items())
    if name.startswith("_") and getattr(function, "__module__", "") == __name__
}
