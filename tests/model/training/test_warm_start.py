"""Weights to begin with: the same model where the vocabulary is the same, and sensible rows where it is another."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from attenscope.checkpoint.load import unique_weights
from attenscope.network.config import SPECIAL_PIECES
from attenscope.network.transformer import Transformer
from attenscope.text.tokenizer import Tokenizer
from attenscope.training.data import copy_starting_weights
from tests import toy


def test_the_same_vocabulary_gives_the_same_model() -> None:
    start = toy.checkpoint(toy.random_model(seed=3))
    model = toy.random_model(seed=4)
    copy_starting_weights(model, start.tokenizer, start)
    given = unique_weights(start.model)
    assert all(torch.equal(tensor, given[name]) for name, tensor in unique_weights(model).items())


@pytest.mark.parametrize("shared", [True, False])
def test_rows_of_another_vocabulary_are_means_of_the_pieces_they_consist_of(shared: bool) -> None:
    fields = {"shared_embedding": shared, "tied_generator": shared}
    start = toy.checkpoint(toy.random_model(seed=3, **fields))
    sentences = [side for pair in toy.sentences(300, seed=9) for side in pair]
    tokenizer = Tokenizer.train([*sentences, "Zürich 42"], 400, byte_fallback=True)
    sizes = {"vocab_size": len(tokenizer), "target_vocab_size": len(tokenizer)}
    model = toy.random_model(seed=4, **fields, **sizes)
    before = {name: tensor.clone() for name, tensor in unique_weights(model).items()}
    copy_starting_weights(model, tokenizer, start)
    given, found = unique_weights(start.model), unique_weights(model)
    tables = [name for name in found if found[name].shape[0] == len(tokenizer)]
    assert len(tables) == (1 if shared else 3 + model.config.generator_bias)
    assert all(torch.equal(found[name], given[name]) for name in found.keys() - tables)
    kept = made = untouched = 0
    for index in range(len(SPECIAL_PIECES), len(tokenizer)):
        text = tokenizer.token(index)
        same = start.tokenizer.piece_id(text)
        letters = [start.tokenizer.piece_id(letter) for letter in text]
        for name in tables:
            row = found[name][index]
            if tokenizer.is_byte(index) or (same is None and None in letters):
                untouched += torch.equal(row, before[name][index])
            elif same is not None:
                kept += torch.equal(row, given[name][same])
            else:
                parts = [start.tokenizer.piece_id(text[:end]) for end in range(1, len(text))]
                assert any(part is not None for part in parts)
                made += not torch.equal(row, before[name][index])
    assert untouched >= 256
    assert kept > 20
    assert untouched + kept + made == (len(tokenizer) - len(SPECIAL_PIECES)) * len(tables)


def test_a_piece_of_two_old_ones_gets_their_mean() -> None:
    """By hand: " abcd" is " ab" and "cd" for a tokenizer that learned "ab cd ab cd" and "xcd"."""
    old, new = Tokenizer.train(["ab cd ab cd", "xcd"] * 20, 16), Tokenizer.train(["abcd abcd"] * 20, 13)
    start = dataclasses.replace(
        toy.checkpoint(toy.random_model(seed=3, vocab_size=16, target_vocab_size=16)), tokenizer=old
    )
    model = toy.random_model(seed=4, vocab_size=13, target_vocab_size=13)
    copy_starting_weights(model, new, start)
    table = unique_weights(start.model)["source_embedding.table.weight"]
    row = unique_weights(model)["source_embedding.table.weight"][new.piece_id(" abcd")]
    assert torch.allclose(row, (table[old.piece_id(" ab")] + table[old.piece_id("cd")]) / 2)


def test_another_architecture_is_refused_by_name() -> None:
    start = toy.checkpoint(toy.random_model(seed=3))
    model: Transformer = toy.random_model(norm_order="post")
    with pytest.raises(ValueError, match="cannot be begun with: its norm_order differ"):
        copy_starting_weights(model, start.tokenizer, start)
