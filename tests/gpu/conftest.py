"""The device of these tests: a GPU, or what `--gpu NAME` names, so that they can be tried where there is none."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(scope="session")
def gpu(pytestconfig: pytest.Config) -> torch.device:
    return torch.device(pytestconfig.getoption("--gpu"))
