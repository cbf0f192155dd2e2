"""The three ways to one attention: found equal, and found out where one is wrong."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from attenscope.capture.attention import capture_attention
from attenscope.checkpoint.load import CHECKPOINTS_FOLDER, list_checkpoints
from attenscope.experiments.mask_trial import (
    CAPTURE_WAYS,
    CacheAgreement,
    compare_attention_across_passes,
    measure_cache_agreement,
)
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import InterventionError, parse_changes
from attenscope.network.abstract_model import DecodingCache
from attenscope.network.attention import KeyValueCache, MultiHeadAttention
from attenscope.network.config import EOS_ID
from attenscope.network.layers import DecoderCache
from attenscope.network.transformer import Transformer
from attenscope.translate import Translator
from tests import toy
from tests.model.network.test_hooks import hooks_on

SOURCE = torch.tensor([[17, 40, 9, 63, EOS_ID]])
TARGET = (20, 31, 42, 20, EOS_ID)


@pytest.mark.parametrize(
    "fields", [{}, {"norm_order": "post"}, {"positions": "learned"}, {"positions": "sinusoidal_pad_row"}], ids=str
)
def test_they_agree_in_every_form_of_positions_and_norms(fields: dict[str, Any]) -> None:
    found = compare_attention_across_passes(toy.random_model(1, **fields), SOURCE, TARGET)
    assert found.is_within_tolerance
    assert {name for pair in found.differences for name in pair} == set(CAPTURE_WAYS)
    assert all(set(one) == {"encoder", "decoder", "cross"} for one in found.differences.values())


def test_they_agree_up_to_the_last_position() -> None:
    model = toy.random_model(2, max_length=6)
    assert compare_attention_across_passes(model, torch.tensor([[5, 6, 7, 8, 9, EOS_ID]]), TARGET).is_within_tolerance


@pytest.mark.parametrize("name", list_checkpoints())
def test_released_checkpoints_agree(name: str) -> None:
    translator = Translator.load(name, "cpu")
    found = translator.translate("He reads a book.", capture=False)
    assert measure_cache_agreement(translator, found.source_ids, found.target_ids).is_within_tolerance


@pytest.mark.sweep
def test_scores_of_several_hundreds_are_no_false_alarm() -> None:
    """In float32 the three ways of this model lie more than 1e-5 apart on some of these sentences."""
    translator = Translator.load("preset-torch_like", "cpu")
    largest = 0.0
    for sentence in (CHECKPOINTS_FOLDER / "sentences.en").read_text(encoding="utf-8").splitlines():
        found = translator.translate(sentence, capture=False)
        assert measure_cache_agreement(translator, found.source_ids, found.target_ids).is_within_tolerance, sentence
        with capture_attention(translator.model, ["scores"]) as recording:
            translator.model(torch.tensor([found.source_ids]), torch.tensor([found.target_ids]))
        largest = max(largest, *(float(abs(one.tensors["scores"]).max()) for one in recording.trace.maps.values()))
    assert largest > 400


def test_the_changed_model_is_checked_where_it_is_shown(toy_translator: Translator) -> None:
    found = toy_translator.translate("the dog sees a cat.", capture=False)
    for changes in ("cross.1.1:off,encoder.2.2:uniform", "mask.cross.*.*.2:block", "decoder.1.1:head.2"):
        assert measure_cache_agreement(
            toy_translator, found.source_ids, found.target_ids, parse_changes(changes)
        ).is_within_tolerance
    with pytest.raises(InterventionError, match="layers"):
        measure_cache_agreement(toy_translator, found.source_ids, found.target_ids, parse_changes("cross.9.1:off"))


def test_what_others_hook_to_the_model_takes_no_part() -> None:
    model = toy.random_model(1)
    with apply_changes(model, parse_changes("cross.1.1:off")):
        before = hooks_on(model)
        assert compare_attention_across_passes(model, SOURCE, TARGET).is_within_tolerance
        assert hooks_on(model) == before
    assert model.generator.weight.dtype == torch.float32


class ForgetsPositions(Transformer):
    """The classic fault: with a cache, every new token is at position 0."""

    lag = 10_000
    """How many positions too early a cached token stands."""

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None,
        mask: Tensor | None = None,
        cache: DecodingCache | None = None,
    ) -> Tensor:
        assert cache is None or isinstance(cache, DecoderCache)
        offset = max(0, cache.length - self.lag) if cache else 0
        mask = mask if cache else self._target_mask(target, 0)
        return self.decoder(self.target_embedding(target, offset), memory, mask, memory_mask, cache)


class OffByOne(ForgetsPositions):
    """A cached token stands one position too early."""

    lag = 1


class IgnoresPadding(Transformer):
    """Its encoder looks at padding, which only a batch has."""

    def encode(self, source: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().encode(source, torch.ones(1, 1, 1, 1, dtype=torch.bool))


def test_nan_in_any_map_is_no_agreement() -> None:
    pair = CAPTURE_WAYS[:2]
    assert not CacheAgreement({pair: {"encoder": 0.0, "decoder": math.nan, "cross": 0.0}}).is_within_tolerance


def differing_pairs(found: CacheAgreement) -> set[tuple[str, str]]:
    assert not found.is_within_tolerance
    return {pair for pair, one in found.differences.items() if max(one.values()) > 1e-3}


def pairs_with(way: str) -> set[tuple[str, str]]:
    return {pair for pair in (CAPTURE_WAYS[:2], CAPTURE_WAYS[1:], (CAPTURE_WAYS[0], CAPTURE_WAYS[2])) if way in pair}


@pytest.mark.parametrize(
    ("broken", "odd"), [(ForgetsPositions, "cached"), (OffByOne, "cached"), (IgnoresPadding, "teacher-forced")]
)
def test_a_fault_in_one_way_is_found(broken: type[Transformer], odd: str) -> None:
    torch.manual_seed(0)
    assert differing_pairs(compare_attention_across_passes(broken(toy.config()).eval(), SOURCE, TARGET)) == pairs_with(
        odd
    )


def test_a_cache_that_writes_one_position_too_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = KeyValueCache.append

    def append(self: KeyValueCache, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        self.length -= self.length > 1
        return right(self, k, v)

    monkeypatch.setattr(KeyValueCache, "append", append)
    assert differing_pairs(compare_attention_across_passes(toy.random_model(), SOURCE, TARGET)) >= {("cached", "full")}


def test_a_mask_dropped_in_the_cached_way_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = MultiHeadAttention._attend

    def attend(self: MultiHeadAttention, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return right(self, q, k, v, None if q.shape[2] == 1 else mask)

    monkeypatch.setattr(MultiHeadAttention, "_attend", attend)
    found = compare_attention_across_passes(toy.random_model(), SOURCE, TARGET, parse_changes("mask.cross.*.*.2:block"))
    assert differing_pairs(found) == pairs_with("cached")
