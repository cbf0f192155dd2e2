"""Masks as people give them: by themselves, inverted, blocking every cell; and what must not be called sound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask

from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.arrays import DiagnosisError
from attenscope.masks.diagnose import diagnose
from attenscope.masks.diagnosis_checks import diagnose_arrays
from attenscope.masks.findings import Diagnosis
from attenscope.masks.softmax import softmax as masked_softmax

T = 8
CAUSAL = np.tril(np.ones((T, T), bool))
EYE = np.eye(T, dtype=bool)
NOTHING = np.zeros((T, T), bool)


def softmax(scores: np.ndarray) -> np.ndarray:
    return masked_softmax(scores, nan_rows=True).astype(np.float32)


def judged(named: str | None = None, kind: str = "", **raw: Any) -> Diagnosis:
    return diagnose_arrays(normalise_arrays(raw, kind), named)


def codes(found: Diagnosis) -> list[tuple[str, str]]:
    return [(one.code, one.severity) for one in found.findings if one.severity != "info"]


def additive(allowed: np.ndarray) -> np.ndarray:
    return np.where(allowed, 0, -np.inf).astype(np.float32)


@pytest.mark.parametrize("mask", [NOTHING, additive(NOTHING), np.zeros((2, 1, T, T), bool)])
@pytest.mark.parametrize("kind", ["", "encoder", "decoder"])
def test_a_mask_that_blocks_everything_is_not_sound(mask: np.ndarray, kind: str) -> None:
    assert codes(judged(mask=mask, kind=kind))[0] == ("empty-row", "error")


def test_a_sample_in_which_no_query_has_a_key_is_named_unless_it_is_all_padding() -> None:
    keep = np.array([[True] * T, [True] * 3 + [False] * 5])
    scores = np.random.default_rng(0).normal(size=(2, 4, T, T))
    turned = np.where(~keep[:, None, None], scores, -np.inf)
    weights = np.nan_to_num(softmax(turned))
    (found,) = (one for one in judged(weights=weights, mask=~keep[:, None, None], kind="encoder").findings[:1])
    assert (found.code, found.sample) == ("empty-row", 0)
    assert "no query may attend to any key" in found.message
    assert codes(judged(weights=weights, key_keep=keep, kind="encoder"))[0] == ("inverted", "error")
    rest = np.zeros((1, T), bool)
    padded = np.where(np.concatenate([keep[:1], rest])[:, None, None], scores, -np.inf)
    sound = judged(weights=np.nan_to_num(softmax(padded)), key_keep=np.concatenate([keep[:1], rest]), kind="encoder")
    assert sound.sound


def test_a_batch_without_a_real_token_is_refused() -> None:
    with pytest.raises(DiagnosisError, match="True means a real token"):
        normalise_arrays({"weights": np.full((2, 4, T, T), 1 / T, np.float32), "key_keep": np.zeros((2, T), bool)})


@pytest.mark.parametrize("fill", [-1e4, -1e9])
@pytest.mark.parametrize("length", [6, 10, 32])
@pytest.mark.parametrize("given", [("weights",), ("weights", "mask"), ("mask",)])
@pytest.mark.parametrize("named", [None, "causal"])
def test_a_finite_mask_upside_down(fill: float, length: int, given: tuple[str, ...], named: str | None) -> None:
    """Its last row is blocked as a whole, and an ordinary softmax all the same."""
    scores = np.random.default_rng(length).normal(size=(2, length, length)).astype(np.float32)
    mask = (np.tril(np.ones((length, length))) * fill).astype(np.float32)
    raw: dict[str, Any] = {"weights": softmax(scores + mask), "mask": mask}
    found = judged(named, **{name: raw[name] for name in given})
    assert codes(found) == [("inverted", "error" if named else "warning")]
    assert found.verdict == ("faulty" if named else "question")


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (CAUSAL.T, ["inverted"]),
        (~CAUSAL, ["inverted"]),
        (CAUSAL[:, ::-1], ["leak", "over-blocked"]),
        (~EYE, ["future-visible", "diagonal-blocked"]),
        (np.tril(np.ones((T, T), bool), 1), ["future-visible"]),
        (EYE, ["over-blocked"]),
        (np.eye(T, k=-1, dtype=bool) | EYE, ["over-blocked"]),
    ],
)
@pytest.mark.parametrize("form", ["boolean", "additive"])
def test_a_mask_by_itself_beside_causal(mask: np.ndarray, expected: list[str], form: str) -> None:
    """A boolean mask holds no fill that could be weak, and its zeros are no rounding."""
    found = judged("causal", mask=mask if form == "boolean" else additive(mask))
    assert [code for code, _ in codes(found)] == expected


def test_exchanged_triangles_are_named_as_such() -> None:
    (found,) = judged("causal", mask=CAUSAL.T).findings
    assert "tril and triu are exchanged" in found.message
    assert found.fix.startswith("mask = mask.mT")


@pytest.mark.parametrize(
    ("mask", "code", "words"),
    [
        (CAUSAL.T, "inverted", "triu in place of tril"),
        (np.tril(np.ones((T, T), bool), 1), "future-visible", "1 key ahead"),
    ],
)
def test_a_mask_that_is_rarely_intended_gets_a_warning_where_nothing_is_stated(
    mask: np.ndarray, code: str, words: str
) -> None:
    (found,) = judged(mask=mask).findings
    assert (found.code, found.severity) == (code, "warning")
    assert words in found.message
    window = np.abs(np.subtract.outer(np.arange(T), np.arange(T))) <= 1
    for usual in (CAUSAL, window, np.ones((T, T), bool)):
        assert judged(mask=usual).sound


def test_a_row_that_is_nan_in_spite_of_its_keys_is_no_fault_of_the_mask() -> None:
    weights = softmax(np.where(CAUSAL, np.random.default_rng(0).normal(size=(T, T)), -np.inf)).astype(np.float16)
    weights[3] = np.nan
    (found,) = judged(weights=weights, mask=CAUSAL).findings
    assert found.queries == (3,)
    assert "the row of a query that has keys is NaN" in found.message
    assert "masked_fill" not in found.fix
    mask = CAUSAL.copy()
    mask[3] = False
    (found,) = judged("causal", weights=weights, mask=mask).findings
    assert "no key to attend to" in found.message


@pytest.mark.parametrize("size", [4, 128])
def test_a_block_mask_is_opened_to_its_cells(size: int) -> None:
    def window(b: torch.Tensor, h: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return (q >= k) & (q - k < 3)

    made = create_block_mask(window, 1, 1, 9, 9, device="cpu", BLOCK_SIZE=size)
    assert diagnose(mask=made, meant="causal+window:3").verdict == "sound"
    assert diagnose(mask=made, meant="causal").verdict == "faulty"
    documents = torch.tensor([0, 0, 0, 1, 1, 1, 1, 2, 2])
    packed = create_block_mask(lambda b, h, q, k: documents[q] == documents[k], 1, 1, 9, 9, device="cpu")
    assert diagnose(mask=packed, meant="cu_seqlens:0,3,7,9").verdict == "sound"
    with pytest.raises(DiagnosisError, match="mask_mod cannot be evaluated"):
        diagnose(mask=made[0], meant="causal")
