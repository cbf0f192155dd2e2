"""One fill, one answer: every part of the project that reads a fill says the same of it."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from attenscope.capture.any_model.axes import AxisLayout
from attenscope.capture.any_model.kernel_weights import compute_fused_attention, read_softmax_attention
from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.arrays import guess_role
from attenscope.masks.conventions import CONVENTIONS, mask_from_boolean, mask_to_boolean
from attenscope.masks.diagnose import diagnose
from attenscope.masks.softmax import is_blocked, softmax
from attenscope.network.preset_adapters import convert_additive_mask
from attenscope.viz.figures.figure_style import LIGHT, Look
from attenscope.viz.figures.masks import plot_mask_pipeline
from attenscope.viz.masks.judge import build_attention_stages
from attenscope.viz.masks.pictures import HeadSlice

FILLS = [-1e3, -5e3, -1e4, -1e9, float(np.finfo(np.float16).min), float(np.finfo(np.float32).min), -math.inf]
CAUSAL = np.tri(4, dtype=bool)
SCORES = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
ADDED = [name for name, convention in CONVENTIONS.items() if convention.values == "added"]


def by_threshold(mask: np.ndarray) -> np.ndarray:
    return ~is_blocked(mask)


def by_tensor(mask: np.ndarray) -> np.ndarray:
    return (~is_blocked(torch.from_numpy(mask))).numpy()


def by_conventions(mask: np.ndarray) -> np.ndarray:
    answers = [mask_to_boolean(mask, name)[0, 0] for name in ADDED]
    assert all(np.array_equal(answer, answers[0]) for answer in answers)
    return answers[0]


def by_generated_code(mask: np.ndarray) -> np.ndarray:
    answers = []
    for name in ADDED:
        shape = mask_from_boolean(CAUSAL[None, None], name).shape
        names: dict[str, Any] = {"torch": torch, "given": torch.from_numpy(mask).expand(shape), "batch": 1, "heads": 1}
        exec(CONVENTIONS[name].undo, names)
        answers.append(names["mask"].numpy()[0, 0])
    assert all(np.array_equal(answer, answers[0]) for answer in answers)
    return answers[0]


def by_diagnosis(mask: np.ndarray) -> np.ndarray:
    allowed = normalise_arrays({"mask": mask}).mask
    assert allowed is not None
    return allowed[0, 0, 0]


def by_captured_arguments(mask: np.ndarray) -> np.ndarray:
    states = torch.ones(1, 1, 4, 2)
    return compute_fused_attention(states, states, states, torch.from_numpy(mask), layout=AxisLayout()).allowed.numpy()[
        0, 0
    ]


def by_captured_scores(mask: np.ndarray) -> np.ndarray:
    scores = torch.from_numpy(mask)[None, None]
    return read_softmax_attention(scores, scores.softmax(-1), AxisLayout()).allowed.numpy()[0, 0]


def by_presets(mask: np.ndarray) -> np.ndarray:
    return convert_additive_mask(torch.from_numpy(mask)).numpy()


def by_pictures(mask: np.ndarray) -> np.ndarray:
    """Cells of the steps that have no colour of their own: the blocked ones."""
    nothing = np.zeros(4, bool)
    weights = np.where(CAUSAL, 0.25, 0).astype(np.float32)
    call = HeadSlice(
        meant=None,
        allowed=CAUSAL,
        bias=mask,
        scores=None,
        masked=mask,
        weights=weights,
        rounded=nothing,
        idle=nothing,
        generated=False,
        raw_mask=None,
        reader="sdpa",
    )
    figure = plot_mask_pipeline(build_attention_stages(call, 0.0), "", Look(LIGHT))
    return ~np.isnan(next(trace for trace in figure.data if trace.name == "After the mask").z)


READERS = [
    by_threshold,
    by_tensor,
    by_conventions,
    by_generated_code,
    by_diagnosis,
    by_captured_arguments,
    by_captured_scores,
    by_presets,
    by_pictures,
]


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("reader", READERS)
def test_every_fill_blocks_wherever_it_is_read(reader: Callable[[np.ndarray], np.ndarray], fill: float) -> None:
    mask = np.where(CAUSAL, 0, fill).astype(np.float32)
    np.testing.assert_array_equal(reader(mask), CAUSAL)


@pytest.mark.parametrize("reader", [one for one in READERS if one is not by_presets])
def test_a_position_bias_blocks_nowhere(reader: Callable[[np.ndarray], np.ndarray]) -> None:
    bias = np.where(CAUSAL, 0, np.arange(16).reshape(4, 4) - 999).astype(np.float32)
    assert reader(bias).all()


def test_presets_refuse_what_neither_keeps_nor_blocks() -> None:
    with pytest.raises(ValueError, match="shift the scores"):
        convert_additive_mask(torch.tensor([0.0, -999.0]))


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_number_format_of_the_fill_does_not_matter(fill: float, dtype: str) -> None:
    with np.errstate(over="ignore"):  # -1e9 becomes -inf in float16
        assert is_blocked(np.array(fill).astype(dtype))
    assert is_blocked(torch.tensor(fill).to(getattr(torch, dtype)))


@pytest.mark.parametrize("fill", FILLS)
def test_an_array_gets_the_same_role_and_the_same_diagnosis_with_every_fill(fill: float) -> None:
    mask, masked = (np.where(CAUSAL, values, fill).astype(np.float32) for values in (0, SCORES))
    assert guess_role(mask).role == "mask added"
    assert guess_role(masked).role == "masked_scores"
    right, plain = softmax(np.where(CAUSAL, SCORES, -np.inf)), softmax(SCORES)
    assert diagnose(right, masked_scores=masked, meant="causal").sound
    assert diagnose(right, scores=SCORES, mask=mask, meant="causal").sound
    assert [one.code for one in diagnose(plain, mask=mask, meant="causal").findings] == ["mask-ignored"]


def test_nan_does_not_block() -> None:
    assert not is_blocked(np.array(np.nan))
    assert not is_blocked(torch.tensor(math.nan))


def test_the_threshold_loads_no_torch() -> None:
    code = "import sys, attenscope.masks.softmax, attenscope.masks.conventions; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
