"""`python -m bench.folders`: every kind of folder opened as the pages do, into bench/live.md."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import torch

from bench.folders.kinds import KINDS, FolderKind
from bench.folders.run import TOKENS, TOLERANCE, Outcome, judge_folder, make_folder

TABLE = Path(__file__).parents[1] / "live.md"
HEAD = """# Folders of transformers, run live

Made by `python -m bench.folders` with transformers {version}: {all} kinds of folders, tiny, with random
weights. Each is opened as the pages open it, {tokens} tokens are decoded by their own functions with a cache,
and every weight and every log-probability is held against `output_attentions=True` and `generate` of the same
folder loaded by transformers alone: within {tolerance:.0e}, or the row would not be here. Where `generate` gives a
model other positions than its own forward pass does, the pass is what counts. An encoder reads one text.

{open} open, {refused} are refused by the sentence that is shown.

| class | traits | maps: layers x heads x rows x columns | sentence of refusal, or what is said beside the maps |
|---|---|---|---|
"""


def format_row(outcome: Outcome) -> str:
    said = outcome.said or " ".join(outcome.notes)
    return f"| `{outcome.kind.name}` | {outcome.kind.traits} | {outcome.maps} | {said} |"


def format_table(outcomes: Sequence[Outcome]) -> str:
    opened = sum(not one.said for one in outcomes)
    head = HEAD.format(
        version=version("transformers"),
        all=len(outcomes),
        tokens=TOKENS,
        tolerance=TOLERANCE,
        open=opened,
        refused=len(outcomes) - opened,
    )
    return head + "\n".join(map(format_row, outcomes)) + "\n"


def judge(kind: FolderKind) -> Outcome:
    """Make, open and remove one folder."""
    with tempfile.TemporaryDirectory() as base:
        return judge_folder(kind, make_folder(kind, Path(base) / "FOLDER"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    TABLE.write_text(format_table([judge(kind) for kind in KINDS]), encoding="utf-8")
    print(TABLE)
