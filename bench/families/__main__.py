"""The table of the families: ``python -m bench.families [CLASS ...]`` prints it, without names writes families.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from bench.families.models import FAMILIES, Family
from bench.families.run import TOLD, Case, cases

TABLE = Path(__file__).parents[1] / "families.md"


def row(family: Family, found: Sequence[Case]) -> str:
    """One line of the table."""
    missed = [case for case in _faults(found) if not case.right]
    cells = (
        f"`{family.name}`",
        family.traits,
        "; ".join(f"{kind} {meaning}" for kind, meaning in family.meant.items()),
        ", ".join(family.kernels),
        _share(_sound(found)),
        _share(_faults(found)),
        ", ".join(dict.fromkeys(f"{case.what}: {' + '.join(case.found) or 'nothing'}" for case in missed)) or "-",
    )
    return f"| {' | '.join(cells)} |"


def _sound(found: Sequence[Case]) -> list[Case]:
    return [case for case in found if case.what in TOLD]


def _faults(found: Sequence[Case]) -> list[Case]:
    return [case for case in found if case.what not in TOLD]


def _share(found: Sequence[Case]) -> str:
    return f"{sum(case.right for case in found)}/{len(found)}"


def table(families: Sequence[Family]) -> str:
    """The whole page."""
    every = [list(cases(family)) for family in families]
    joined = [case for found in every for case in found]
    head = [
        "# Families of transformers, captured and diagnosed",
        "",
        f"Made by `python -m bench.families` with transformers {version('transformers')}: {len(families)} families,",
        "tiny, with random weights made peaked, padded at the right and at the left, by each kernel. *Sound*:",
        "diagnoses of the model as it is, told what is meant and not told, with nothing above information. *Named*:",
        "faults planted in its masks (`bench/families/planted.py`) that get their name, and their layer where they are",
        "in one.",
        "",
        f"All together: {_share(_sound(joined))} sound, {_share(_faults(joined))} named.",
        "",
        "| class | attention | meant | kernels | sound | named | not named |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *(row(family, found) for family, found in zip(families, every, strict=True))]) + "\n"


def main(names: Sequence[str]) -> None:
    """Print the table of the classes that are named, or write that of all."""
    chosen = [family for family in FAMILIES if not names or family.name in names]
    found = table(chosen)
    if not names:
        TABLE.write_text(found, encoding="utf-8")
    print(found, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
