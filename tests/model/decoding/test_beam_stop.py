"""When a beam search may end: held against a search that never ends early, and against Hugging Face's generate."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attenscope.decoding.beam import BEAM_STOPS, BeamStop, beam_search
from attenscope.network.config import EOS_ID
from attenscope.network.layers import DecoderCache
from tests.model.decoding.generation import generate
from tests.model.decoding.own_ids import OwnIds
from tests.model.decoding.test_beam_search import BATCH, LIMIT, SOURCE, lively, trimmed

VOCABULARY, LONGEST = 5, 5
Ranked = list[tuple[tuple[int, ...], Any]]


@dataclass
class Table(OwnIds):
    """A toy model whose next-token distribution is a row of its own for every beginning there is."""

    logits: Tensor  # (VOCABULARY ** LONGEST, VOCABULARY)
    config = SimpleNamespace(max_length=64)

    @classmethod
    def random(cls, seed: int, sharpness: float, end: float) -> Table:
        """`end` is added to the logit of </s>."""
        chance = torch.Generator().manual_seed(seed)
        logits = sharpness * torch.randn(VOCABULARY**LONGEST, VOCABULARY, generator=chance)
        logits[:, EOS_ID] += end
        return cls(logits)

    def log_probs(self, beginning: tuple[int, ...]) -> np.ndarray:
        return self.logits[self._row(torch.tensor([[0, *beginning]]))].log_softmax(-1)[0].numpy()

    def _row(self, tokens: Tensor) -> Tensor:
        """The number (B,) of a beginning: its tokens (B, T), of which the first is <s>, as digits."""
        digits = tokens[:, 1:]
        return (digits * VOCABULARY ** torch.arange(digits.shape[1])).sum(1) + _beginnings(digits.shape[1])

    # What beam_search asks of a Transformer. The tokens decoded so far are kept as keys, so that they are reordered.

    def encode(self, source: Tensor) -> Tensor:
        return source[:, :, None].float()

    def decode(self, last: Tensor, memory: Tensor, memory_mask: Tensor | None, cache: DecoderCache) -> Tensor:
        keys, _ = cache.layers[0].self_attention.append(last[:, None, :, None], last[:, None, :, None])
        return self._row(keys[:, 0, :, 0])[:, None]

    def generator(self, rows: Tensor) -> Tensor:
        return self.logits[rows]


def _beginnings(length: int) -> int:
    """How many beginnings are shorter."""
    return (VOCABULARY**length - 1) // (VOCABULARY - 1)


def to_the_limit(model: Table, width: int, alpha: float, limit: int) -> Ranked:
    """The n best list of a search that goes on to the limit, one hypothesis at a time and without torch."""
    running: Ranked = [((), np.float32(0))]
    finished: Ranked = []
    for length in range(1, limit + 1):
        grown = [
            ((*ids, token), total + log_prob)
            for ids, total in running
            for token, log_prob in enumerate(model.log_probs(ids))
        ]
        weighed = sorted(grown, key=lambda one: -one[1])[: 2 * width]
        ends = [ids[-1] == EOS_ID or length == limit for ids, _ in weighed]
        finished += [
            (ids, total / np.float32(length**alpha))
            for (ids, total), end in zip(weighed[:width], ends[:width], strict=True)
            if end
        ]
        running = [one for one, end in zip(weighed, ends, strict=True) if not end][:width]
    return sorted(finished, key=lambda one: -one[1])[:width]


def search_beams(model: Any, width: int, alpha: float, limit: int, stop: BeamStop) -> tuple[Ranked, int]:
    """The n best list, and the steps it took."""
    steps = list(beam_search(model, SOURCE, width, alpha, limit, stop=stop))
    return [(one.token_ids, one.score) for one in steps[-1].best(0)], len(steps)


@settings(max_examples=100)
@given(
    seed=st.integers(0, 10_000),
    sharpness=st.floats(0.1, 4),
    end=st.floats(-2, 4),
    width=st.integers(1, 4),
    alpha=st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0]),
    limit=st.integers(1, LONGEST),
)
def test_the_proven_stop_finds_what_a_search_to_the_limit_finds(
    seed: int, sharpness: float, end: float, width: int, alpha: float, limit: int
) -> None:
    model = Table.random(seed, sharpness, end)
    ranked, _ = search_beams(model, width, alpha, limit, "proven")
    assert ranked == to_the_limit(model, width, alpha, limit)


def test_the_early_stop_is_sooner_and_may_miss_a_better_one() -> None:
    missed, spared = 0, 0
    for seed in range(40):
        model = Table.random(seed, sharpness=1.5, end=2.0)
        (early, fewer), (proven, more) = (search_beams(model, 2, 2.0, LONGEST, stop) for stop in ("early", "proven"))
        missed += early != proven
        spared += more - fewer
        assert fewer <= more
        assert all(one[1] <= other[1] for one, other in zip(early, proven, strict=True))
    assert missed >= 5
    assert spared >= 20


def test_without_a_length_penalty_both_stops_are_one() -> None:
    for seed in range(20):
        model = Table.random(seed, sharpness=1.5, end=1.0)
        assert search_beams(model, 3, 0.0, LONGEST, "early") == search_beams(model, 3, 0.0, LONGEST, "proven")


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0])
def test_proven_is_hugging_faces_never(width: int, alpha: float) -> None:
    for seed in range(2):
        model = lively(seed)
        settings_ = {"max_new_tokens": LIMIT, "do_sample": False, "num_beams": width, "num_return_sequences": width}
        expected = generate(model, BATCH, **settings_, length_penalty=alpha, early_stopping="never")
        *_, last = beam_search(model, BATCH, width, alpha, LIMIT)
        sequences = expected.sequences[:, 1:].view(len(BATCH), width, -1).tolist()
        for sentence, rows in enumerate(sequences):
            assert [list(one.token_ids) for one in last.best(sentence)] == [trimmed(row) for row in rows]


def test_another_stop_is_refused() -> None:
    with pytest.raises(ValueError, match="stops proven or early, not 'late'"):
        next(beam_search(lively(0), SOURCE, 2, stop="late"))  # type: ignore[arg-type]
    assert BEAM_STOPS == ("proven", "early")
