"""What looking at anybody's model costs: BERT-base captured, against transformers' own `output_attentions=True`."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from transformers import BertConfig, BertModel

from attenscope.capture.any_model.module_kinds import release_spare_memory
from attenscope.capture.attention import capture_attention
from attenscope.trace import AttentionTrace
from bench.timing import Row, seconds, side_by_side

TOKENS = 512
REPETITIONS = 9
TIME_GOAL, MEMORY_GOAL, TRACE_GOAL = 1.1, 1.2, 0.1


class Bert:
    """BERT-base of random weights, and the two ways to its attention."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = BertModel(BertConfig(attn_implementation="eager")).eval()
        self.ids = torch.randint(5, self.model.config.vocab_size, (1, TOKENS))

    def captured(self) -> AttentionTrace:
        with torch.inference_mode(), capture_attention(self.model) as capture:
            self.model(self.ids)
        return capture.trace

    def captured_first(self) -> AttentionTrace:
        release_spare_memory()
        return self.captured()

    def returned(self) -> object:
        with torch.inference_mode():
            return self.model(self.ids, output_attentions=True)


def measure() -> list[Row]:
    bert = Bert()
    ours, theirs = side_by_side(bert.captured, bert.returned, REPETITIONS, warm_up=2)
    first, again = side_by_side(bert.captured_first, bert.returned, REPETITIONS, warm_up=1)
    mine, other = _peaks_apart()
    with torch.inference_mode(), capture_attention(bert.model) as capture:
        bert.model(bert.ids)
    trace = median(seconds(lambda: capture.trace) for _ in range(REPETITIONS))
    what = f"foreign: BERT-base over {TOKENS} tokens"
    return [
        _row(f"{what}, captured into a trace / output_attentions", ours * 1e3, theirs * 1e3, "ms", TIME_GOAL),
        Row(
            f"{what}, the same in memory that is new to the process",
            f"{first * 1e3:.1f} ms",
            f"{again * 1e3:.1f} ms",
            first / again,
            "none",
            True,
        ),
        _row(f"{what}, peak memory of that", mine / 2**20, other / 2**20, "MiB", MEMORY_GOAL),
        _row(f"{what}, `.trace` of a capture / {TRACE_GOAL * 1e3:.0f} ms", trace * 1e3, TRACE_GOAL * 1e3, "ms", 1.0),
    ]


def _row(what: str, ours: float, theirs: float, unit: str, goal: float) -> Row:
    ratio = ours / theirs
    return Row(what, f"{ours:.1f} {unit}", f"{theirs:.1f} {unit}", ratio, f"at most {goal:g}", ratio <= goal)


def _peaks_apart() -> tuple[float, float]:
    """Bytes that each way takes at most, in a process that gives back at once whatever is freed.

    By itself glibc keeps what it thinks is asked for again, which moves the figure by a hundred megabytes.
    """
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(2**20)}
    command = [sys.executable, "-c", "from bench.foreign import print_peaks; print_peaks()"]
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    mine, other = said.split()[-2:]
    return float(mine), float(other)


def print_peaks() -> None:
    """Print the bytes that a capture takes at most, and those of `output_attentions`."""
    bert = Bert()
    ways = bert.captured, bert.returned
    for way in ways:
        way()
    print(*(median(_peak(way) for _ in range(3)) for way in ways))


def _peak(function: Callable[[], object]) -> int:
    """Bytes of memory by which the process grew at most while it ran, as Linux counts them."""
    gc.collect()
    release_spare_memory()
    ctypes.CDLL(None).malloc_trim(0)  # Else it grows by less than it takes: what others have freed is still there.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forgets the peak until now
    before = read_resident_bytes("VmRSS")
    kept = function()
    grown = read_resident_bytes("VmHWM") - before
    del kept
    return grown


def read_resident_bytes(name: str) -> int:
    """Return a line of what Linux says of this process's memory: VmRSS is what it has now, VmHWM the most it had."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
