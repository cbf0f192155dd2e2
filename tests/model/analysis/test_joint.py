"""Source and target in one matrix."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from attenscope.analysis.flow import build_joint_attention
from attenscope.text.words import merge_map_into_words
from attenscope.trace import TraceError
from attenscope.translate import Translator


def test_blocks_lie_where_they_belong(toy_translator: Translator) -> None:
    trace = toy_translator.translate("the dog sees a cat.").trace
    assert trace.encoder is not None
    assert trace.decoder is not None
    assert trace.cross is not None
    found = build_joint_attention(trace, layer=1, head=0)
    split = found.source_length
    assert found.row_tokens == (*trace.encoder.query_tokens, *trace.decoder.query_tokens)
    assert found.predicted_tokens[split:] == trace.decoder.predicted_tokens
    np.testing.assert_array_equal(found.weights[:split, :split], trace.encoder.weights[1, 0])
    np.testing.assert_array_equal(found.weights[split:, :split], trace.cross.weights[1, 0])
    np.testing.assert_array_equal(found.weights[split:, split:], trace.decoder.weights[1, 0])
    np.testing.assert_array_equal(found.mask[split:, split:], trace.decoder.mask)
    assert not found.mask[:split, split:].any()
    assert not found.weights[~found.mask].any()
    np.testing.assert_allclose(found.weights.sum(-1), [1] * split + [2] * (len(found.weights) - split), rtol=1e-5)


def test_the_mean_over_heads(toy_translator: Translator) -> None:
    trace = toy_translator.translate("a cat finds the tree.").trace
    both = [build_joint_attention(trace, 0, head).weights for head in (0, 1)]
    np.testing.assert_allclose(build_joint_attention(trace, 0).weights, (both[0] + both[1]) / 2, rtol=1e-6)


def test_merged_into_words_rows_and_columns_need_not_be_as_many(toy_translator: Translator) -> None:
    trace = toy_translator.force("the dog sees a cat.", "der Hundekatze sieht Baumhaus.").trace
    maps: dict[str, Any] = {kind: merge_map_into_words(one, "predicted") for kind, one in trace.maps.items()}
    whole, found = build_joint_attention(trace, 0), build_joint_attention(dataclasses.replace(trace, **maps), 0)
    assert len(found.row_tokens) < len(whole.row_tokens)
    assert found.weights.shape == (len(found.row_tokens), len(found.column_tokens)) == found.mask.shape
    assert found.column_tokens[found.source_length] == "<s>"
    split = found.source_length
    np.testing.assert_allclose(found.weights.sum(-1), [1] * split + [2] * (len(found.weights) - split), rtol=1e-5)


def test_what_is_not_there_is_refused(toy_translator: Translator) -> None:
    trace = toy_translator.translate("a cat finds the tree.").trace
    for layer, head in ((2, 0), (-1, 0), (0, 2)):
        with pytest.raises(TraceError, match="layers 1 to 2 and heads 1 to 2"):
            build_joint_attention(trace, layer, head)
    with pytest.raises(TraceError, match="has not all three"):
        build_joint_attention(dataclasses.replace(trace, cross=None), 0)
