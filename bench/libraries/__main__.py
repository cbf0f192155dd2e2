"""The table of the libraries: ``python -m bench.libraries [WORD ...]`` prints a line for each model.

A word chooses the cases whose library or name holds it; without words sums by library go into docs/libraries.md.
``make libraries`` installs all libraries.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bench.libraries import every_case
from bench.libraries.case import Case, Outcome, outcome
from bench.libraries.installed import version_of

PAGE = Path(__file__).parents[2] / "docs" / "libraries.md"
BEGIN, END = "<!-- libraries -->", "<!-- end of libraries -->"


def row(case: Case, found: Outcome) -> str:
    """One line of the table."""
    what = found.what.replace("|", "\\|") if found.right else f"**wrong**: {found.what}"
    named = "; ".join(case.modules)
    return f"| {case.library} | `{case.name}`{f', named `{named}`' if named else ''} | {what} | {found.held_against} |"


def summary(cases: Sequence[Case]) -> str:
    """Return what the page of the documents says of the cases: their number, and a line for each library."""
    captured = sum(bool(case.maps) for case in cases)
    refused = len(cases) - captured
    lines = [
        f"{len(cases)} cases: {captured} captured right, {refused} refused for the right reason, 0 wrong.",
        "",
        "| library | captured | refused |",
        "|---|---:|---:|",
    ]
    for library in sorted({case.library for case in cases}):
        maps = [bool(case.maps) for case in cases if case.library == library]
        lines.append(f"| {library} | {sum(maps)} | {len(maps) - sum(maps)} |")
    return "\n".join(lines)


def main(words: Sequence[str]) -> None:
    """Print a line for each case that is chosen; write the page where all were chosen, and all are right."""
    cases = [case for case in every_case() if not words or any(word in f"{case.library} {case.name}" for word in words)]
    versions = ", ".join(f"{one} {version_of(one)}" for one in dict.fromkeys(case.library for case in cases))
    print(f"With {versions}.\n\n| library | model | captured, or refused | held against |\n|---|---|---|---|")
    wrong = 0
    for case in cases:
        found = outcome(case)
        wrong += not found.right
        print(row(case, found))
    if wrong or words:
        print(f"\n{len(cases)} cases, {wrong} wrong.")
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{summary(cases)}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
