"""What the pinned requirements pull in, pinned too: ``python -m tests.constraints`` writes constraints.txt.

Versions are those of the environment that it runs in. No hashes: torch comes from whichever index has the build for a
machine, and each build has hashes of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
REQUIREMENTS = tuple(ROOT / f"requirements{name}.txt" for name in ("", "-docs", "-dev"))
HEAD = "# What the requirements pull in, pinned: python -m tests.constraints writes it.\n"


def read_pins(path: Path) -> dict[str, str]:
    """The versions that a file pins, by the canonical name of a package."""
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def list_direct_pins() -> dict[str, str]:
    return {name: version for path in REQUIREMENTS for name, version in read_pins(path).items()}


def list_pulled_in() -> dict[str, str]:
    """The versions, here, of all that the pinned requirements pull in without pinning it, by name."""
    direct = list_direct_pins()
    seen: set[tuple[str, str]] = set()
    waiting = [(name, "") for name in direct]
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting.extend(_list_needs(*one))
    return {name: version(name) for name in sorted({name for name, _ in seen} - set(direct))}


def _list_needs(name: str, extra: str) -> Iterator[tuple[str, str]]:
    """The packages, each with an extra or none, that a package with an extra needs on this machine."""
    for line in distribution(name).requires or ():
        need = Requirement(line)
        if need.marker and not need.marker.evaluate({"extra": extra}):
            continue
        try:
            distribution(need.name)
        except PackageNotFoundError:
            continue  # Another build of torch brings packages of its own.
        yield from ((canonicalize_name(need.name), one) for one in ("", *need.extras))


def format_constraints(pins: dict[str, str]) -> str:
    return HEAD + "".join(f"{name}=={version}\n" for name, version in pins.items())


if __name__ == "__main__":
    CONSTRAINTS.write_text(format_constraints(list_pulled_in()), encoding="utf-8")
