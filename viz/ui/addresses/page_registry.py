"""Every page whose views have addresses, by its name."""

from __future__ import annotations

from attenscope.language import to_say
from attenscope.viz.ui.address import AddressPage
from attenscope.viz.ui.addresses import decode, explore, heads, masks, positions, training, why

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
