"""The diagnosis of one file of 12 layers x 12 heads x 512 x 512 weights, against reading the file with safetensors."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from attenscope.cli.diagnose import diagnose_file
from bench.apart import run_apart
from bench.timing import Row, side_by_side

LAYERS, HEADS, TOKENS = 12, 12, 512
SECONDS = 60
"""The limit for one file."""
_JUDGED = """
import sys
from attenscope.cli.diagnose import diagnose_file
assert diagnose_file(sys.argv[1], "causal").verdict == sys.argv[2]
"""
_READ = """
import sys
from safetensors.numpy import load_file
arrays = load_file(sys.argv[1])
assert arrays["weights"].any()
"""


def measure() -> list[Row]:
    """A sound file, and one in which a layer sees the future."""
    with tempfile.TemporaryDirectory() as folder:
        return [
            row for faulty in (False, True) for row in _rows(Path(folder) / f"weights-{faulty}.safetensors", faulty)
        ]


def _rows(file: Path, faulty: bool) -> list[Row]:
    save_file({"weights": _weights(faulty)}, file)
    verdict = "faulty" if faulty else "sound"

    def judged() -> None:
        found = diagnose_file(str(file), "causal").verdict
        if found != verdict:
            raise RuntimeError(f"The verdict on a {verdict} file is {found}.")

    ours, theirs = side_by_side(judged, lambda: load_file(file)["weights"].sum(), repetitions=1, warm_up=0)
    peaks = [run_apart(program, str(file), verdict)[1] for program in (_JUDGED, _READ)]
    name = f"diagnose: {LAYERS} x {HEADS} x {TOKENS} x {TOKENS}, {verdict}"
    return [
        Row(
            f"{name}: s, ours / reading and adding up the file",
            f"{ours:.1f}",
            f"{theirs:.2f}",
            ours / theirs,
            "none",
            True,
        ),
        Row(f"{name}: s, ours / the limit", f"{ours:.1f}", str(SECONDS), ours / SECONDS, "at most 1", ours <= SECONDS),
        Row(
            f"{name}: MB at most, ours / reading the file",
            f"{peaks[0]:,.0f}",
            f"{peaks[1]:,.0f}",
            peaks[0] / peaks[1],
            "none",
            True,
        ),
    ]


def _weights(faulty: bool) -> np.ndarray:
    """(L, H, Q, K) of causal attention; the last layer open where that is to be a fault."""
    random = np.random.default_rng(0)
    weights = np.empty((LAYERS, HEADS, TOKENS, TOKENS), np.float32)
    for layer in range(LAYERS):
        scores = np.exp(random.normal(0, 2, weights.shape[1:]).astype(np.float32))
        scores = scores if faulty and layer == LAYERS - 1 else np.tril(scores)
        weights[layer] = scores / scores.sum(-1, keepdims=True)
    return weights[None]
