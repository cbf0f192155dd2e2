"""The travellers: visitors of the app as in `tests/browser`, at whose pages the wanderer's script looks."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import disk, household, other, page, server
from tests.journeys.stops import arrive

__all__ = ["disk", "household", "other", "page", "server"]


@pytest.fixture
def traveller(page: Page) -> Page:
    """A visitor of the app."""
    return arrive(page)


@pytest.fixture
def stranger(other: Page) -> Page:
    """Another visitor, whose browser has never seen the app."""
    return arrive(other)
