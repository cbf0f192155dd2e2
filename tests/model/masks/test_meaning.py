"""A meaning in either form, read the same at every door."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attenscope.masks.diagnose import diagnose
from attenscope.masks.rule import (
    MaskSizes,
    RuleError,
    build_layer_masks,
    build_mask,
    build_meaning_mask,
    hides_future,
    parse_meaning,
)
from attenscope.masks.softmax import softmax
from attenscope.masks.structure import CAUSAL, Structure, name_structure, parse_structure, recognise_structure

T = 8
IMAGE = np.tri(10, dtype=bool)
IMAGE[3:6, 3:6] = True


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("causal+window:3", "causal and window 3"),
        ("causal + padding", "causal & padding"),
        ("packed:3,5", "packed 3,5"),
        ("window:2", "Window 2"),
    ],
)
def test_both_forms_mean_the_same_at_every_door(short: str, long: str) -> None:
    assert parse_structure(short) == parse_structure(long)
    one, other = (build_mask(text, MaskSizes(T, T, (T,))) for text in (short, long))
    assert np.array_equal(one, other)
    mask = build_meaning_mask(long, T, T)
    keep = np.ones((1, T), bool)
    for text in (short, long):
        assert diagnose(mask=mask, meant=text, key_keep=keep).verdict == "sound"


def test_a_rule_that_is_no_single_structure_is_a_meaning_too() -> None:
    text = "causal and not window 2 or prefix 1"
    assert parse_meaning(text) is None
    assert diagnose(mask=build_meaning_mask(text, T, T), meant=text).verdict == "sound"
    assert [one.code for one in diagnose(mask=np.ones((T, T), bool), meant=text).findings] != []
    assert hides_future(text)
    assert not hides_future("window 3 or full")


@pytest.mark.parametrize("text", ["sideways", "causal and", "window"])
def test_what_is_no_meaning_gets_a_sentence(text: str) -> None:
    with pytest.raises(RuleError, match="kind of mask"):
        parse_meaning(text)


NAMES = [
    *("causal", "padding", "causal+window:3", "window:2", "prefix:2", "causal+packed:3,5"),
    *("causal+window:3+sinks:2", "causal+span:2-4+span:6-8", "causal+chunked:3", "causal+window:3+span:3-6"),
    *("ahead:2", "window:4+ahead:1", "window:3+ahead:5", "blocks:3", "blocks:2+causal+window:4", "tree:0,0,1,1,3"),
    *("causal+window:3+keys:3-4+keys:6-6", "causal+keys:1-2+packed:4,4", "prefix:3+keys:5-6+chunked:4"),
]


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_structure_reads_back(name: str) -> None:
    assert parse_structure(name_structure(parse_structure(name), T)) == parse_structure(name)


def test_a_structure_may_have_no_name() -> None:
    assert name_structure(Structure(lo=-3, hi=-1), T) == ""
    assert name_structure(Structure(hi=0, prefix=2, spans=((2, 5),)), T) == ""
    assert name_structure(CAUSAL, T) == "causal"


Q, K = np.indices((T, T))
TODAY = {
    "causal+window:3+sinks:2": (K <= Q) & ((Q - K < 3) | (K < 2)),
    "causal and window 3 and sinks 2": (K <= Q) & ((Q - K < 3) | (K < 2)),
    "causal+span:3-6": (K <= Q) | ((Q >= 2) & (Q < 6) & (K >= 2) & (K < 6)),
    "causal and span 1-2 and span 5-8": (K <= Q) | ((Q < 2) & (K < 2)) | ((Q >= 4) & (K >= 4)),
    "causal+chunked:3": (K <= Q) & (Q // 3 == K // 3),
    "causal+cu_seqlens:0,3,8": (K <= Q) & ((Q < 3) == (K < 3)),
    "position_ids:0,1,2,0,1,2,3,4": (Q < 3) == (K < 3),
    "causal+window:3+span:3-6": (Q - K < 3) & ((K <= Q) | ((Q >= 2) & (Q < 6) & (K >= 2) & (K < 6))),
    "causal+ahead:2": K <= Q + 2,
    "ahead:1+window:3": (K <= Q + 1) & (Q - K < 3),
    "blocks:3": K // 3 <= Q // 3,
    "causal and blocks 3 and window 2": (K // 3 <= Q // 3) & (Q - K < 2),
    "causal+window:2+keys:3-4": (K <= Q) & ((Q - K < 2) | (K == 2) | (K == 3)),
    "causal+window:2 and keys 1-1 and keys 4-4": (K <= Q) & ((Q - K < 2) | (K == 0) | (K == 3)),
    "causal+keys:1-2+packed:4,4": (K <= Q) & ((Q // 4 == K // 4) | (K < 2)),
    "keys:1-2+chunked:4": (Q // 4 == K // 4) | (K < 2),
    "tree:0,0,1,1": (K == Q) | ((K <= Q) & (K < 4)) | ((K == 4) & ((Q == 6) | (Q == 7))),
}


@pytest.mark.parametrize("text", TODAY)
def test_masks_of_today_are_read_at_every_door(text: str) -> None:
    np.testing.assert_array_equal(build_meaning_mask(text, T, T), TODAY[text])
    np.testing.assert_array_equal(build_mask(text, MaskSizes(T, T, (T,)))[0, 0], TODAY[text])
    np.testing.assert_array_equal(build_meaning_mask(text, 3, T), TODAY[text][-3:])
    assert diagnose(mask=TODAY[text], meant=text).verdict == "sound"
    assert diagnose(mask=np.ones((T, T), bool), meant=text).verdict == "faulty"


@pytest.mark.parametrize("name", ["causal+packed:4,6", "causal+cu_seqlens:0,4,10", "causal+window:3+packed:5,5"])
def test_packed_documents_of_a_cached_step(name: str) -> None:
    whole = build_meaning_mask(name, 10, 10)
    for queries in (1, 3, 7):
        step = whole[-queries:]
        np.testing.assert_array_equal(build_meaning_mask(name, queries, 10), step)
        assert diagnose(mask=step, meant=name).verdict == "sound"
        assert diagnose(step / step.sum(-1, keepdims=True), meant=name).verdict == "sound"


@pytest.mark.parametrize(
    "text",
    [
        *("sinks", "span 3", "span 4-2", "chunked 0", "cu_seqlens 1,3", "position_ids 1,2", "position_ids 0,2"),
        *("ahead 0", "ahead", "blocks 0", "blocks 2,3", "keys 3", "keys 0-2", "keys 4-3", "tree 1", "tree 0,0,3"),
    ],
)
def test_sizes_that_no_mask_has_are_refused(text: str) -> None:
    with pytest.raises(RuleError, match="is not a kind of mask"):
        parse_meaning(text)


def test_sinks_beside_a_window_are_recognised() -> None:
    found = recognise_structure(TODAY["causal+window:3+sinks:2"], np.ones((T, T), bool))
    assert found == Structure(-2, 0, sinks=2)
    assert found.words() == "a causal window of 3, beside the first 2 keys"


def test_layers_are_said_in_turn() -> None:
    every = build_layer_masks("causal and window 3 on odd layers, causal on even layers", 4, T, T)
    np.testing.assert_array_equal(every, build_layer_masks("causal+window:3 / causal", 4, T, T))
    np.testing.assert_array_equal(build_layer_masks("causal on even layers, else causal+window:3", 4, T, T), every)
    five = build_layer_masks("2 x causal+window:3 / causal", 6, T, T)
    np.testing.assert_array_equal(five.all((1, 2)), [False] * 6)
    np.testing.assert_array_equal([one[-1, 0] for one in five], [False, False, True] * 2)
    for wrong in ("causal on odd layers", "causal on odd layers, full on odd layers", "0 x causal / full"):
        with pytest.raises(RuleError, match="layers"):
            parse_meaning(wrong)


def test_spans_read_in_both_directions_are_no_leak() -> None:
    assert np.array_equal(Structure(hi=0, spans=((3, 6),)).build_mask(10, 10), IMAGE)
    assert "1 span read in both directions" in diagnose(mask=IMAGE, map="decoder").meaning
    assert diagnose(mask=IMAGE, map="decoder").verdict == "open"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize(
    "said", [{"meant": "causal"}, {"meant": "causal and full"}, {"map": "decoder", "meant": "causal"}]
)
def test_a_triangle_that_ends_too_late_is_told_from_none(seed: int, ahead: int, said: dict[str, str]) -> None:
    random = np.random.default_rng(seed)
    size, heads, samples = int(random.integers(5, 12)), int(random.integers(1, 4)), int(random.integers(1, 3))
    scores = random.normal(size=(samples, heads, size, size))
    late = diagnose(softmax(np.where(np.tri(size, k=ahead, dtype=bool), scores, -np.inf)), **said)
    keys = "1 key ahead" if ahead == 1 else "2 keys ahead"
    assert [one.code for one in late.findings] == ["future-visible"]
    assert f"queries see up to {keys}, as with tril({ahead}) in place of tril(0)" in late.findings[0].message
    cached = np.tri(4, size, k=size - 4 + ahead, dtype=bool)
    (found,) = diagnose(softmax(np.where(cached, scores[..., -4:, :], -np.inf)), **said).findings
    assert f"tril({size - 4 + ahead}) in place of tril({size - 4})" in found.message
    none = diagnose(softmax(scores), **said)
    assert "the causal part of the mask is missing" in none.findings[0].message


@pytest.mark.parametrize("said", [{"meant": "causal"}, {"meant": "causal", "key_keep": np.ones((1, T), bool)}])
def test_what_names_no_padding_needs_none(said: dict[str, Any]) -> None:
    scores = np.where(np.tri(T, dtype=bool), np.random.default_rng(0).normal(size=(T, T)), -np.inf)
    found = diagnose(masked_scores=scores, **said)
    assert (found.verdict, found.padding_unknown) == ("sound", False)


@pytest.mark.parametrize("meant", ["padding", "causal and padding", "causal+window:3+padding", "padding / causal"])
def test_padding_that_is_named_and_nowhere_given_is_not_called_sound(meant: str) -> None:
    random = np.random.default_rng(len(meant))
    shape = 2, 2, 1, T, T
    masks = np.broadcast_to(build_layer_masks(meant, 2, T, T)[None, :, None], shape)
    weights = softmax(np.where(masks, random.normal(size=shape), -np.inf))
    keep = np.ones((2, T), bool)
    found = diagnose(weights, meant=meant)
    assert (found.verdict, found.padding_unknown, found.findings) == ("open", True, ())
    assert [one.code for one in found.unknown].count("padding-visible") == 1
    assert found.unknown[0].text == "padding-visible (without key_keep)"
    assert diagnose(weights, meant=meant, key_keep=keep).verdict == "sound"
    keep[1, :2] = False
    assert "padding-visible" in [one.code for one in diagnose(weights, meant=meant, key_keep=keep).findings]
    assert diagnose(weights, meant=meant.replace("padding", "full")).verdict == "sound"
