"""Greedy decoding: stop rules by a model of known logits; cached, batched and plain decoding write the same."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from attenscope.checkpoint.load import CHECKPOINTS_FOLDER
from attenscope.decoding.greedy_and_sampling import (
    KERNEL_ROUNDING,
    Constraints,
    compute_length_limit,
    decode_batch_greedily,
    decode_greedily,
)
from attenscope.network.abstract_model import pad_ids, shift_right
from attenscope.network.attention import make_padding_mask
from attenscope.network.config import BOS_ID, EOS_ID, PAD_ID
from attenscope.network.layers import DecoderCache
from attenscope.network.transformer import Transformer
from attenscope.translate import Translator
from tests import toy
from tests.model.decoding.own_ids import OwnIds

V = 12


class Scripted(OwnIds):
    """Writes the script of a sentence's first id: logit 5 for the scripted token, 0 for all others."""

    def __init__(self, scripts: dict[int, list[int]], max_length: int = 50) -> None:
        self.scripts = scripts
        self.config = SimpleNamespace(max_length=max_length)
        self.fed: list[list[int]] = []

    def encode(self, source: Tensor) -> Tensor:
        self.fed = []
        return source[:, :1, None].float()

    def decode(self, target: Tensor, memory: Tensor, memory_mask: Any, mask: Any = None, cache: Any = None) -> Tensor:
        self.fed.append(target[:, -1].tolist())
        return torch.stack([memory[:, 0, 0], torch.full((len(target),), float(len(self.fed) - 1))], -1)[:, None]

    def generator(self, states: Tensor) -> Tensor:
        logits = torch.zeros(*states.shape[:-1], V)
        for row, (first, position) in zip(logits.view(-1, V), states.view(-1, 2).tolist(), strict=True):
            script = self.scripts[int(first)]
            row[script[min(int(position), len(script) - 1)]] = 5.0
        return logits


def scripted(max_length: int = 50, **scripts: list[int]) -> Any:
    return Scripted({int(name[1:]): script for name, script in scripts.items()}, max_length)


def test_stops_at_the_end_of_sentence_and_says_so() -> None:
    model = scripted(_5=[7, 8, EOS_ID, 9])
    steps = list(decode_greedily(model, torch.tensor([[5, 6, EOS_ID]])))
    assert [step.token_id for step in steps] == [7, 8, EOS_ID]
    assert [step.stopped for step in steps] == [None, None, "eos"]
    assert [step.position for step in steps] == [0, 1, 2]
    assert model.fed == [[BOS_ID], [7], [8]]


def test_stops_at_the_limit_and_says_so() -> None:
    steps = list(decode_greedily(scripted(_5=[7]), torch.tensor([[5, EOS_ID]]), max_tokens=4))
    assert [step.token_id for step in steps] == [7] * 4
    assert [step.stopped for step in steps] == [None, None, None, "length"]


def test_end_of_sentence_at_the_limit_is_an_end_of_sentence() -> None:
    steps = list(decode_greedily(scripted(_5=[7, EOS_ID]), torch.tensor([[5, EOS_ID]]), max_tokens=2))
    assert steps[-1].stopped == "eos"


def test_the_limit_is_generous_for_the_source_and_within_the_positions() -> None:
    assert compute_length_limit(scripted(), 5) == 30
    assert compute_length_limit(scripted(), 40) == 49
    assert len(list(decode_greedily(scripted(_5=[7]), torch.tensor([[5, 6, EOS_ID]])))) == 26
    assert len(list(decode_greedily(scripted(max_length=10, _5=[7]), torch.tensor([[5, 6, EOS_ID]])))) == 9


def test_log_probabilities_and_candidates_by_hand() -> None:
    step = next(iter(decode_greedily(scripted(_5=[7]), torch.tensor([[5, EOS_ID]]), candidates=3)))
    total = math.exp(5) + V - 1
    assert step.log_prob == pytest.approx(5 - math.log(total), abs=1e-6)
    assert step.candidates[0].token_id == 7
    assert [candidate.log_prob for candidate in step.candidates] == pytest.approx(
        [5 - math.log(total), -math.log(total), -math.log(total)], abs=1e-6
    )


