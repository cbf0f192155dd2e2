"""The default model beside the weights that it was first released with: what its wider vocabulary costs.

These weights are read from the history of git; a copy of the project without it has no lines of this.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from attenscope.checkpoint.load import (
    CHECKPOINTS_FOLDER,
    CONFIG_FILE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    write_checkpoint_config,
)
from attenscope.evaluation.quality import read_phenomenon_items
from attenscope.translate import Translator
from bench.apart import run_apart
from bench.timing import Row, one_thread, side_by_side

MODEL = "everyday-en-de"
FIRST = "f122bb675bb48a0297c6914383def4e1858fcb1d"
"""The commit that released the first weights."""
SENTENCE = "When I came home last night, the children were already asleep in their warm bed."
PIECES, LIMIT = 18, 120.0
"""Of the sentence, by today's tokenizer; and the milliseconds that it may take on two cores."""
RATES, SENTENCES, STARTS = 7, 41, 9
"""Repetitions."""
START = """
import sys, time
from attenscope.translate import Translator
Translator.load(sys.argv[1], "cpu").translate(sys.argv[2])
print(time.time())
"""


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not write_first_weights(folder):
            return []
        ours, theirs = Translator.load(MODEL, "cpu"), Translator.load(folder, "cpu")
        with one_thread():
            return [*_rates(ours, theirs), *_sentence(ours, theirs), *_starts(folder)]


def write_first_weights(folder: Path) -> bool:
    """Write the checkpoint as it was first released into a folder; return whether the history has it."""
    for name in (CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_FILE):
        command = ["git", "show", f"{FIRST}:checkpoints/{MODEL}/{name}"]
        found = subprocess.run(command, cwd=CHECKPOINTS_FOLDER, capture_output=True, check=False)
        if found.returncode:
            return False
        (folder / name).write_bytes(found.stdout)
    facts = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    write_checkpoint_config(folder, facts)  # with the hash of the architecture, which was not kept then
    return True


def _rates(ours: Translator, theirs: Translator) -> list[Row]:
    """The 150 sentences by phenomenon, in tokens and, as the two have other tokens and translations, in sentences."""
    texts = [one.source for one in read_phenomenon_items(CHECKPOINTS_FOLDER / "phenomena.en-de.tsv")]
    written = [sum(map(len, one.tokenizer.encode_ids(one.translate_batch(texts)))) for one in (ours, theirs)]
    rows = []
    for what, batches in (("one by one", [[text] for text in texts]), ("all at once", [texts])):
        mine, other = side_by_side(_translating(ours, batches), _translating(theirs, batches), RATES)
        counts = {"tokens": written, "sentences": [len(texts)] * 2}
        rows += [
            _row(f"{unit}/s, {len(texts)} sentences greedily, {what}", count[0] / mine, count[1] / other, ",.0f")
            for unit, count in counts.items()
        ]
    return rows


def _translating(translator: Translator, batches: list[list[str]]) -> Callable[[], object]:
    return lambda: [translator.translate_batch(batch) for batch in batches]


def _sentence(ours: Translator, theirs: Translator) -> list[Row]:
    """One sentence by itself, and with the weights of all heads."""
    if len(ours.encode(SENTENCE).ids) != PIECES:
        raise RuntimeError(f"The sentence must have {PIECES} pieces, but has {len(ours.encode(SENTENCE).ids)}.")
    rows = []
    for capture, what in ((False, "alone"), (True, "with all weights")):
        took = side_by_side(_one(ours, capture), _one(theirs, capture), SENTENCES)
        mine, other = (1000 * one for one in took)
        what = f"ms of {PIECES} source pieces greedily, {what}"
        held = f"retrained: {what}, today's weights / the limit"
        rows += [
            _row(what, mine, other, ".0f"),
            Row(held, f"{mine:.0f}", f"{LIMIT:.0f}", mine / LIMIT, "at most 1", mine <= LIMIT),
        ]
    return rows


def _one(translator: Translator, capture: bool) -> Callable[[], object]:
    return lambda: translator.translate(SENTENCE, capture=capture)


def _starts(folder: Path) -> list[Row]:
    """Processes of their own that translate the sentence and end; which of the two goes first alternates."""
    names = (MODEL, str(folder))
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for repetition in range(STARTS):
        for name in names if repetition % 2 else reversed(names):
            runs[name].append(_start(name))
    (mine, my_peak), (other, other_peak) = ([median(one) for one in zip(*runs[name], strict=True)] for name in names)
    return [
        _row("s from the start of Python to the first translation", mine, other, ".2f"),
        _row("MB of memory until then, at most", my_peak, other_peak, ",.0f"),
    ]


def _start(name: str) -> tuple[float, float]:
    """Seconds to the first translation, and the largest resident memory in megabytes."""
    begun = time.time()
    (done,), peak = run_apart(START, name, SENTENCE)
    return float(done) - begun, peak


def _row(what: str, ours: float, theirs: float, form: str) -> Row:
    what = f"retrained: {what}, today's weights / the first"
    return Row(what, f"{ours:{form}}", f"{theirs:{form}}", ours / theirs, "none", True)
