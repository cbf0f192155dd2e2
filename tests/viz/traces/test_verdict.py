"""The verdict on the masks of an opened trace."""

from __future__ import annotations

import numpy as np

from attenscope.language import use_language
from attenscope.trace import AttentionMap, AttentionTrace
from attenscope.untrusted_trace import open_trace
from attenscope.viz.traces.verdict import MOST_JUDGED_CELLS, compute_verdicts, diagnose_map


def test_the_verdict_of_a_large_map_says_how_many_heads_it_is_of() -> None:
    size = int((MOST_JUDGED_CELLS / 4) ** 0.5)
    weights = np.tri(size, dtype=np.float32) / np.arange(1, size + 1, dtype=np.float32)[:, None]
    tokens = ("x",) * size
    whole = np.broadcast_to(weights, (3, 4, size, size))
    decoder = AttentionMap("decoder", whole, tokens, tokens, np.tri(size, dtype=bool))
    found = diagnose_map(AttentionTrace(decoder=decoder), "decoder")
    assert found.coverage == "4 of 12 heads were judged; python -m model diagnose judges all."
    assert found.sentence.startswith("no contradiction (if causal was meant: ")
    assert not found.is_faulty_or_unjudgeable


def test_verdicts_are_kept_for_the_language_in_which_they_are_read() -> None:
    tokens = ("x",) * 4
    weights = np.tri(4, dtype=np.float32) / np.arange(1, 5, dtype=np.float32)[:, None]
    decoder = AttentionMap("decoder", weights[None, None], tokens, tokens, np.tri(4, dtype=bool))
    opened = open_trace("causal", AttentionTrace(decoder=decoder))
    english = compute_verdicts(opened)
    assert english[0].diagnosis
    assert english[0].diagnosis.meaning == "causal"
    assert compute_verdicts(opened) is english
    with use_language("de"):
        german = compute_verdicts(opened)
    assert german[0].diagnosis
    assert german[0].diagnosis.meaning == "kausal"
