"""One way to keep a view in the address: every parameter is declared once, in :mod:`viz.ui.addresses`.

A declaration says how a value is written into the address and read from it. A page keeps the value in one of two ways:

- A widget takes :attr:`Parameter.bound` as arguments: Streamlit keeps the value in the address and in the session.
- The page calls :meth:`Parameter.hold`: this module does, for what a click chooses, and for a widget
  (:attr:`Parameter.kept`) whose words are not those of the address.

The session comes first: the address is read on the first look, and again when the visitor goes back or forward. Anybody
can type an address, so :func:`begin` takes out of it what its page cannot read before any widget is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import streamlit as st

from .streamlit_internals import remove_query_parameters, went_through_history

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
    slot: str = field(default="", kw_only=True)
    """Its key in the session, where that is not its name."""

    @property
    def key(self) -> str:
        """Where the session has the value."""
        return self.slot or self.name

    @property
    def bound(self) -> dict[str, Any]:
        """Arguments of a widget whose value Streamlit keeps in the address, and in the session across pages."""
        return {"key": self.name, "bind": "query-params", "persist_state": "session"}

    @property
    def kept(self) -> dict[str, Any]:
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
        self._show(value, default)
        return value

    def set(self, value: T, of: Hashable = None) -> None:
        """Choose a value that :meth:`hold` keeps; for callbacks."""
        self._keep(value, of)
        self._show(value, self.default)

    def reset(self) -> None:
        """Go back to the default; for callbacks."""
        self.set(self.default)

    def value_in_address(self) -> T:
        """The value that the address names now."""
        return self.value_of(st.query_params.get(self.name, ""))

    def _belongs_to(self, of: Hashable) -> bool:
        return bool(_record().owners.get(self.key, of) == of)

    def _checked(self, text: str) -> T:
        if len(text) > self.longest:
            raise ValueError(f"{self.name} is longer than {self.longest} characters.")
        return self.read(text) if text else self.default

    def _keep(self, value: T, of: Hashable) -> None:
        _record().owners[self.key] = of
        if self.key not in st.session_state or st.session_state[self.key] != value:
            st.session_state[self.key] = value

    def _show(self, value: T, default: T) -> None:
        """Write the value into the address, unless the address says so already."""
        text, record = "" if value == default else self.write(value), _record()
        record.texts[self.name] = self.key, text
        if text and st.query_params.get(self.name) != text:
            st.query_params[self.name] = text
        elif not text:
            st.query_params.pop(self.name, None)


@dataclass(frozen=True)
class Number(Parameter[T]):
    """A number between bounds, whole where they are."""

    low: float = field(kw_only=True)
    high: float = field(kw_only=True)


@dataclass(frozen=True)
class Choice(Parameter[T]):
    """One of a few options."""

    options: tuple[T, ...] = field(kw_only=True)
    labels: Mapping[T, str] = field(default_factory=dict, kw_only=True)
    """What a person reads for an option, which Streamlit writes into the address as well; an option without one is
    read as it is."""

    def label(self, option: T) -> str:
        return self.labels.get(option, str(option))


@dataclass(frozen=True)
class Several(Parameter[list[T]]):
    """Any number of values, each a text of its own in the address: ``dims=0&dims=7``."""

    def understands(self, texts: Sequence[str]) -> bool:
        """Whether any text means something: Streamlit leaves out the others."""
        return any(super(Several, self).understands([text]) for text in texts)


def number(name: str, default: Any, low: float, high: float, **more: Any) -> Number[Any]:
    """A number, whole where the bounds are; a default of None depends on what is looked at."""
    whole = isinstance(low, int) and isinstance(high, int)

    def read(text: str) -> float:
        value = float(text)
        if not (math.isfinite(value) and low <= value <= high):
            raise ValueError(f"{name} is a number from {low} to {high}.")
        return int(value) if whole else value

    return Number(name, default, read, low=low, high=high, **more)


def choice(
    name: str, options: Sequence[T], default: T | None = None, labels: Mapping[T, str] | None = None, **more: Any
) -> Choice[T]:
    """One of `options`, the first where no other is the default."""
    shown = {(labels or {}).get(option, str(option)): option for option in options}

    def read(text: str) -> T:
        if text not in shown:
            raise ValueError(f"{name} is one of {', '.join(shown)}.")
        return shown[text]

    first = options[0] if default is None else default
    return Choice(name, first, read, options=tuple(options), labels=labels or {}, **more)


def switch(name: str, default: bool = False, **more: Any) -> Parameter[bool]:
    """True or false."""

    def read(text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{name} is true or false.")
        return text.lower() == "true"

    return Parameter(name, default, read, write=lambda value: str(value).lower(), **more)


def text(name: str, default: str = "", **more: Any) -> Parameter[str]:
    """Any text up to a length."""
    return Parameter(name, default, str, **more)


@dataclass(frozen=True)
class Page:
    """What the address of a page can say."""

    name: str
    """As the file of the page is named."""
    parameters: Mapping[str, Parameter[Any]]
    view: Choice[Any] | None = None
    """The parameter that says which view of the page is shown."""

    def shown(self, address: Mapping[str, str]) -> dict[str, str]:
        """The part of an address that the view it shows can read."""
        view = self.view.value_of(address.get(self.view.name, "")) if self.view else ""
        known = {name: self.parameters[name] for name in address if name in self.parameters}
        return {name: address[name] for name, one in known.items() if not one.views or view in one.views}

    def shown_now(self) -> dict[str, str]:
        """The part of the visitor's address that the view it shows can read."""
        return self.shown(st.query_params.to_dict())


def page(name: str, *parameters: Parameter[Any], view: Choice[Any] | None = None) -> Page:
    """A page and its parameters."""
    return Page(name, {one.name: one for one in parameters}, view)


def declared(names: Mapping[str, Any]) -> tuple[Parameter[Any], ...]:
    """The parameters among the names of a module."""
    return tuple(one for one in names.values() if isinstance(one, Parameter))


def begin(page: Page) -> None:
    """Take out of the address what this page cannot read, and what another page has left in it.

    Comes before all widgets of the page.
    """
    record, address = _record(), st.query_params
    named = ((one, address.get_all(one.name)) for one in page.parameters.values())
    nonsense = [one.name for one, texts in named if texts and not one.understands(texts)]
    left = [] if record.page == page.name or went_through_history() else list(_left(page))
    remove_query_parameters(dict.fromkeys((*nonsense, *left)))
    if record.page != page.name:
        record.page, record.texts = page.name, {}


def carry(*parameters: Parameter[Any]) -> None:
    """Keep for other pages what a link has brought: Streamlit does so only once the visitor has touched the widget."""
    for one in parameters:
        if one.name in st.session_state:
            st.session_state[one.name] = st.session_state[one.name]


@dataclass
class _Record:
    """What a visitor's session knows of the address."""

    page: str = ""
    """The page that was shown last."""
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By name: the session's key and the text that :meth:`Parameter.hold` has written on that page."""
    owners: dict[str, Hashable] = field(default_factory=dict)
    """By key of the session: what the value belongs to."""


def _record() -> _Record:
    return st.session_state.setdefault("address", _Record())


def _left(page: Page) -> list[str]:
    """Names that the page before has written and that mean nothing, or something else, on this one."""
    texts = _record().texts
    here = {one.name: one.key for one in page.parameters.values()}
    return [
        name
        for name, (key, text) in texts.items()
        if text and here.get(name) != key and st.query_params.get(name) == text
    ]
