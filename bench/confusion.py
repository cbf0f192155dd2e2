"""The confusion table of the mask diagnosis: ``python -m bench.confusion [cases]`` writes bench/confusion.md.

Every fault of the catalogue is made ``cases`` times broken and ``cases`` times fixed, with random sizes, lengths,
heads, number formats and scores, and random arrays left out. Two mistakes can leave the same weights: then the right
name may stand among the findings and not first, which has a column of its own.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from attenscope.gallery.fault_generators import generate_fault_case, list_fault_codes
from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.diagnosis_checks import diagnose_arrays

TABLE = Path(__file__).with_suffix(".md")


def names(code: str, broken: bool, seed: int) -> list[str]:
    """What is named above info, first cause first."""
    return [
        one.code
        for one in diagnose_arrays(normalise_arrays(generate_fault_case(code, broken, seed).arrays)).findings
        if one.severity != "info"
    ]


def row(code: str, cases: int) -> str:
    """One line of the table."""
    found = [names(code, True, seed) for seed in range(cases)]
    first = sum(one[:1] == [code] for one in found)
    also = sum(code in one[1:] for one in found)
    others = Counter(one[0] if one else "nothing" for one in found if one[:1] != [code])
    words = ", ".join(f"{other} {number}" for other, number in others.most_common()) or "-"
    alarms = sum(bool(names(code, False, seed)) for seed in range(cases))
    return f"| `{code}` | {first} | {also} | {first + also}/{cases} | {words} | {alarms}/{cases} |"


def table(cases: int) -> str:
    """The whole page."""
    head = [
        "# What the mask diagnosis names",
        "",
        f"Made by `python -m bench.confusion {cases}`: {cases} broken and {cases} fixed cases of every fault.",
        "",
        "| fault made | named first | named among others | named | named first instead | alarms on the fixed |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *(row(code, cases) for code in list_fault_codes())]) + "\n"


if __name__ == "__main__":
    TABLE.write_text(table(int(sys.argv[1]) if len(sys.argv) > 1 else 100), encoding="utf-8")
    print(TABLE.read_text(encoding="utf-8"))
