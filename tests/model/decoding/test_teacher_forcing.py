"""Teacher forcing: probabilities, ranks and candidates of a translation that is given."""

from __future__ import annotations

import pytest
import torch

from attenscope.decoding.greedy_and_sampling import decode_greedily, teacher_force
from attenscope.network.config import EOS_ID
from attenscope.network.transformer import Transformer
from attenscope.runnable_model import InputError
from attenscope.translate import Translator

SOURCE = torch.tensor([[17, 40, 9, 63, EOS_ID]])
TARGET = (20, 31, 42, 20, EOS_ID)


def test_forcing_what_was_decoded_gives_its_probabilities(tiny_model: Transformer) -> None:
    decoded = list(decode_greedily(tiny_model, SOURCE, 12))
    read = teacher_force(tiny_model, SOURCE, [step.token_id for step in decoded])
    assert [step.log_prob for step in read] == pytest.approx([step.log_prob for step in decoded], abs=1e-5)
    assert {step.rank for step in read} == {1}
    assert all(step.forced for step in read)


def test_ranks_and_candidates_by_sorting_everything(tiny_model: Transformer) -> None:
    read = teacher_force(tiny_model, SOURCE, TARGET, candidates=5)
    with torch.inference_mode():
        log_probs = tiny_model(SOURCE, torch.tensor([[2, *TARGET[:-1]]]))[0].log_softmax(-1)
    for step, row, token in zip(read, log_probs, TARGET, strict=True):
        order = row.argsort(descending=True).tolist()
        assert step.rank == order.index(token) + 1
        assert [one.token_id for one in step.candidates] == order[:5]
    assert read[-1].stopped == "eos"


def test_probabilities_do_not_know_what_comes_after(tiny_model: Transformer) -> None:
    whole, begun = teacher_force(tiny_model, SOURCE, TARGET), teacher_force(tiny_model, SOURCE, TARGET[:3])
    assert [one.log_prob for one in begun] == pytest.approx([one.log_prob for one in whole[:3]], abs=1e-6)
    assert begun[-1].stopped is None


def test_no_tokens_and_too_many_are_refused(tiny_model: Transformer) -> None:
    for wrong in ([], [7] * 65):
        with pytest.raises(ValueError, match="1 to 64 tokens"):
            teacher_force(tiny_model, SOURCE, wrong)


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
