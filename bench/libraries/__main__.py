"""The table of the libraries: ``python -m bench.libraries [WORD ...]`` prints it, without words writes libraries.md.

A word chooses the cases whose library or name holds it. ``make libraries`` installs all libraries.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bench.libraries import every_case
from bench.libraries.case import Case, Outcome, outcome
from bench.libraries.installed import version_of

TABLE = Path(__file__).parents[1] / "libraries.md"


def row(case: Case, found: Outcome) -> str:
    """One line of the table."""
    what = found.what.replace("|", "\\|") if found.right else f"**wrong**: {found.what}"
    named = "; ".join(case.modules)
    return f"| {case.library} | `{case.name}`{f', named `{named}`' if named else ''} | {what} | {found.held_against} |"


def table(cases: Sequence[Case]) -> str:
    """The whole page."""
    found = [outcome(case) for case in cases]
    captured = sum(bool(case.maps) and one.right for case, one in zip(cases, found, strict=True))
    refused = sum(not case.maps and one.right for case, one in zip(cases, found, strict=True))
    libraries = dict.fromkeys(case.library for case in cases)
    versions = ", ".join(f"{library} {version_of(library)}" for library in libraries)
    head = [
        "# Models of other libraries",
        "",
        f"Made by `python -m bench.libraries` with {versions}.",
        "",
        "Tiny models with random weights, and all-MiniLM-L6-v2 with its trained ones, each run once, captured and",
        "not: the outputs must be the same bit for bit. Sizes are layers x heads x queries x keys, as the case",
        "says them, not as they were captured. Every weight of every sample is held against *its softmaxes*, which",
        "the run gave to torch below Python, fused attention computed anew from its queries and keys, within 1e-5;",
        "and against *what it returns* where the library returns weights. A model is refused for the reason that",
        "the case gives.",
        "",
        f"{len(cases)} cases: {captured} captured right, {refused} refused for the right reason, "
        f"{len(cases) - captured - refused} wrong.",
        "",
        "| library | model | captured, or refused | held against |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *(row(case, one) for case, one in zip(cases, found, strict=True))]) + "\n"


def main(words: Sequence[str]) -> None:
    """Print the table of the cases that are chosen, or write that of all."""
    cases = [case for case in every_case() if not words or any(word in f"{case.library} {case.name}" for word in words)]
    found = table(cases)
    if not words:
        TABLE.write_text(found, encoding="utf-8")
    print(found, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
