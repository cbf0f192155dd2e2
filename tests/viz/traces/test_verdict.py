"""The verdict on the masks of an opened trace."""

from __future__ import annotations

import numpy as np

from model.trace import AttentionMap, AttentionTrace
from viz.traces.verdict import MOST_CELLS, verdict


def test_the_verdict_of_a_large_map_says_how_many_heads_it_is_of() -> None:
    size = int((MOST_CELLS / 4) ** 0.5)
    weights = np.tri(size, dtype=np.float32) / np.arange(1, size + 1, dtype=np.float32)[:, None]
    tokens = ("x",) * size
    whole = np.broadcast_to(weights, (3, 4, size, size))
    decoder = AttentionMap("decoder", whole, tokens, tokens, np.tri(size, dtype=bool))
    found = verdict(AttentionTrace(decoder=decoder), "decoder")
    assert found.coverage == "4 of 12 heads were judged; python -m model diagnose judges all."
    assert found.sentence.startswith("no contradiction (if causal was meant: ")
    assert not found.faulty
