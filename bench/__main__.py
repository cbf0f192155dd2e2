"""`python -m bench [NAME ...]`: measure side by side and print a table; `--write` puts it into bench/README.md."""

from __future__ import annotations

import argparse
import os
import platform
import re
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import torch

from bench.timing import Row

NAMES = (
    "attribution",
    "capture",
    "decode",
    "diagnose",
    "foreign",
    "gpu",
    "greedy",
    "heads",
    "hostile",
    "language",
    "live",
    "long_text",
    "overview",
    "positions",
    "retrained",
    "sentence",
    "snapshots",
    "training",
    "views",
    "visitors",
)
LONG = ("soak",)
"""Measured only when they are named; ``--minutes`` says for how long."""
README = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- table: python -m bench --write -->\n", "<!-- end of table -->\n"
PACKAGES = ("torch", "transformers", "bertviz")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure side by side.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)}, all when none is given; {', '.join(LONG)}"
    )
    parser.add_argument("--minutes", type=int, default=60, help="how long a soak takes (default 60)")
    parser.add_argument("--write", action="store_true", help="put the lines into bench/README.md's table")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.names) - {*NAMES, *LONG}:
        parser.error(f"there is no measurement {', '.join(sorted(unknown))}; there are {', '.join((*NAMES, *LONG))}")
    names = chosen.names or NAMES
    rows: list[Row] = []
    for name in names:
        measure = import_module(f"bench.{name}").measure  # imported late: each needs packages of its own
        rows += measure(chosen.minutes) if name in LONG else measure()
    print(f"{machine()}\n\n{table(rows)}", end="")
    if chosen.write:
        README.write_text(replaced(README.read_text(encoding="utf-8"), machine(), rows, names), encoding="utf-8")


def machine() -> str:
    """The machine in words, without its name."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"{cpu()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads, {platform.system()}; "
        f"Python {platform.python_version()}, {packages}."
    )


def cpu() -> str:
    """The processor's model as Linux names it, or what Python knows of it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    return _HEAD + "".join(_line(row.cells) for row in rows)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


_HEAD = _line(("what is measured, and the ratio of what", "ours", "theirs", "ratio", "goal", "met")) + _line(
    ("---", *["---:"] * 3, "---", "---")
)


def replaced(text: str, on: str, rows: Sequence[Row], names: Sequence[str]) -> str:
    """The text with the table's lines of these measurements replaced; the others must be of the same machine, `on`."""
    before, _, rest = text.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"bench/README.md has no place for the table: it needs the lines {BEGIN}and {END}")
    kept = [line for line in re.findall(r"^\| \w+[:,].*\n", old, re.MULTILINE) if _measurement(line) not in names]
    if kept and on not in old:
        raise SystemExit(f"bench/README.md is of another machine than this ({on}): measure everything, without names.")
    lines = sorted([*kept, *(_line(row.cells) for row in rows)], key=_measurement)
    return f"{before}{BEGIN}\n{on}\n\n{_HEAD}{''.join(lines)}\n{END}{after}"


def _measurement(line: str) -> str:
    """Which measurement a line of the table is of: its first word."""
    return re.split(r"\W+", line)[1]


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Stopped."))  # so that a measurement ends what it has started
    main()