def test_more_candidates_than_vocabulary_are_the_vocabulary() -> None:
    step = next(iter(decode_greedily(scripted(_5=[7]), torch.tensor([[5, EOS_ID]]), candidates=100)))
    assert sorted(candidate.token_id for candidate in step.candidates) == list(range(V))


def test_batch_stops_each_sentence_by_itself() -> None:
    model = scripted(_5=[7, EOS_ID, 9], _6=[8, 8, 8, EOS_ID], _7=[EOS_ID])
    source = torch.tensor([[5, EOS_ID], [6, EOS_ID], [7, EOS_ID]])
    assert decode_batch_greedily(model, source) == [[7], [8, 8, 8], []]
    assert len(model.fed) == 4
    assert decode_batch_greedily(model, source, max_tokens=2) == [[7], [8, 8], []]


def test_a_batch_keeps_to_what_must_and_may_not_be_written() -> None:
    model = scripted(_5=[9, 7, EOS_ID], _6=[9, 8, 7, 7, EOS_ID])
    source = torch.tensor([[5, EOS_ID], [6, EOS_ID]])
    limits = Constraints(prefix=(4,), forbidden=((8,), (7, 7)))
    found = decode_batch_greedily(model, source, 6, limits)
    for row, one in zip(found, source, strict=True):
        alone = [step.token_id for step in decode_greedily(model, one[None], 6, constraints=limits)]
        assert row == [token for token in alone if token != EOS_ID]
        assert row[0] == 4
        assert 8 not in row
    assert found[0] == [4, 7]


def test_batch_cuts_each_sentence_off_at_its_own_limit() -> None:
    """A short sentence in a batch with a long one is not allowed more tokens than alone."""
    model = scripted(_5=[7], _6=[8])
    source = torch.tensor([[5, EOS_ID, PAD_ID, PAD_ID, PAD_ID], [6, 9, 9, 9, EOS_ID]])
    assert [len(row) for row in decode_batch_greedily(model, source)] == [2 * 2 + 20, 2 * 5 + 20]


def uncached(model: Transformer, source: Tensor, limit: int) -> tuple[list[int], list[float]]:
    """One whole forward pass a token."""
    ids, log_probs = [BOS_ID], []
    with torch.no_grad():
        while len(ids) <= limit and (len(ids) == 1 or ids[-1] != EOS_ID):
            best = model(source, torch.tensor([ids]))[0, -1].log_softmax(-1).max(-1)
            ids.append(int(best.indices))
            log_probs.append(best.values.item())
    return ids[1:], log_probs


@pytest.mark.parametrize(
    "fields", [{}, {"positions": "sinusoidal_pad_row", "norm_order": "post"}, {"positions": "learned"}]
)
def test_cached_equals_uncached(fields: dict[str, Any]) -> None:
    model = toy.random_model(seed=3, tied_generator=False, **fields)
    for english, _ in toy.sentences(3):
        source = torch.tensor([toy.tokenizer().encode(english).ids])
        ids, log_probs = uncached(model, source, limit=15)
        steps = list(decode_greedily(model, source, max_tokens=15))
        assert [step.token_id for step in steps] == ids
        assert [step.log_prob for step in steps] == pytest.approx(log_probs, abs=1e-4)


def test_cached_equals_uncached_on_a_model_that_translates(toy_translator: Translator) -> None:
    model = toy_translator.model
    for english, german in toy.sentences(5, seed=11):
        source = torch.tensor([toy_translator.encode(english).ids])
        ids, _ = uncached(model, source, limit=30)
        assert [step.token_id for step in decode_greedily(model, source)] == ids
        assert toy_translator.tokenizer.decode(ids) == german


