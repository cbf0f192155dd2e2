"""Every page whose views have addresses, by its name."""

from __future__ import annotations

from model.language.say import to_say

from ..url_state.page import Page
from . import decode, explore, heads, masks, positions, training, why

PAGES: dict[str, Page] = {one.PAGE.name: one.PAGE for one in (explore, decode, why, heads, positions, training, masks)}
TITLES = {
    "explore": to_say("Explore"),
    "decode": to_say("Decode"),
    "why": to_say("Why"),
    "heads": to_say("Heads"),
    "positions": to_say("Positions"),
    "training": to_say("Training"),
    "masks": to_say("Masks"),
}
"""What people read for a page."""
