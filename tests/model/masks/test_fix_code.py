"""The line of a fix, executed on a mask in the convention it came in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.arrays import MaskWriting
from attenscope.masks.diagnosis_checks import diagnose_arrays
from attenscope.masks.fault_catalogue import FAULTS
from attenscope.masks.findings import Finding
from attenscope.masks.fix_lines import write_generic_fix_line, write_intent_fix_line
from attenscope.masks.fixes import apply_fix
from attenscope.masks.intent import find_stated_intent
from attenscope.masks.structure import parse_structure

WRITINGS: tuple[MaskWriting, ...] = ("keeps", "blocks", "added")
Q, K = 6, 8
KEEP = torch.arange(K) < torch.tensor([[K], [K - 3]])
DOCUMENT = torch.arange(K) // 4


def written(allowed: Tensor, writing: MaskWriting) -> Tensor:
    if writing == "added":
        return torch.zeros(allowed.shape).masked_fill(~allowed, float("-inf"))
    return allowed if writing == "keeps" else ~allowed


def read(mask: Tensor, writing: MaskWriting) -> Tensor:
    return mask == 0 if writing == "added" else mask if writing == "keeps" else ~mask


def run(line: str, **names: Any) -> dict[str, Any]:
    known = {"torch": torch, "Q": Q, "K": K, "key_keep": KEEP, "source_keep": KEEP, "document": DOCUMENT[None], **names}
    exec(line, known)
    return known


@pytest.mark.parametrize("writing", WRITINGS)
def test_a_fix_that_blocks_more_blocks_the_right_cells(writing: MaskWriting) -> None:
    allowed = torch.ones(2, 1, Q, K, dtype=torch.bool)
    causal = torch.ones(Q, K, dtype=torch.bool).tril(K - Q)
    columns, documents = KEEP[:, None, None, :], DOCUMENT[K - Q :, None] == DOCUMENT
    mask = written(allowed, writing)
    blocking = (
        *(("future-visible", causal), ("padding-visible", columns)),
        *(("leak", causal), ("document-leak", documents)),
    )
    for code, meant in blocking:
        fixed = run(write_generic_fix_line(code, writing), mask=mask.clone(), meant=causal)["mask"]
        assert torch.equal(read(fixed, writing), allowed & meant), code
    for code, meant in (("padding-swapped", columns), ("wrong-axis", columns), ("top-left-causal", causal)):
        assert torch.equal(read(run(write_generic_fix_line(code, writing))["mask"], writing), meant), code


@pytest.mark.parametrize("writing", WRITINGS)
def test_an_inverted_mask_is_turned_around(writing: MaskWriting) -> None:
    allowed = torch.ones(Q, K, dtype=torch.bool).tril(K - Q)
    fixed = run(write_generic_fix_line("inverted", writing), mask=written(~allowed, writing))["mask"]
    assert torch.equal(read(fixed, writing), allowed)


MEANINGS = ("causal", "causal+window:3", "window:3", "prefix:2", "causal+packed:4,4", "blocks:3", "padding")


@pytest.mark.parametrize("writing", WRITINGS)
@pytest.mark.parametrize(
    ("name", "padded"), [(name, padded) for name in MEANINGS for padded in (False, True) if padded or name != "padding"]
)
def test_a_fix_builds_what_was_meant(writing: MaskWriting, name: str, padded: bool) -> None:
    columns = KEEP[:, None, None, :] if padded else torch.tensor(True)
    meant = torch.from_numpy(parse_structure(name).build_mask(Q, K)) & columns
    whole = torch.ones(2, 1, Q, K, dtype=torch.bool)
    for code in ("leak", "over-blocked", "window-off-by-one", "future-visible"):
        line = fix_for(code, writing, name, whole, padded)
        fixed = torch.broadcast_to(run(line, mask=written(whole, writing))["mask"], (2, 1, Q, K))
        assert torch.equal(read(fixed, writing), torch.broadcast_to(meant, fixed.shape)), line


def fix_for(code: str, writing: MaskWriting, meant: str, allowed: Tensor, padded: bool = False) -> str:
    """The line for a mask in force, all of whose cells that are not as meant are concerned."""
    given = {"mask": allowed.numpy()} | ({"key_keep": KEEP.numpy()} if padded else {})
    arrays = replace(normalise_arrays(given), writing=writing)
    intent = find_stated_intent(arrays, meant)
    assert intent is not None
    return write_intent_fix_line(
        code, arrays, intent, np.broadcast_to(allowed.numpy()[:, None] ^ intent.allowed, arrays.sizes)
    )


@pytest.mark.parametrize("name", ["causal+span:3-5", "causal+window:3+span:2-7", "window:3+ahead:1", "prefix:3"])
def test_spans_and_uneven_windows_are_built_too(name: str) -> None:
    whole = torch.ones(1, 1, Q, K, dtype=torch.bool)
    for allowed in (whole, ~whole):
        fixed = run(fix_for("leak", "keeps", name, allowed), mask=allowed)["mask"]
        assert np.array_equal(np.broadcast_to(fixed.numpy(), whole.shape)[0, 0], parse_structure(name).build_mask(Q, K))


@pytest.mark.parametrize("writing", WRITINGS)
def test_fills_and_empty_rows_are_fixed_in_the_same_convention(writing: MaskWriting) -> None:
    allowed = torch.ones(Q, K, dtype=torch.bool).tril(-1)
    scores, mask = torch.randn(Q, K), written(allowed, writing)
    weights = run(write_generic_fix_line("empty-row", writing), mask=mask, weights=torch.ones(Q, K))["weights"]
    assert weights.sum(-1).tolist() == [0] + [K] * (Q - 1)
    weak = mask.masked_fill(mask < 0, -100.0) if writing == "added" else mask
    found = run(write_generic_fix_line("weak-fill", writing), mask=weak, scores=scores)
    filled = found["scores"] + found["mask"] if writing == "added" else found["scores"]
    assert torch.equal(filled.isneginf(), ~allowed)
    large = mask.masked_fill(mask < 0, -1e9) if writing == "added" else mask
    found = run(write_generic_fix_line("fill-overflow", writing), mask=large, scores=scores.half())
    assert bool((found["scores"] + (found["mask"] if writing == "added" else 0)).isfinite().all())


def test_every_code_has_a_line_in_every_convention() -> None:
    assert [
        (code, writing) for code in FAULTS for writing in WRITINGS if not write_generic_fix_line(code, writing)
    ] == []


def finding(mask: np.ndarray, blocks: bool = False, meant: str = "causal") -> Finding:
    return diagnose_arrays(normalise_arrays({"mask": mask}, blocks=blocks), meant).findings[0]


def test_a_finding_carries_the_line_for_the_mask_at_hand() -> None:
    full = np.ones((Q, Q), bool)
    assert finding(full).fix.startswith("mask = mask.bool() & torch.ones")
    assert finding(full, blocks=True).fix.startswith("mask = mask.bool() | ~torch.ones")
    assert finding(np.zeros((Q, Q), np.float32)).fix.startswith("mask = mask.masked_fill(~torch.ones")
    window = np.tri(Q, dtype=bool)
    assert "(i - j < 3)" in finding(window, meant="causal+window:3").fix
    assert "(j < 4)" in finding(np.tri(Q, dtype=bool), meant="prefix:4").fix


def test_a_mask_of_positive_infinity_is_told_so() -> None:
    mask = np.where(np.tri(Q, dtype=bool), 0, np.inf).astype(np.float32)
    (found,) = diagnose_arrays(normalise_arrays({"mask": mask}), "causal").findings
    assert (found.code, found.level) == ("fill-overflow", "certain")
    assert "+inf" in found.message
    fixed = run(found.fix, mask=torch.from_numpy(mask))["mask"]
    assert torch.equal(fixed == 0, torch.ones(Q, Q, dtype=torch.bool).tril())


def test_reversed_head_order_is_not_told_to_interleave() -> None:
    keep = np.arange(6) < np.array([[6], [4], [3]])
    heads = keep[(np.arange(2)[None, :] * 3 + np.arange(3)[:, None]) // 2][:, :, None, :]
    scores = np.random.default_rng(0).normal(size=(3, 2, 6, 6))
    weights = np.exp(np.where(heads, scores, -np.inf))
    weights /= weights.sum(-1, keepdims=True)
    (found, *_) = diagnose_arrays(
        normalise_arrays({"weights": weights, "key_keep": keep, "meant": keep[:, None, None]})
    ).findings
    assert found.code == "head-order"
    assert found.fix.startswith("mask = mask.repeat(heads, 1, 1)")


def test_a_leak_onto_padding_makes_no_encoder_causal() -> None:
    keep = np.arange(6) < np.array([[6], [4]])
    allowed = np.broadcast_to(keep[:, None, None], (2, 2, 6, 6)).copy()
    allowed[1, :, 0, 4] = True
    weights = np.exp(np.where(allowed, np.random.default_rng(0).normal(size=(2, 2, 6, 6)), -np.inf))
    arrays = normalise_arrays({"weights": weights / weights.sum(-1, keepdims=True), "key_keep": keep})
    found = diagnose_arrays(arrays)
    assert [one.code for one in found.findings][:1] == ["leak"]
    fixed = normalise_arrays(apply_fix("leak", arrays, found).arrays)
    assert ((fixed.weights > 0) == keep[:, None, None, None]).all()
