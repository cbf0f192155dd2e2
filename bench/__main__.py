"""`python -m bench [NAME ...]`: measure side by side and print a table; `--write` puts it into bench/README.md."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import torch

from .timing import Row

NAMES = ("capture", "decode", "greedy", "overview", "positions", "snapshots", "training", "views")
README = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- table: python -m bench --write -->\n", "<!-- end of table -->\n"
PACKAGES = ("torch", "transformers", "bertviz")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure side by side.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)}; all when none is given")
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.names) - set(NAMES):
        parser.error(f"there is no measurement {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if chosen.write and chosen.names:
        parser.error("--write needs all measurements from one run: give no names")
    rows: list[Row] = []
    for name in chosen.names or NAMES:
        rows += import_module(f"bench.{name}").measure()  # imported late: each needs packages of its own
    report = f"{machine()}\n\n{table(rows)}"
    print(report, end="")
    if chosen.write:
        README.write_text(replaced(README.read_text(encoding="utf-8"), report), encoding="utf-8")


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
    head = ("what is measured, and the ratio of what", "ours", "theirs", "ratio", "goal", "met")
    lines = [head, ("---", *["---:"] * 3, "---", "---"), *(row.cells for row in rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def replaced(text: str, report: str) -> str:
    """The text with what stands between the two marks replaced."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"bench/README.md has no place for the table: it needs the lines {BEGIN}and {END}")
    return f"{before}{BEGIN}\n{report}\n{END}{after}"


if __name__ == "__main__":
    main()
