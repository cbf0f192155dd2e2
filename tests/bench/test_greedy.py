"""The two models of the greedy measurement are of one size and decode exactly the steps asked for."""

from __future__ import annotations

import pytest
import torch

from attenscope.decoding.greedy_and_sampling import decode_batch_greedily
from bench.greedy import STEPS, endless_marian, our_model


def test_as_many_weights() -> None:
    ours = sum(weight.numel() for weight in our_model().parameters())
    # Marian keeps its table of sinusoids among its parameters.
    theirs = sum(
        weight.numel() for name, weight in endless_marian().named_parameters() if "embed_positions" not in name
    )
    assert ours == pytest.approx(theirs, rel=2e-3)


def test_no_sentence_ends_early() -> None:
    source = torch.randint(4, 8000, (2, 5))
    assert [len(row) for row in decode_batch_greedily(our_model(), source, STEPS)] == [STEPS] * 2
