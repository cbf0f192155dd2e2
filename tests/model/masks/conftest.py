"""What the tests of the diagnosis share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def own_draws(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test draws the same numbers whichever tests of its module ran before it."""
    if hasattr(request.module, "RANDOM"):
        monkeypatch.setattr(request.module, "RANDOM", np.random.default_rng(0))
