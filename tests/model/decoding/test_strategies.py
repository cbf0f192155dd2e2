"""Sampling, forced beginnings and forbidden sequences, against Hugging Face's own processors and generate."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LogitsProcessorList
from transformers.generation.logits_process import (
    NoBadWordsLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from attenscope.decoding.greedy_and_sampling import (
    GREEDY_STRATEGY,
    Constraints,
    Sampling,
    Strategy,
    decode_by_sampling,
    decode_greedily,
)
from attenscope.network.config import BOS_ID, EOS_ID
from attenscope.network.transformer import Transformer
from tests import toy
from tests.model.decoding.generation import generate

SOURCE = torch.tensor([[17, 40, 9, 63, EOS_ID]])
LIMIT = 12


def varied(seed: int = 0) -> Transformer:
    """Random weights that do not merely repeat what was fed in, as a tied generator's do."""
    return toy.random_model(seed, shared_embedding=False, tied_generator=False)


def ids(steps: object) -> list[int]:
    return [step.token_id for step in steps]  # type: ignore[attr-defined]


@given(
    seed=st.integers(0, 1000),
    temperature=st.floats(0.2, 3.0),
    top_k=st.integers(0, 60),
    top_p=st.floats(0.05, 1.0),
)
def test_the_distribution_is_that_of_hugging_face(seed: int, temperature: float, top_k: int, top_p: float) -> None:
    logits = torch.randn(50, generator=torch.Generator().manual_seed(seed)) * 3
    warpers = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
    if top_k:
        warpers.append(TopKLogitsWarper(top_k))
    if top_p < 1:
        warpers.append(TopPLogitsWarper(top_p))
    none_written: Any = torch.zeros(1, 1, dtype=torch.long)
    scores: Any = logits[None]
    expected = warpers(none_written, scores)[0].softmax(0)
    found = Sampling(temperature, top_k, top_p).distribution(logits.log_softmax(0))
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-4)


def test_top_p_by_hand() -> None:
    logits = torch.tensor([0.5, 0.2, 0.2, 0.1]).log()
    torch.testing.assert_close(Sampling(top_p=0.5).distribution(logits), torch.tensor([1.0, 0, 0, 0]))
    torch.testing.assert_close(Sampling(top_p=0.6).distribution(logits)[0], torch.tensor(0.5 / 0.7))


def test_the_most_probable_token_is_always_left() -> None:
    logits = torch.tensor([0.4, 0.35, 0.25]).log()
    assert Sampling(top_k=1).distribution(logits).tolist() == [1, 0, 0]
    assert Sampling(top_p=0.01).distribution(logits).tolist() == [1, 0, 0]


def test_temperature_zero_is_argmax(tiny_model: Transformer) -> None:
    drawn = ids(decode_by_sampling(tiny_model, SOURCE, Sampling(0.0), torch.Generator().manual_seed(1), LIMIT))
    assert drawn == ids(decode_greedily(tiny_model, SOURCE, LIMIT))


def test_a_seed_repeats_and_others_differ(tiny_model: Transformer) -> None:
    drawn = [ids(Strategy(Sampling(2.0), seed).steps(tiny_model, SOURCE, LIMIT)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_global_chance_is_not_touched(tiny_model: Transformer) -> None:
    before = torch.random.get_rng_state()
    list(Strategy(Sampling(), 3).steps(tiny_model, SOURCE, LIMIT))
    assert torch.equal(before, torch.random.get_rng_state())


def test_drawn_tokens_follow_the_distribution() -> None:
    sampling, logits = Sampling(1.5, 4), torch.tensor([2.0, 1.0, 0.5, 0.0, -1.0]).log_softmax(0)
    probabilities, generator = sampling.distribution(logits), torch.Generator().manual_seed(0)
    drawn = torch.tensor([sampling.draw(probabilities, generator) for _ in range(4000)]).bincount(minlength=5) / 4000
    spread = 4 * (probabilities * (1 - probabilities) / 4000).sqrt()
    assert ((drawn - probabilities).abs() <= spread).all()


@pytest.mark.parametrize(
    "wrong", [{"temperature": -0.1}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.1}], ids=lambda one: next(iter(one))
)
def test_impossible_sampling_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="not"):
        Sampling(**wrong)  # type: ignore[arg-type]


def test_greedy_is_that_of_hugging_face() -> None:
    for seed in range(3):
        model = varied(seed)
        expected = generate(model, SOURCE, max_new_tokens=LIMIT, do_sample=False, num_beams=1).sequences[0, 1:]
        assert ids(decode_greedily(model, SOURCE, LIMIT)) == expected.tolist()


