"""Every page whose views have addresses, by its name."""

from __future__ import annotations

from ..url_state.page import Page
from . import decode, explore, heads, masks, positions, training, why

PAGES: dict[str, Page] = {one.PAGE.name: one.PAGE for one in (explore, decode, why, heads, positions, training, masks)}
