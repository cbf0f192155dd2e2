"""Leave one out: the same as a model that never saw the piece, and as one row at a time."""

from __future__ import annotations

import torch

from attenscope.attribution.alti_and_leave_one_out import (
    compute_leave_one_out,
    compute_target_values_without_pieces,
    compute_words_left_out,
)
from attenscope.attribution.methods import attribute_target, compute_target_value
from attenscope.attribution.target import Target, make_piece_target
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import parse_changes
from attenscope.network.abstract_model import shift_right
from attenscope.network.config import PAD_ID
from attenscope.runnable_model import Translation
from attenscope.text.words import SPECIAL_TOKENS, group_tokens_into_words, join_word
from attenscope.translate import Translator
from tests.model.attribution.conftest import read


def keep_all_but(count: int, *blocked: int) -> torch.Tensor:
    keep = torch.ones(1, count, dtype=torch.bool)
    keep[0, list(blocked)] = False
    return keep


def test_a_blocked_source_piece_is_as_good_as_padding(any_translator: Translator) -> None:
    """Padding is blocked in encoder and cross-attention by other code: only the blocked row itself differs."""
    if any_translator.config.positions == "sinusoidal_pad_row":
        return  # PAD has another position there
    translation = read(any_translator)
    target = make_piece_target(any_translator, translation, 2)
    source, inputs = torch.tensor([target.source_ids]), torch.tensor([target.input_ids])
    padded = source.clone()
    padded[0, 1] = PAD_ID
    with torch.no_grad():
        expected = target.value(any_translator.model(padded, inputs)[:, target.position :])
    found = compute_target_values_without_pieces(
        any_translator.model, target, keep_all_but(source.shape[1], 1), keep_all_but(len(target.prefix_tokens))
    )
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_all_at_once_is_one_at_a_time(toy_translator: Translator, toy_target: Target) -> None:
    value, source, prefix = compute_leave_one_out(toy_translator.model, toy_target)
    pieces, inputs = len(toy_target.source_ids), len(toy_target.prefix_tokens)
    for blocked in range(pieces + inputs):
        keep = keep_all_but(pieces + inputs, blocked)
        single = compute_target_values_without_pieces(
            toy_translator.model, toy_target, keep[:, :pieces], keep[:, pieces:]
        )
        torch.testing.assert_close(value - single[0], torch.cat([source, prefix])[blocked], atol=1e-4, rtol=0)


def test_a_word_is_left_out_with_all_of_its_pieces(toy_translator: Translator, toy_target: Target) -> None:
    found = compute_words_left_out(toy_translator.model, toy_target)
    pieces, inputs = len(toy_target.source_ids), len(toy_target.prefix_tokens)
    tokens, at = [*toy_target.source_tokens, *toy_target.prefix_tokens], 0
    groups = [*group_tokens_into_words(toy_target.source_tokens)]
    groups += [
        range(one.start + pieces, one.stop + pieces) for one in group_tokens_into_words(toy_target.prefix_tokens)
    ]
    for group in groups:
        if tokens[group.start] in SPECIAL_TOKENS:
            continue
        keep = keep_all_but(pieces + inputs, *group)
        single = compute_target_values_without_pieces(
            toy_translator.model, toy_target, keep[:, :pieces], keep[:, pieces:]
        )
        assert found.words[at] == join_word([tokens[one] for one in group])
        assert abs(found.without[at] - float(single[0])) < 1e-4
        at += 1
    assert at == len(found.words) == len(found.without)


def test_the_last_input_is_removed_too(toy_translator: Translator, toy_translation: Translation) -> None:
    """Another word in its place changes nothing once it is blocked, though the prediction is read at its row."""
    target = make_piece_target(toy_translator, toy_translation, 3)
    replaced = list(toy_translation.target_ids)
    replaced[2] = 20
    other = Target(
        target.source_ids,
        target.source_tokens,
        tuple(shift_right(torch.tensor(replaced[:4])).tolist()),
        target.prefix_tokens,
        target.token_ids,
        target.tokens,
    )
    keep = keep_all_but(len(target.source_ids)), keep_all_but(len(target.prefix_tokens), 3)
    first, second = (compute_target_values_without_pieces(toy_translator.model, one, *keep) for one in (target, other))
    torch.testing.assert_close(first, second)
    assert compute_target_value(toy_translator.model, target) != compute_target_value(toy_translator.model, other)


def test_open_interventions_take_part_and_cannot_undo_the_blocking(
    toy_translator: Translator, toy_target: Target
) -> None:
    model = toy_translator.model
    with apply_changes(model, parse_changes("cross.1.1:off, cross.2.2:off")):
        changed = attribute_target(toy_translator, toy_target)
    assert changed.target_value != attribute_target(toy_translator, toy_target).target_value
    keep = keep_all_but(len(toy_target.source_ids), 2), keep_all_but(len(toy_target.prefix_tokens))
    with apply_changes(model, parse_changes("mask.cross.*.*.3:allow, mask.encoder.*.*.3:allow")):
        allowed = compute_target_values_without_pieces(model, toy_target, *keep)
    torch.testing.assert_close(allowed, compute_target_values_without_pieces(model, toy_target, *keep))


def test_nothing_is_left_on_the_model(toy_translator: Translator, toy_target: Target) -> None:
    compute_leave_one_out(toy_translator.model, toy_target)
    assert not any(module._forward_hooks for module in toy_translator.model.modules())
