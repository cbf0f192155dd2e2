"""Masks under the names and in the shapes of their libraries, the same at every door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attenscope.cli.diagnose import diagnose_file
from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.arrays import ARGUMENT_ROLES, DiagnosisError, guess_role
from attenscope.masks.diagnose import diagnose
from attenscope.masks.softmax import softmax

CAUSAL = np.tri(6, dtype=bool)
REAL = np.arange(6) < np.array([[6], [4]])
RANDOM = np.random.default_rng(0)


def weights(allowed: np.ndarray, *shape: int) -> np.ndarray:
    return softmax(np.where(allowed, RANDOM.normal(size=shape), -np.inf))


PADDED = weights(REAL[:, None, None], 2, 3, 6, 6)


def given(name: str, array: np.ndarray) -> dict[str, Any]:
    return {name: array}


@pytest.mark.parametrize("name", ["key_padding_mask", "src_key_padding_mask", "encoder_padding_mask"])
def test_padding_that_blocks_where_it_is_true(name: str, tmp_path: Path) -> None:
    assert diagnose(PADDED, meant="padding", **given(name, ~REAL)).verdict == "sound"
    assert diagnose(PADDED, meant="padding", **given(name, REAL)).verdict == "faulty"
    for ending, write in ((".npz", np.savez), (".json", write_json)):
        path = tmp_path / f"some{ending}"
        write(path, **given(name, ~REAL), attentions=PADDED)
        assert diagnose_file(str(path), "padding").verdict == "sound"


def write_json(path: Path, **arrays: np.ndarray) -> None:
    path.write_text(json.dumps({name: array.tolist() for name, array in arrays.items()}))


def test_the_mask_of_torch_is_read_in_its_own_convention_and_fixed_in_it() -> None:
    found = diagnose(attn_mask=~CAUSAL, meant="causal")
    assert found.verdict == "sound"
    blocked = ~CAUSAL
    blocked[0, 3] = False
    (leak,) = diagnose(attn_mask=blocked, meant="causal").findings
    assert leak.fix.startswith("mask = mask.bool() | ~")


def test_a_mask_that_reads_both_ways_is_asked_about() -> None:
    checkered = np.indices((6, 6)).sum(0) % 2 == 0
    with pytest.raises(DiagnosisError, match="attn_mask could be a mask, True = "):
        diagnose(attn_mask=checkered)
    with pytest.raises(DiagnosisError, match="both read as key_keep"):
        diagnose(PADDED, key_keep=REAL, key_padding_mask=~REAL)


def test_an_unknown_name_beside_a_known_one_is_not_dropped_silently(tmp_path: Path) -> None:
    path = tmp_path / "some.npz"
    np.savez(path, weights=PADDED, key_keep=REAL, my_mask=~REAL)
    answer = diagnose_file(str(path), "padding")
    assert answer.notes == ("Not read, since the name is not known: 'my_mask'.",)
    assert json.loads(answer.as_json())["notes"] == list(answer.notes)


def test_text_beside_arrays_of_numbers_is_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "some.npz"
    np.savez(path, weights=PADDED, key_keep=REAL, meant="padding", tokens=["a", "b"])
    answer = diagnose_file(str(path), "padding")
    assert answer.verdict == "sound"
    assert answer.notes == ("Not read, since it is text: 'meant', 'tokens'.",)
    np.savez(path, PADDED, tokens=["a", "b"])  # the array has no name of its own
    assert diagnose_file(str(path), "padding").notes == ("Not read, since it is text: 'tokens'.",)
    np.savez(path, meant="padding")
    answer = diagnose_file(str(path), "padding")
    assert answer.verdict == "unreadable"
    assert "it holds <U7 values, not numbers" in answer.reason


def test_a_causal_meaning_that_is_not_for_a_map_is_said(tmp_path: Path) -> None:
    path = tmp_path / "some.npz"
    full = weights(np.ones((6, 6), bool), 1, 2, 6, 6)
    np.savez(path, **given("encoder.weights", full), **given("decoder.weights", weights(CAUSAL, 1, 2, 6, 6)))
    assert diagnose_file(str(path), "causal+window:6").notes == (
        "At 6 queries and 6 keys “causal+window:6” is the same as “causal”.",
        "--meant causal+window:6 was taken for the decoder, not for: encoder.",
    )
    np.savez(path, **given("encoder.weights", full))
    assert diagnose_file(str(path), "causal+window:4").verdict == "faulty"


@pytest.mark.parametrize("padding", [{"tgt_key_padding_mask": ~REAL}, {"key_keep": REAL}])
def test_a_mask_of_every_sample_beside_padding_of_each(padding: dict[str, Any]) -> None:
    assert diagnose(tgt_mask=~CAUSAL, meant="causal", **padding).verdict == "sound"
    added = np.where(CAUSAL, 0, -np.inf)
    assert diagnose(mask=added, meant="causal", **padding).verdict == "sound"
    assert diagnose(mask=np.ones((6, 6), bool), meant="causal", **padding).verdict == "faulty"


def test_a_batch_major_mask_of_all_heads() -> None:
    heads = np.repeat(CAUSAL & REAL[:, None], 3, 0)
    assert diagnose(mask=heads, key_keep=REAL, meant="causal").verdict == "sound"
    reversed_heads = np.tile(CAUSAL & REAL[:, None], (3, 1, 1))
    assert diagnose(mask=reversed_heads, key_keep=REAL, meant="causal").verdict == "faulty"


def test_averaged_weights_of_torch_have_no_heads() -> None:
    assert normalise_arrays({"weights": PADDED.mean(1), "key_keep": REAL}).sizes == (2, 1, 1, 6, 6)
    assert diagnose(PADDED.mean(1), key_padding_mask=~REAL, meant="padding").verdict == "sound"


def test_stacked_layers_are_known_by_the_samples_of_the_padding() -> None:
    stacked = np.stack([PADDED] * 4)
    assert normalise_arrays({"weights": stacked, "key_keep": REAL}).sizes == (2, 4, 3, 6, 6)


def test_percent_are_shares_of_a_hundred() -> None:
    assert diagnose(np.round(100 * PADDED, 1), key_keep=REAL, meant="padding").verdict == "sound"


@pytest.mark.parametrize("order", [(1, 2, 0), (0, 2, 3, 1)])
def test_heads_in_the_last_axis_are_a_question(order: tuple[int, ...]) -> None:
    turned = (PADDED[0] if len(order) == 3 else PADDED).transpose(order)
    with pytest.raises(DiagnosisError, match=r"Are the axes \(.*heads\)\? Then give weights\.transpose"):
        diagnose(turned)


def test_a_float_triangle_is_a_mask_and_no_weights() -> None:
    triangle = np.tri(6, dtype=np.float32)
    for array in (triangle, triangle[None, None]):
        assert guess_role(array).role == "mask keeps"
        found = diagnose(mask=array, meant="causal")
        assert "error" not in {one.severity for one in found.findings}
    assert guess_role(np.eye(6, dtype=np.float32)).role == "weights"
    assert guess_role(weights(CAUSAL, 6, 6)).role == "weights"


def test_one_key_ahead_in_the_weights_is_a_question() -> None:
    found = diagnose(weights(np.tri(6, k=1, dtype=bool), 1, 2, 6, 6))
    assert [(one.code, one.level) for one in found.findings] == [("future-visible", "likely")]


def test_every_name_has_a_role_or_is_read_by_its_values() -> None:
    for name, role in ARGUMENT_ROLES.items():
        array = ~REAL if role in ("key_blocks", None) else PADDED
        assert guess_role(array, name).role in (role, "key_keep", "key_blocks", "mask keeps", "mask blocks")


def test_a_mask_given_as_weights_is_refused() -> None:
    with pytest.raises(DiagnosisError, match="If this is a mask, name it mask"):
        diagnose(np.tri(6))
