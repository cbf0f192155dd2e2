"""Every page whose views have addresses, by its name."""

from __future__ import annotations

from model.language import to_say
from viz.ui.address import AddressPage
from viz.ui.addresses import decode, explore, heads, masks, positions, training, why

PAGES: dict[str, AddressPage] = {
    one.PAGE.name: one.PAGE for one in (explore, decode, why, heads, positions, training, masks)
}
PAGE_TITLES = {
    "explore": to_say("Explore"),
    "decode": to_say("Decode"),
    "why": to_say("Why"),
    "heads": to_say("Heads"),
    "positions": to_say("Positions"),
    "training": to_say("Training"),
    "masks": to_say("Masks"),
}
"""What people read for a page."""
