"""Numbers as they are printed."""

from __future__ import annotations

import pytest

from viz.figures.labels import percent


@pytest.mark.parametrize(
    ("share", "printed"),
    [(0, "0%"), (1e-12, "<0.1%"), (0.0004999, "<0.1%"), (0.0006, "0.1%"), (0.0512, "5.1%"), (0.1, "10%"), (1, "100%")],
)
def test_what_is_not_zero_does_not_read_so(share: float, printed: str) -> None:
    assert percent(share) == printed
