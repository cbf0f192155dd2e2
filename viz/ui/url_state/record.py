"""What a visitor's session knows of the address."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import streamlit as st


@dataclass
class Record:
    """What parameters have in common, of one visitor."""

    page: str = ""
    """The page that was shown last."""
    arrived: bool = False
    """Whether the visitor comes from another page, or has just opened the app."""
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By name: the session's key and the text that :meth:`Parameter.hold` has written on that page."""
    owners: dict[str, Hashable] = field(default_factory=dict)
    """By key of the session: what the value belongs to."""
    in_address: dict[str, Hashable] = field(default_factory=dict)
    """By key of the session: the owner whose value stands in the address."""


def record() -> Record:
    return st.session_state.setdefault("address", Record())
