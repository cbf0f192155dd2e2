"""One way to keep a view in the address: every parameter is declared once, in :mod:`viz.ui.addresses`.

A declaration says how a value is written into the address and read from it. A page keeps the value in one of two ways:

- A widget takes :attr:`Parameter.binding` as arguments: Streamlit keeps the value in the address and in the session.
- The page calls :meth:`Parameter.hold`: this module does, for what a click chooses, and for a widget
  (:attr:`Parameter.storage`) whose words are not those of the address.

The session comes first: the address is read on the first look, and again when the visitor goes back or forward. Anybody
can type an address, so :func:`.page.clean_address` takes out of it what its page cannot read before any widget is made.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import streamlit as st

from ...streamlit_internals import went_through_history, write_query_parameter
from .record import record

T = TypeVar("T")
LONGEST = 2000
"""Characters of a value in the address, where its parameter does not say otherwise."""


@dataclass(frozen=True)
class Parameter(Generic[T]):
    """A name in the address, and what its text means."""

    name: str
    default: T
    """A parameter at its default is not in the address."""
    read: Callable[[str], T]
    """Text -> value; raises ValueError for a text that means nothing."""
    write: Callable[[T], str] = field(default=str, kw_only=True)
    views: tuple[str, ...] = field(default=(), kw_only=True)
    """The views of its page that it belongs to; empty for all."""
    longest: int = field(default=LONGEST, kw_only=True)
    scrubbed: bool = field(default=False, kw_only=True)
    """Whether one runs through its values, so that a change of it alone is no step of the browser's history."""
    slot: str = field(default="", kw_only=True)
    """Its key in the session, where that is not its name."""

    @property
    def key(self) -> str:
        """Where the session has the value."""
        return self.slot or self.name

    @property
    def binding(self) -> dict[str, Any]:
        """Arguments of a widget whose value Streamlit keeps in the address, and in the session across pages."""
        return {"key": self.name, "bind": "query-params", "persist_state": "session"}

    @property
    def storage(self) -> dict[str, Any]:
        """Arguments of a widget whose value :meth:`hold`, called before it, keeps in the address."""
        return {"key": self.key, "persist_state": "session"}

    def value_of(self, text: str) -> T:
        """The value that a text of the address means; the default where it means none."""
        try:
            return self._checked(text)
        except ValueError:
            return self.default

    def understands(self, texts: Sequence[str]) -> bool:
        """Whether a widget can be given these texts: of several in the address, the last counts.

        An empty text means the default, or nothing at all where a widget can be emptied.
        """
        try:
            self._checked(texts[-1])
        except ValueError:
            return False
        return True

    def get(self, of: Hashable = None) -> T:
        """The value in the session, or else in the address; `of` as in :meth:`hold`."""
        if self.key not in st.session_state:
            return self.value_in_address()
        return st.session_state[self.key] if self._belongs_to(of) else self.default

    def hold(self, options: Sequence[T] | None = None, of: Hashable = None) -> T:
        """The value, put into the session and into the address alike.

        With `options` it is one of these: the default, or the first of them, where it was another. With `of`, what it
        belongs to, as pins to their sentence, it is the default as long as another is looked at.
        """
        returned = went_through_history()
        found = self.value_in_address() if returned else self.get(of)
        default = self.default if options is None or self.default in options else options[0]
        value = found if options is None or found in options else default
        if returned or self._belongs_to(of):
            self._keep(value, of)
        record().in_address[self.key] = of
        self.show_in_address(value, default)
        return value

    def set(self, value: T, of: Hashable = None) -> None:
        """Choose a value; for callbacks. It stands in the address at once if its owner's value was held there."""
        self._keep(value, of)
        if record().in_address.get(self.key, of) == of:
            self.show_in_address(value)

    def put(self, value: T) -> None:
        """Give the widget that is bound to it a value, and the address its text; comes before the widget."""
        st.session_state[self.key], text = value, self.write(value)
        if st.query_params.get(self.name) != text:
            write_query_parameter(self.name, text)

    def reset(self) -> None:
        """Go back to the default; for callbacks."""
        self.set(self.default)

    def show_in_address(self, value: T, default: T | None = None) -> None:
        """Write a value into the address alone, unless the address says so already; nothing for the default."""
        default = self.default if default is None else default
        text = "" if value == default else self.write(value)
        record().texts[self.name] = self.key, text
        if text and st.query_params.get(self.name) != text:
            st.query_params[self.name] = text
        elif not text:
            st.query_params.pop(self.name, None)

    def value_in_address(self) -> T:
        """The value that the address names now."""
        return self.value_of(st.query_params.get(self.name, ""))

    def _belongs_to(self, of: Hashable) -> bool:
        return bool(record().owners.get(self.key, of) == of)

    def _checked(self, text: str) -> T:
        if len(text) > self.longest:
            raise ValueError(f"{self.name} is longer than {self.longest} characters.")
        return self.read(text) if text else self.default

    def _keep(self, value: T, of: Hashable) -> None:
        record().owners[self.key] = of
        if self.key not in st.session_state or st.session_state[self.key] != value:
            st.session_state[self.key] = value
