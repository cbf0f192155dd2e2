"""The parts of an attention score: their sum, and the first layer by hand."""

from __future__ import annotations

from typing import Any, cast, get_args

import numpy as np
import pytest
import torch

from attenscope.attribution.logit import split_score
from attenscope.attribution.target import AttributionError
from attenscope.runnable_model import Translation
from attenscope.trace import Kind
from attenscope.translate import Translator
from tests.model.attribution.conftest import read

KINDS = get_args(Kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_cells_sum_to_the_score(any_translator: Translator, kind: Kind) -> None:
    translation = read(any_translator)
    traced = any_translator.force(translation.source, translation.target_ids, tensors=("scores",)).trace.maps[kind]
    for layer, head, query, key in ((0, 0, 2, 1), (1, 1, 3, 0), (1, 0, 2, 2)):
        found = split_score(any_translator, translation, kind, layer, head, query, key)
        assert found.cells.sum() == pytest.approx(found.score, abs=1e-4)
        assert found.score == pytest.approx(float(traced.tensors["scores"][layer, head, query, key]), abs=1e-5)
        assert found.weight == pytest.approx(float(traced.weights[layer, head, query, key]), abs=1e-6)
        assert found.cells.shape == (len(found.query_parts), len(found.key_parts))
        rows, columns, cells = found.group_by_sublayer()
        assert cells.shape == (len(rows), len(columns))
        assert cells.sum() == pytest.approx(found.score, abs=1e-4)


def test_the_first_layer_is_words_and_positions(any_translator: Translator) -> None:
    found = split_score(any_translator, read(any_translator), "encoder", 0, 1, 1, 2)
    assert [part.name for part in found.query_parts] == ["biases", "embedding", "position"]
    if any_translator.config.norm_order == "pre":
        return
    width, model = any_translator.config.d_head, cast(Any, any_translator.model)
    attention, embedding = model.encoder.layers[0].self_attention, model.source_embedding
    ids = torch.tensor([read(any_translator).source_ids])
    with torch.no_grad():
        tokens = (embedding.table(ids) * embedding.scale)[0].double()
        position = embedding.positional_encoding(ids != 0)[0].double()
        w_q, w_k = (one.weight[width : 2 * width].double() for one in (attention.q_proj, attention.k_proj))
        by_hand = [
            [(a[1] @ w_q.T) @ (b[2] @ w_k.T) * attention.scale for b in (tokens, position)] for a in (tokens, position)
        ]
    np.testing.assert_allclose(found.cells[1:, 1:], np.array(by_hand, dtype=float), atol=1e-6)


def test_later_layers_name_the_heads_before(toy_translator: Translator, toy_translation: Translation) -> None:
    found = split_score(toy_translator, toy_translation, "cross", 1, 0, 3, 2)
    names = [part.name for part in found.query_parts]
    assert names[-1] == "layer 2 self-attention head 2"
    assert "layer 1 cross-attention head 1" in names
    assert [part.name for part in found.key_parts][-1] == "layer 2 feed-forward"


def test_a_cell_that_is_not_there(toy_translator: Translator, toy_translation: Translation) -> None:
    for place, sentence in (
        ((9, 0, 0, 0), "There is no layer 10"),
        ((0, 2, 0, 0), "There is no head 3"),
        ((0, 0, 99, 0), "There is no row 100"),
        ((0, 0, 0, 99), "There is no column 100"),
        ((0, -1, 0, 0), "There is no head 0"),
    ):
        with pytest.raises(AttributionError, match=sentence):
            split_score(toy_translator, toy_translation, "cross", *place)