def test_forbidden_sequences_are_those_of_hugging_face() -> None:
    model = varied()
    free = ids(decode_greedily(model, SOURCE, LIMIT))
    assert len(set(free)) > 3
    for bad in ([[free[0]]], [free[1:3]], [[free[0]], free[2:4]]):
        settings: dict[str, Any] = {"max_new_tokens": LIMIT, "do_sample": False, "num_beams": 1, "bad_words_ids": bad}
        expected = generate(model, SOURCE, **settings).sequences[0, 1:].tolist()
        found = ids(decode_greedily(model, SOURCE, LIMIT, constraints=Constraints(forbidden=tuple(map(tuple, bad)))))
        assert found == expected != free


@given(data=st.data())
def test_banned_tokens_are_those_of_hugging_face(data: st.DataObject) -> None:
    token = st.integers(4, 8)
    written = data.draw(st.lists(token, min_size=1, max_size=6))
    bad = data.draw(st.lists(st.lists(token, min_size=1, max_size=3), min_size=1, max_size=3))
    scores = torch.zeros(1, 12)
    processor = NoBadWordsLogitsProcessor(bad, eos_token_id=torch.tensor([EOS_ID]))
    expected = processor(torch.tensor([[BOS_ID, *written]]), scores)[0]
    found = Constraints(forbidden=tuple(map(tuple, bad))).apply(scores[0], written)
    assert torch.equal(found, expected)


def test_a_prefix_is_written_and_gone_on_from(tiny_model: Transformer) -> None:
    prefix = (20, 31, 42)
    steps = list(decode_greedily(tiny_model, SOURCE, LIMIT, constraints=Constraints(prefix)))
    assert tuple(step.token_id for step in steps[:3]) == prefix
    assert [step.forced for step in steps[:4]] == [True, True, True, False]
    expected = generate(
        tiny_model,
        SOURCE,
        decoder_input_ids=torch.tensor([[BOS_ID, *prefix]]),
        max_new_tokens=LIMIT - 3,
        do_sample=False,
        num_beams=1,
    ).sequences[0, 1:]
    assert ids(steps) == expected.tolist()


def test_a_forced_token_goes_before_a_forbidden_one(tiny_model: Transformer) -> None:
    constraints = Constraints((20,), ((20,),))
    found = ids(decode_greedily(tiny_model, SOURCE, LIMIT, constraints=constraints))
    assert found[0] == 20
    assert 20 not in found[1:]


def test_candidates_tell_rank_what_is_forbidden_and_what_it_is_drawn_with(tiny_model: Transformer) -> None:
    free = next(decode_greedily(tiny_model, SOURCE, LIMIT))
    best, second = free.candidates[:2]
    assert free.rank == 1
    step = next(decode_greedily(tiny_model, SOURCE, LIMIT, constraints=Constraints(forbidden=((best.token_id,),))))
    assert (step.token_id, step.rank) == (second.token_id, 2)
    assert [one.forbidden for one in step.candidates[:2]] == [True, False]
    assert step.candidates[0].log_prob == best.log_prob
    drawn = next(Strategy(Sampling(0.5, 3)).steps(tiny_model, SOURCE, LIMIT)).candidates
    shares = [one.drawn for one in drawn]
    assert sum(share or 0 for share in shares) == pytest.approx(1)
    assert shares[3:] == [0] * len(shares[3:])
    ratio = math.exp(2 * (drawn[0].log_prob - drawn[1].log_prob))
    assert (shares[0] or 0) / (shares[1] or 1) == pytest.approx(ratio, rel=1e-4)


def test_the_default_strategy_is_greedy(tiny_model: Transformer) -> None:
    assert ids(GREEDY_STRATEGY.steps(tiny_model, SOURCE, LIMIT)) == ids(decode_greedily(tiny_model, SOURCE, LIMIT))
    assert GREEDY_STRATEGY.name == "greedy"


@pytest.mark.parametrize("temperature", [1e-39, 1e-7, 0.0])
def test_next_to_no_temperature_is_none(temperature: float) -> None:
    chances = Sampling(temperature).distribution(torch.tensor([-1.0, 2.0, 1.9]))
    assert chances.tolist() == [0, 1, 0]


@pytest.mark.parametrize("temperature", [math.nan, math.inf, -0.1])
def test_what_is_no_temperature_is_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match="temperature is a number of 0 or above"):
        Sampling(temperature)


def test_a_translation_asked_to_be_long_ends_with_the_last_position(tiny_model: Transformer) -> None:
    endless = Strategy(constraints=Constraints(forbidden=((EOS_ID,),)))
    source = torch.tensor([[5, 6, 3]])
    most = tiny_model.config.max_length
    assert len(list(endless.steps(tiny_model, source, 10 * most))) == most - 1
    for none in (0, -1):
        with pytest.raises(ValueError, match="at least 1 token"):
            list(endless.steps(tiny_model, source, none))
