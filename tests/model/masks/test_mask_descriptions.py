"""Masks as a capture sees them in force: none at all, one a layer, beside keys that are no tokens, and two fills."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attenscope.capture.attention import capture_attention
from attenscope.masks.diagnose import diagnose
from attenscope.masks.findings import Diagnosis
from attenscope.masks.read_files import read_array_file
from attenscope.masks.softmax import count_extra_keys
from attenscope.trace import AttentionMap, AttentionTrace

T, H = 9, 4
SCORES = torch.randn(2, H, T, T, generator=torch.Generator().manual_seed(4)) * 3
AGE = torch.arange(T)[:, None] - torch.arange(T)
CAUSAL, LOCAL, OPEN = AGE >= 0, (AGE >= 0) & (AGE < 3), AGE == AGE
RIGHT, LEFT = (
    torch.tensor([[True] * T, [True] * 5 + [False] * 4]).flip(1)
    if left
    else torch.tensor([[True] * T, [True] * 5 + [False] * 4])
    for left in (False, True)
)
ALTERNATING = "causal+window:3 / causal"


def layered(*masks: Tensor) -> dict[str, Any]:
    """Weights and masks in force (B, L, H, T, T), a mask a layer, as of a capture."""
    allowed = torch.stack([mask.expand(2, H, T, T) for mask in masks], 1)
    weights = SCORES[:, None].masked_fill(~allowed, -torch.inf).softmax(-1).nan_to_num()
    return {"weights": weights, "mask": allowed}


def codes(found: Diagnosis) -> list[str]:
    return [one.code for one in found.findings if one.severity != "info"]


@pytest.mark.parametrize("meant", ["causal", "causal+window:3", ALTERNATING])
@pytest.mark.parametrize("keep", [RIGHT, LEFT], ids=["right", "left"])
def test_a_mask_in_force_that_blocks_nothing_is_none(meant: str, keep: Tensor) -> None:
    found = diagnose(**layered(OPEN, OPEN), key_keep=keep, meant=meant, map="decoder")
    assert codes(found) == ["mask-ignored"]


def test_one_layer_without_its_mask_is_told() -> None:
    padded = CAUSAL & RIGHT[:, None, None]
    (found,) = (
        one
        for one in diagnose(**layered(padded, OPEN), key_keep=RIGHT, meant="causal").findings
        if one.severity != "info"
    )
    assert (found.code, found.layers) == ("mask-ignored", (1,))


def test_rows_of_padding_whose_windows_hold_padding_alone() -> None:
    """Each fill is added to the scores: cells blocked twice are -inf, rows without keys keep what is blocked once."""
    fill = torch.finfo(torch.float32).min
    scores = SCORES[:, None].expand(2, 2, H, T, T).clone()
    for layer, mask in enumerate((LOCAL, CAUSAL)):
        scores[:, layer] = scores[:, layer].masked_fill(~mask, fill)
    weights = (scores + torch.where(RIGHT, 0.0, fill)[:, None, None, None]).softmax(-1)
    assert codes(diagnose(weights, key_keep=RIGHT, map="decoder")) == []
    assert codes(diagnose(weights, key_keep=RIGHT, meant=ALTERNATING)) == []


def test_padding_one_token_too_long_where_two_fills_are_added() -> None:
    fill, moved = torch.finfo(torch.float32).min, LEFT & LEFT.roll(1, 1)
    moved[0] = True
    scores = SCORES[:, None].expand(2, 2, H, T, T).clone()
    for layer, mask in enumerate((LOCAL, CAUSAL)):
        scores[:, layer] = scores[:, layer].masked_fill(~mask, fill)
    weights = (scores + torch.where(moved, 0.0, fill)[:, None, None, None]).softmax(-1)
    assert codes(diagnose(weights, key_keep=LEFT, meant=ALTERNATING)) == ["mask-shifted"]


class Sink(nn.Module):
    """Two layers of causal attention with a learned sink, the second with a window."""

    def __init__(self, masks: tuple[Tensor, ...]) -> None:
        super().__init__()
        self.masks = masks
        self.self_attention = nn.ModuleList(SinkLayer(mask) for mask in masks)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        for layer in self.self_attention:
            x = x + layer(x, keep)
        return x


class SinkLayer(nn.Module):
    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.num_heads, self.mask = H, mask
        self.qk, self.sinks = nn.Linear(16, 32), nn.Parameter(torch.randn(H))

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        q, k = (one.unflatten(-1, (H, -1)).transpose(1, 2) * 3 for one in self.qk(x).chunk(2, -1))
        scores = (q @ k.mT).masked_fill(~(self.mask & keep[:, None, None]), -1e30)
        sinks = self.sinks[:, None, None].expand(len(x), -1, T, 1)
        weights = torch.cat([scores, sinks], -1).softmax(-1)[..., :-1]
        return (weights @ k).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("keep", [RIGHT, LEFT], ids=["right", "left"])
@pytest.mark.parametrize(
    ("masks", "expected"),
    [((LOCAL, CAUSAL), []), ((CAUSAL, LOCAL), ["wrong-layer-pattern"]), ((OPEN, OPEN), ["future-visible"])],
    ids=["sound", "exchanged", "open"],
)
def test_a_sink_beside_layers_in_turn(masks: tuple[Tensor, ...], expected: list[str], keep: Tensor) -> None:
    torch.manual_seed(0)
    names = [["t" if real else "<pad>" for real in row] for row in keep.tolist()]
    with torch.no_grad(), capture_attention(Sink(masks), modules={"*attention.*": "decoder"}, tokens=names) as capture:
        capture.recording.model(torch.randn(2, T, 16), keep)  # type: ignore[attr-defined]
    arrays = capture.arrays("decoder")
    assert int(arrays["captured_extra_keys"]) == 1
    assert arrays["captured_keep"].shape == (2, T)
    found = diagnose(**arrays, meant=ALTERNATING, map="decoder")
    assert codes(found) == expected
    assert "extra-mass" in [one.code for one in found.findings]


def test_which_keys_are_no_tokens() -> None:
    numbered = ["1", "2", "3"]
    assert count_extra_keys(3, [*numbered, "sink"]) == 1
    assert count_extra_keys(7, [*numbered, "bias", "zero"]) == 2
    assert count_extra_keys(3, ["the", "kitchen", "sink"]) == 0
    assert count_extra_keys(2, ["the", "kitchen", "sink"]) == 1
    assert count_extra_keys(9, ["the", "kitchen", "sink"]) == 0


def test_a_saved_trace_is_judged_by_the_masks_of_its_layers(tmp_path: Path) -> None:
    given = {name: array[0].numpy() for name, array in layered(LOCAL, CAUSAL).items()}
    names = tuple(map(str, range(T)))
    one = AttentionMap("decoder", given["weights"], names, names, given["mask"].any((0, 1)), layer_masks=given["mask"])
    AttentionTrace(decoder=one).save(tmp_path / "trace.safetensors")
    (contents,) = read_array_file(tmp_path / "trace.safetensors")
    np.testing.assert_array_equal(contents.arrays["mask"][0], given["mask"])
    arrays: dict[str, Any] = contents.arrays
    assert codes(diagnose(**arrays, meant=ALTERNATING)) == []
