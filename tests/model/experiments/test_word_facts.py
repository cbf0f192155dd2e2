"""What a translation rests on, word by word, worked out again from the trace and from the logit lens."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from attenscope.experiments.ablation import WordFacts, read_word_facts, teacher_force_with_changes
from attenscope.experiments.lens import LogitLens
from attenscope.interventions.changes import ModelChange, parse_changes
from attenscope.translate import Translator

SENTENCE = "the old dog sees a red cat here."


def lens_of(ranks: list[list[int]]) -> LogitLens:
    """A lens whose written tokens have these ranks, a row a place."""
    empty = np.zeros((len(ranks), len(ranks[0]), 1))
    places = ("embedding", *(f"layer {layer}" for layer in range(1, len(ranks))))
    return LogitLens(places, (), empty, empty, ("x",) * len(ranks[0]), np.array(ranks), np.zeros(np.shape(ranks)))


def test_a_token_is_decided_where_it_stays_the_most_probable() -> None:
    ranks = [[1, 9, 1, 4, 1], [1, 2, 7, 3, 1], [1, 1, 1, 2, 1], [1, 1, 1, 2, 2]]
    facts = WordFacts(("a",), np.ones((5, 1)), lens_of(ranks))
    assert [facts.find_deciding_lens_layer(at) for at in range(5)] == ["embedding", "layer 2", "layer 2", None, None]


def test_the_pieces_of_a_word_are_added_up() -> None:
    tokens = (" a", " bicy", "cle", "?", "</s>")
    facts = WordFacts(tokens, np.array([[0.1, 0.2, 0.3, 0.15, 0.25]]), lens_of([[1]]))
    found = facts.rank_source_attention_shares(0)
    assert [(one.text, one.pieces) for one in found] == [
        (" bicycle", range(1, 3)),
        ("</s>", range(4, 5)),
        ("?", range(3, 4)),
        (" a", range(1)),
    ]
    assert [one.share for one in found] == pytest.approx([0.5, 0.25, 0.15, 0.1])


@pytest.mark.parametrize(
    "changes", [(), parse_changes("cross.1.2:off, decoder.2.1:uniform")], ids=["as it is", "changed"]
)
def test_attention_counts_by_what_it_adds(toy_translator: Translator, changes: tuple[ModelChange, ...]) -> None:
    """Kobayashi et al. (2020), in loops: the norm of weight * value W_O, of every head by itself."""
    ids = toy_translator.translate(SENTENCE).target_ids
    facts = read_word_facts(toy_translator, SENTENCE, ids, changes)
    cross = teacher_force_with_changes(toy_translator, SENTENCE, ids, changes, tensors=("v",)).trace.cross
    assert cross is not None
    heads = []
    for layer in range(cross.layers):
        projection = toy_translator.model.decoder.layers[layer].get_parameter("cross_attention.out_proj.weight")
        width = projection.shape[1] // cross.heads
        for head in range(cross.heads):
            part = projection.detach().numpy()[:, head * width : (head + 1) * width].astype(np.float64)
            rows = np.zeros(cross.mask.shape)
            for query, key in np.ndindex(rows.shape):
                added = part @ cross.tensors["v"][layer, head, key].astype(np.float64)
                rows[query, key] = cross.weights[layer, head, query, key] * math.sqrt(added @ added)
            heads.append(rows / rows.sum(-1, keepdims=True))
    np.testing.assert_allclose(facts.attention, np.mean(heads, axis=0), atol=1e-5)
    np.testing.assert_allclose(facts.attention.sum(-1), 1, atol=1e-6)


def test_the_lens_is_that_of_the_changed_model(toy_translator: Translator) -> None:
    ids = toy_translator.translate(SENTENCE).target_ids
    plain, changed = (
        read_word_facts(toy_translator, SENTENCE, ids, changes).lens for changes in ((), parse_changes("cross.1.1:off"))
    )
    assert plain.places == changed.places
    assert not np.allclose(plain.target_log_probs, changed.target_log_probs)
    assert replace(plain).target_tokens == changed.target_tokens
