"""Teacher forcing, and the three ways to one attention: found equal, and found out where one is wrong."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from model.checkpoint.load import available, load_checkpoint
from model.decoding.steps import greedy
from model.decoding.teacher_forcing import forced
from model.experiments.cache_agreement import WAYS, agreement_of, three_ways
from model.network.config import EOS_ID
from model.network.layers import DecoderCache
from model.network.transformer import Transformer
from model.translate import InputError, Translator

from ... import toy

SOURCE = torch.tensor([[17, 40, 9, 63, EOS_ID]])
TARGET = (20, 31, 42, 20, EOS_ID)


def test_forcing_what_was_decoded_gives_its_probabilities(tiny_model: Transformer) -> None:
    decoded = list(greedy(tiny_model, SOURCE, 12))
    read = forced(tiny_model, SOURCE, [step.token_id for step in decoded])
    assert [step.log_prob for step in read] == pytest.approx([step.log_prob for step in decoded], abs=1e-5)
    assert {step.rank for step in read} == {1}
    assert all(step.forced for step in read)


def test_ranks_and_candidates_by_sorting_everything(tiny_model: Transformer) -> None:
    read = forced(tiny_model, SOURCE, TARGET, candidates=5)
    with torch.inference_mode():
        log_probs = tiny_model(SOURCE, torch.tensor([[2, *TARGET[:-1]]]))[0].log_softmax(-1)
    for step, row, token in zip(read, log_probs, TARGET, strict=True):
        order = row.argsort(descending=True).tolist()
        assert step.rank == order.index(token) + 1
        assert [one.token_id for one in step.candidates] == order[:5]
    assert read[-1].stopped == "eos"


def test_probabilities_do_not_know_what_comes_after(tiny_model: Transformer) -> None:
    whole, begun = forced(tiny_model, SOURCE, TARGET), forced(tiny_model, SOURCE, TARGET[:3])
    assert [one.log_prob for one in begun] == pytest.approx([one.log_prob for one in whole[:3]], abs=1e-6)
    assert begun[-1].stopped is None


def test_no_tokens_and_too_many_are_refused(tiny_model: Transformer) -> None:
    for wrong in ([], [7] * 65):
        with pytest.raises(ValueError, match="1 to 64 tokens"):
            forced(tiny_model, SOURCE, wrong)


def test_a_typed_translation_has_a_trace_and_names(toy_translator: Translator) -> None:
    found = toy_translator.force("the dog sees a cat.", "der Hund sieht ein Katze.")
    assert found.text == "der Hund sieht ein Katze."
    assert found.trace.decoder is not None
    assert found.trace.decoder.weights.shape[2] == len(found.steps)
    assert found.trace.decoder.predicted_tokens == found.target_tokens
    assert found.log_prob > -3
    wrong = toy_translator.force("the dog sees a cat.", "der Baum sieht ein Katze.")
    assert wrong.log_prob < found.log_prob - 3
    with pytest.raises(InputError, match="nothing"):
        toy_translator.force("the dog sees a cat.", " ")


def test_the_three_ways_agree_in_every_preset_of_positions_and_norms() -> None:
    for fields in ({}, {"norm_order": "post"}, {"positions": "learned"}, {"positions": "sinusoidal_pad_row"}):
        found = three_ways(toy.random_model(1, **fields), SOURCE, TARGET)
        assert found.largest < 1e-5
        assert {name for pair in found.differences for name in pair} == set(WAYS)
        assert all(set(one) == {"encoder", "decoder", "cross"} for one in found.differences.values())


def test_they_agree_up_to_the_last_position() -> None:
    model = toy.random_model(2, max_length=6)
    assert three_ways(model, torch.tensor([[5, 6, 7, 8, 9, EOS_ID]]), TARGET).largest < 1e-5


class ForgetsPositions(Transformer):
    """The classic fault: with a cache, every new token is at position 0."""

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None,
        mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        return self.decoder(
            self.target_embedding(target, 0),
            memory,
            mask if cache else self._target_mask(target, 0),
            memory_mask,
            cache,
        )


class IgnoresPadding(Transformer):
    """Its encoder looks at padding, which only a batch has."""

    def encode(self, source: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().encode(source, torch.ones(1, 1, 1, 1, dtype=torch.bool))


@pytest.mark.parametrize(("broken", "odd"), [(ForgetsPositions, "cached"), (IgnoresPadding, "teacher-forced")])
def test_a_fault_in_one_way_is_found(broken: type[Transformer], odd: str) -> None:
    torch.manual_seed(0)
    found = three_ways(broken(toy.config()).eval(), SOURCE, TARGET)
    apart = {pair for pair, one in found.differences.items() if max(one.values()) > 1e-3}
    assert apart == {pair for pair in found.differences if odd in pair}


@pytest.mark.parametrize("name", available())
def test_released_checkpoints_agree(name: str) -> None:
    translator = Translator(load_checkpoint(name, "cpu"))
    found = translator.translate("He reads a book.", capture=False)
    assert agreement_of(translator, found.source_ids, found.target_ids).largest < 1e-5