@pytest.mark.parametrize("seed", [0, 1])
def test_batch_equals_one_by_one_with_padding(seed: int) -> None:
    """Random weights, which seldom end a sentence: the length limits are exercised too."""
    model = toy.random_model(seed=seed, tied_generator=False)
    rows = [list(toy.tokenizer().encode(english).ids) for english, _ in toy.sentences(6, seed=seed)]
    rows += [rows[0][-2:], rows[1] * 2]
    alone = [[step.token_id for step in decode_greedily(model, torch.tensor([row]))] for row in rows]
    assert decode_batch_greedily(model, pad_ids(rows)) == [[one for one in ids if one != EOS_ID] for ids in alone]


def test_batch_equals_one_by_one_on_a_model_that_translates(toy_translator: Translator) -> None:
    pairs = toy.sentences(30, seed=12)
    together = toy_translator.translate_batch([english for english, _ in pairs])
    assert together == [toy_translator.translate(english, capture=False).text for english, _ in pairs]
    assert together == [german for _, german in pairs]


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["everyday-en-de", "everyday-zh-en", "preset-original"])
def test_a_batch_of_a_released_model_writes_the_same_within_what_the_badge_calls_rounding(name: str) -> None:
    translator = Translator.load(name, "cpu")
    language = translator.card["source_language"]
    texts = (CHECKPOINTS_FOLDER / f"sentences.{language}").read_text(encoding="utf-8").splitlines()[:24]
    rows = [list(translator.encode(text).ids) for text in texts if text.strip()]
    alone = [list(decode_greedily(translator.model, torch.tensor([row]))) for row in rows]
    assert decode_batch_greedily(translator.model, pad_ids(rows)) == [
        [step.token_id for step in steps if step.token_id != EOS_ID] for steps in alone
    ]
    written = pad_ids([[step.token_id for step in steps] for steps in alone])
    with torch.inference_mode():
        logits = translator.model(pad_ids(rows), shift_right(written, BOS_ID))
    for row, steps in zip(logits.log_softmax(-1), alone, strict=True):
        for position, step in enumerate(steps):
            assert row[position, step.token_id].item() == pytest.approx(step.log_prob, abs=KERNEL_ROUNDING)


def test_candidates_are_the_most_probable_and_the_first_is_taken(tiny_model: Transformer) -> None:
    source = torch.tensor([[5, 6, 7, EOS_ID]])
    fed = [BOS_ID]
    for step in decode_greedily(tiny_model, source, max_tokens=5, candidates=4):
        with torch.no_grad():
            log_probs = tiny_model(source, torch.tensor([fed]))[0, -1].log_softmax(-1)
        values, ids = log_probs.topk(4)
        assert [candidate.token_id for candidate in step.candidates] == ids.tolist()
        assert [candidate.log_prob for candidate in step.candidates] == pytest.approx(values.tolist(), abs=1e-4)
        assert (step.token_id, step.log_prob) == (step.candidates[0].token_id, step.candidates[0].log_prob)
        fed.append(step.token_id)


def test_a_generator_needs_no_inference_mode_around_it(tiny_model: Transformer) -> None:
    """Gradients are off while a step is made and as they were between the steps."""
    for _ in decode_greedily(tiny_model, torch.tensor([[5, EOS_ID]]), max_tokens=3):
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()


def test_two_decodings_in_turns_do_not_disturb_each_other(tiny_model: Transformer) -> None:
    """Each has its own cache; none belongs to the model."""
    sources = [torch.tensor([[5, 6, EOS_ID]]), torch.tensor([[9, 8, 7, 6, EOS_ID]])]
    alone = [[step.token_id for step in decode_greedily(tiny_model, source, max_tokens=6)] for source in sources]
    turns = zip(*(decode_greedily(tiny_model, source, max_tokens=6) for source in sources), strict=True)
    assert [list(ids) for ids in zip(*([step.token_id for step in pair] for pair in turns), strict=True)] == alone


def test_a_cached_step_feeds_one_token_only(tiny_model: Transformer) -> None:
    source = torch.tensor([[5, 6, EOS_ID]])
    with torch.no_grad():
        memory, cache = tiny_model.encode(source), DecoderCache(2)
        for length in (1, 2, 3):
            states = tiny_model.decode(torch.tensor([[7]]), memory, make_padding_mask(source, PAD_ID), cache=cache)
            assert states.shape == (1, 1, 64)
            assert cache.length == length
