"""Cases of a test with parameters, of which only the first few run in every sweep."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def slow_after(count: int, cases: Iterable[Any]) -> list[Any]:
    """Return the cases for ``parametrize``, a tuple for several arguments; those after the first `count` are slow."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=() if at < count else pytest.mark.slow)
        for at, case in enumerate(cases)
    ]
