"""The mask in force is told in the words of the mask that was meant, and its fix puts the one in the other's place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attenscope.masks.diagnose import diagnose
from attenscope.masks.findings import Diagnosis
from attenscope.masks.softmax import softmax
from attenscope.masks.structure import parse_structure
from tests.model.masks.executed_fixes import execute_fixes

SEEDS = range(5)
FORMATS = (np.float16, np.float32, np.float64)


def named(found: Diagnosis) -> list[str]:
    return [one.code for one in found.findings if one.severity != "info"]


def judged(mask: np.ndarray, meant: str, seed: int, **arrays: Any) -> Diagnosis:
    """The mask alone, its weights in some format, or the meaning as an array, at random; its fixes make it sound."""
    random = np.random.default_rng(seed)
    mask = mask if mask.ndim > 2 else mask[None, None]
    shape = (len(mask), int(random.integers(1, 5)), *mask.shape[-2:])
    weights = softmax(np.where(mask, random.normal(size=shape), -np.inf))
    given = {"mask": mask} if seed % 3 == 0 else {"weights": weights.astype(FORMATS[seed % 3])}
    as_array = seed % 2 and "key_keep" not in arrays
    said: Any = parse_structure(meant).build_mask(*mask.shape[-2:]) if as_array else meant
    found = diagnose(**given, **arrays, meant=said)
    fixed, kept = execute_fixes(given | arrays | ({"meant": said} if as_array else {}), None if as_array else meant)
    assert (fixed.verdict, kept) == ("sound", True), fixed.findings
    return found


def rows_and_keys(seed: int) -> tuple[int, np.ndarray, np.ndarray]:
    size = int(np.random.default_rng(seed).integers(10, 17))
    return size, np.arange(size)[:, None], np.arange(size)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_names_and_their_difference(seed: int) -> None:
    _, i, j = rows_and_keys(seed)
    number = 3 + seed % 2
    cases = (
        ("causal", j <= i // number * number + number - 1, f"in force: causal by blocks of {number}; meant: causal"),
        ("full", j <= i, "in force: causal; meant: every key"),
        (
            "causal+window:3",
            (j <= i) & (j // 3 == i // 3),
            "in force: causal, in chunks of 3; meant: a causal window of 3",
        ),
        ("causal+chunked:4", (j <= i) & (i - j < 4), "in force: a causal window of 4; meant: causal, in chunks of 4"),
        (f"blocks:{number}", j <= i, f"in force: causal; meant: causal by blocks of {number}"),
    )
    for meant, mask, words in cases:
        found = judged(mask, meant, seed)
        assert found.verdict == "faulty"
        assert set(named(found)) <= {"leak", "over-blocked"}, meant
        assert any(words in one.message for one in found.findings), found.findings
        assert "no known pattern" not in " ".join(one.message for one in found.findings)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("sinks", [1, 2])
def test_lost_sinks_are_told(seed: int, sinks: int) -> None:
    _, i, j = rows_and_keys(seed)
    found = judged((j <= i) & (i - j < 3), f"causal+window:3+sinks:{sinks}", seed)
    assert named(found) == ["wrong-layer-pattern"]
    assert "lost" in found.findings[0].message
    assert f"(j < {sinks})" in found.findings[0].fix or found.findings[0].fix.startswith("mask = meant")


@pytest.mark.parametrize("seed", SEEDS)
def test_causal_where_all_is_meant_is_no_cross_attention(seed: int) -> None:
    _, i, j = rows_and_keys(seed)
    found = judged(j <= i, "full", seed)
    assert named(found) == ["over-blocked"]
    assert "cross" not in " ".join(one.message for one in found.findings)


def padded_steps(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """A causal mask beside left padding that queries see from one on; the padding, and that query."""
    size, i, j = rows_and_keys(seed)
    pads = 1 + seed % 3
    step = int(np.random.default_rng(seed + 100).integers(pads + 3, size))
    return (j <= i) & ((j >= pads) | (i >= step)), j >= pads, step


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("meant", [None, "causal"])
@pytest.mark.parametrize("heads", [1, 3])
def test_padding_that_later_steps_see(seed: int, meant: str | None, heads: int) -> None:
    mask, keep, step = padded_steps(seed)
    weights = softmax(np.where(mask, np.random.default_rng(seed).normal(size=(1, heads, *mask.shape)), -np.inf))
    found = diagnose(weights, key_keep=keep[None], meant=meant)
    assert (found.verdict, named(found)) == ("faulty", ["padding-visible"])
    (finding,) = (one for one in found.findings if one.severity != "info")
    assert finding.queries == tuple(range(step, len(mask)))
    assert finding.keys == tuple(np.flatnonzero(~keep))
    assert f"from query {step + 1} on" in finding.message
    fixed, kept = execute_fixes({"weights": weights, "key_keep": keep[None]}, meant)
    assert named(fixed) == []
    assert kept


@pytest.mark.parametrize("seed", SEEDS)
def test_padding_that_later_steps_see_is_told_without_the_padding(seed: int) -> None:
    mask, keep, step = padded_steps(seed)
    weights = softmax(np.where(mask, np.random.default_rng(seed).normal(size=(1, 2, *mask.shape)), -np.inf))
    found = diagnose(weights, meant="causal")
    assert (found.verdict, named(found)) == ("faulty", ["padding-visible"])
    assert found.findings[0].queries == tuple(range(step, len(mask)))
    assert found.findings[0].keys == tuple(np.flatnonzero(~keep))


@pytest.mark.parametrize("seed", SEEDS)
def test_one_cached_step_without_its_window_is_no_padding(seed: int) -> None:
    random = np.random.default_rng(seed)
    queries, keys, width = int(random.integers(1, 4)), int(random.integers(9, 15)), int(random.integers(2, 5))
    meant = parse_structure(f"causal+window:{width}").build_mask(queries, keys)
    causal = np.tri(queries, keys, keys - queries, dtype=bool)
    found = diagnose(softmax(np.where(causal, random.normal(size=(1, 2, queries, keys)), -np.inf)), meant=meant)
    assert (found.verdict, named(found)) == ("faulty", ["window-missing"])
    assert found.meaning == f"a causal window of {width}"
    sound = diagnose(softmax(np.where(meant, random.normal(size=(1, 2, queries, keys)), -np.inf)), meant=meant)
    assert sound.verdict == "sound"
