"""How a view is kept in the address: parameters, their kinds, and the pages that can read them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import streamlit as st

from attenscope.language import say
from attenscope.viz.streamlit_internals import (
    is_history_navigation,
    remove_query_parameters,
    restore_stripped_query_parameters,
    unbind_query_parameters,
    write_query_parameter,
)

# The pages, and how an address is cleaned before its page is drawn.


@dataclass(frozen=True)
class AddressPage:
    """What the address of a page can say."""

    name: str
    """As the file of the page is named."""
    parameters: Mapping[str, Parameter[Any]]
    view: ChoiceParameter[Any] | None = None
    """The parameter that says which view of the page is shown."""

    @classmethod
    def build(cls, name: str, *parameters: Parameter[Any], view: ChoiceParameter[Any] | None = None) -> AddressPage:
        """A page and its parameters."""
        return cls(name, {one.name: one for one in parameters}, view)

    @property
    def history_ignored_parameter_names(self) -> list[str]:
        """Names of the parameters whose change alone is no step of the browser's history."""
        return [one.name for one in self.parameters.values() if one.scrubbed]

    @property
    def sentence_parameter_names(self) -> list[str]:
        """Names of the parameters that mean nothing for another sentence."""
        return [one.name for one in self.parameters.values() if one.of_sentence]

    def extract_view_parameters(self, address: Mapping[str, str]) -> dict[str, str]:
        """The part of an address that the view it shows can read."""
        view = self.view.value_of(address.get(self.view.name, "")) if self.view else ""
        known = {name: self.parameters[name] for name in address if name in self.parameters}
        return {name: address[name] for name, one in known.items() if not one.views or view in one.views}

    def current_view_parameters(self) -> dict[str, str]:
        """The part of the visitor's address that the view it shows can read."""
        return self.extract_view_parameters(st.query_params.to_dict())

    def previous_page_parameters(self) -> dict[str, str]:
        """What the address of another page says that this one can read, and that a callback has not changed."""
        address, state = st.query_params.to_dict(), st.session_state
        known = ((name, self.parameters[name]) for name in address if name in self.parameters)
        return {
            name: address[name]
            for name, one in known
            if one.key not in state or one.value_of(address[name]) == state[one.key]
        }


def collect_module_parameters(names: Mapping[str, Any]) -> tuple[Parameter[Any], ...]:
    """The parameters among the names of a module."""
    return tuple(one for one in names.values() if isinstance(one, Parameter))


def restore_history_entry_address() -> None:
    """After Back or Forward, read the whole address of the history entry; call it before anything reads the address."""
    if is_history_navigation():
        restore_stripped_query_parameters()


def clean_address(
    page: AddressPage, carried: Collection[Parameter[Any]] = (), held: Collection[Parameter[Any]] = ()
) -> list[Parameter[Any]]:
    """Remove from the address what this page cannot read, and what another page has left in it.

    Call it before all widgets of the page. Returns the parameters whose text was too long to be read. A view without
    any of those that are `carried` over pages hands them on: Back to it leaves them as they are. So it leaves those
    that are always `held`, never bound to a widget: a view that shows them reads the address by itself.
    """
    address, known, returned = st.query_params, get_address_record(), is_history_navigation()
    given = {name: address.get_all(name) for name in page.parameters}
    named = [(one, given[one.name]) for one in page.parameters.values() if given[one.name]]
    nonsense = [one.name for one, texts in named if not one.understands(texts)]
    too_long = [one for one, texts in named if one.name in nonsense and len(texts[-1]) > one.longest]
    left = [] if known.page == page.name or returned else list(_list_leftover_parameters(page))
    remove_query_parameters(dict.fromkeys((*nonsense, *left)))
    if returned:  # The address says what was seen there; the session, what was seen last.
        seen = any(map(is_in_address, carried))
        for one in page.parameters.values():
            if one not in held and (seen or one not in carried):
                st.session_state.pop(one.key, None)
    known.arrived = known.page != page.name
    if known.arrived:
        known.page, known.texts, known.written = page.name, {}, set()
    return too_long


def release_former_sentence(page: AddressPage, sentence: Parameter[str]) -> None:
    """Remove from the address what belongs to a sentence that gave way before anything of it was shown.

    What was shown has an owner (:meth:`Parameter.hold`). Call it after :func:`clean_address`.
    """
    known, text = get_address_record(), sentence.value_in_address()
    before, known.sentence = known.sentence, text
    if text != before and not known.arrived and not is_history_navigation():
        unheld = [one.name for one in page.parameters.values() if one.of_sentence and one.key not in st.session_state]
        remove_query_parameters(unheld)


def record_page_without_address(page: str) -> None:
    """Note that the visitor is on a page that reads nothing of the address: what is opened next is an arrival."""
    known = get_address_record()
    known.arrived = known.page != page
    known.page = page


def keep_parameters_across_pages(*parameters: Parameter[Any]) -> None:
    """Keep for other pages what a link has brought: Streamlit does so only once the visitor has touched the widget.

    On arrival it is written into the address as well, so that the way back finds it there.
    """
    for one in parameters:
        if one.key not in st.session_state:
            continue
        value = st.session_state[one.key]
        if get_address_record().arrived and not is_in_address(one):
            one.put(value)
        else:
            st.session_state[one.key] = value


def reset_parameters_to_default(*parameters: Parameter[Any]) -> None:
    """Go back to the defaults; call it before the widgets of these parameters."""
    remove_query_parameters([one.name for one in parameters])
    for one in parameters:
        st.session_state.pop(one.key, None)


def is_in_address(parameter: Parameter[Any]) -> bool:
    """Return whether the visitor's address has this parameter."""
    return parameter.name in st.query_params


def _list_leftover_parameters(page: AddressPage) -> list[str]:
    """Names that the page before has written and that mean nothing, or something else, on this one."""
    texts = get_address_record().texts
    here = {one.name: one.key for one in page.parameters.values()}
    return [
        name
        for name, (key, text) in texts.items()
        if text and here.get(name) != key and st.query_params.get(name) == text
    ]


# Parameters: each is declared once, in :mod:`attenscope.viz.ui.addresses`.
#
# A declaration says how a value is written into the address and read from it. A page keeps the value in one of two
# ways:
#
# - A widget takes :attr:`Parameter.binding` as arguments: Streamlit keeps the value in the address and in the session.
# - The page calls :meth:`Parameter.hold`, which keeps it: for what a click chooses, and for a widget
#   (:attr:`Parameter.storage`) whose words are not those of the address.
#
# The session comes first: the address is read on the first look, and again when the visitor goes back or forward.
# Anybody can type an address, so :func:`clean_address` removes what the page cannot read before any widget is made.


T = TypeVar("T")
NO_VALUE = object()
"""A default that no value is."""
MAX_TEXT_LENGTH = 2000
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
    longest: int = field(default=MAX_TEXT_LENGTH, kw_only=True)
    scrubbed: bool = field(default=False, kw_only=True)
    """Whether it is scrubbed, as a slider is: a change of it alone is no step of the browser's history."""
    of_sentence: bool = field(default=False, kw_only=True)
    """Whether it belongs to a sentence, as a pinned word does: of another one it says nothing."""
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
    def synced_widget_arguments(self) -> dict[str, Any]:
        """Arguments of a widget whose value :meth:`hold`, called before it, keeps in the address."""
        return {"key": self.key, "persist_state": "session"}

    def value_of(self, text: str) -> T:
        """The value that a text of the address means; the default where it means none."""
        try:
            return self._check_text(text)
        except ValueError:
            return self.default

    def understands(self, texts: Sequence[str]) -> bool:
        """Whether a widget can be given these texts: of several in the address, the last counts.

        An empty text means the default, or nothing at all where a widget can be emptied.
        """
        try:
            self._check_text(texts[-1])
        except ValueError:
            return False
        return True

    def get(self, of: Hashable = None) -> T:
        """The value in the session, or else in the address; `of` as in :meth:`hold`."""
        if self.key not in st.session_state:
            return self.value_in_address()
        return st.session_state[self.key] if self._is_value_owned_by(of) else self.default

    def hold(self, options: Sequence[T] | None = None, of: Hashable = None, *, shows_default: bool = False) -> T:
        """The value, put into the session and into the address alike; the default as well if `shows_default`.

        With `options` it is one of these: the default, or the first of them, where it was another. With `of`, what it
        belongs to, as pins to their sentence, it is the default as long as another is looked at.
        """
        returned = is_history_navigation()
        found = self.value_in_address() if returned else self.get(of)
        default = self.default if options is None or self.default in options else options[0]
        value = found if options is None or found in options else default
        if returned or self._is_value_owned_by(of):
            self._keep(value, of)
        get_address_record().in_address[self.key] = of
        self.show_in_address(value, NO_VALUE if shows_default else default)
        return value

    def set(self, value: T, of: Hashable = None) -> None:
        """Choose a value; for callbacks. The address shows it at once if the value of the same owner stands there."""
        self._keep(value, of)
        if get_address_record().in_address.get(self.key, of) == of:
            self.show_in_address(value)

    def put(self, value: T) -> None:
        """Give the bound widget a value, and the address its text; call it before the widget."""
        st.session_state[self.key], text = value, self.write(value)
        if st.query_params.get(self.name) != text:
            write_query_parameter(self.name, text)

    def follow_default(self, default: T) -> None:
        """Give the bound widget the present default where it still has the one of before; call it before the widget.

        Streamlit keeps the value of a widget whose default has changed, which an address without it does not say.
        """
        defaults = get_address_record().defaults
        before, defaults[self.key] = defaults.get(self.key, default), default
        if before != default and st.session_state.get(self.key) == before and not is_in_address(self):
            st.session_state[self.key] = default

    def restore_previous_page_value(self) -> None:
        """Give the bound widget, on arrival, the value that it had on the page before; call it before the widget."""
        written = get_address_record().written
        if self.key in st.session_state and self.key not in written:
            written.add(self.key)
            self.put(st.session_state[self.key])

    def reset(self) -> None:
        """Go back to the default; for callbacks."""
        self.set(self.default)

    def show_in_address(self, value: T, default: Any = None) -> None:
        """Write a value into the address alone, unless the address says so already; nothing for the default."""
        default = self.default if default is None else default
        text = "" if value == default else self.write(value)
        get_address_record().texts[self.name] = self.key, text
        if not text:
            st.query_params.pop(self.name, None)
            return
        unbind_query_parameters(self.name)  # A view before may have had a widget for it, which takes it along.
        if st.query_params.get(self.name) != text:
            st.query_params[self.name] = text

    def value_in_address(self) -> T:
        """The value that the address names now."""
        return self.value_of(st.query_params.get(self.name, ""))

    def _is_value_owned_by(self, of: Hashable) -> bool:
        return bool(get_address_record().owners.get(self.key, of) == of)

    def _check_text(self, text: str) -> T:
        if len(text) > self.longest:
            raise ValueError(f"{self.name} is longer than {self.longest} characters.")
        return self.read(text) if text else self.default

    def _keep(self, value: T, of: Hashable) -> None:
        record = get_address_record()
        record.owners[self.key] = of
        # On arrival it is written anew, once: the widget of this page is another than that of the page before.
        if self.key not in record.written or self.key not in st.session_state or st.session_state[self.key] != value:
            record.written.add(self.key)
            st.session_state[self.key] = value


# The kinds of parameters: numbers, choices, switches, texts, and several values under one name.


@dataclass(frozen=True)
class NumberParameter(Parameter[T]):
    """A number between bounds, whole where they are."""

    low: float = field(kw_only=True)
    high: float = field(kw_only=True)


@dataclass(frozen=True)
class ChoiceParameter(Parameter[T]):
    """One of a few options."""

    options: tuple[T, ...] = field(kw_only=True)

    def hold(self, options: Sequence[T] | None = None, of: Hashable = None, *, shows_default: bool = False) -> T:
        """The value, one of all the options where no others are given."""
        return super().hold(self.options if options is None else options, of, shows_default=shows_default)

    def label(self, option: T) -> str:
        """What the visitor reads for an option; in English it stands in the address."""
        return say(self.write(option))


@dataclass(frozen=True)
class ListParameter(Parameter[list[T]]):
    """Any number of values, each a text of its own in the address: ``dims=0&dims=7``."""

    def understands(self, texts: Sequence[str]) -> bool:
        """Whether any text means something: Streamlit leaves out the others."""
        return any(super(ListParameter, self).understands([text]) for text in texts)


def number_parameter(name: str, default: Any, low: float, high: float, **more: Any) -> NumberParameter[Any]:
    """A number, whole where the bounds are; a default of None depends on what is looked at."""
    whole = isinstance(low, int) and isinstance(high, int)

    def read(text: str) -> float:
        value = float(text)
        if not (math.isfinite(value) and low <= value <= high):
            raise ValueError(f"{name} is a number from {low} to {high}.")
        return int(value) if whole else value

    return NumberParameter(name, default, read, low=low, high=high, **more)


def choice_parameter(
    name: str,
    options: Sequence[T],
    default: T | None = None,
    labels: Mapping[T, str] | None = None,
    **more: Any,
) -> ChoiceParameter[T]:
    """One of `options`, the first where no other is the default."""
    names = {option: (labels or {}).get(option, str(option)) for option in options}
    shown = {name: option for option, name in names.items()}

    def read(text: str) -> T:
        if text not in shown:
            raise ValueError(f"{name} is one of {', '.join(shown)}.")
        return shown[text]

    first = options[0] if default is None else default
    return ChoiceParameter(name, first, read, write=names.__getitem__, options=tuple(options), **more)


def boolean_parameter(name: str, default: Any = False, **more: Any) -> Parameter[Any]:
    """True or false; a default of None depends on what is looked at."""

    def read(text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{name} is true or false.")
        return text.lower() == "true"

    return Parameter(name, default, read, write=lambda value: str(value).lower(), **more)


def text_parameter(name: str, default: str = "", **more: Any) -> Parameter[str]:
    """Any text up to a length."""
    return Parameter(name, default, str, **more)


# What a visitor's session knows of the address.


@dataclass
class AddressRecord:
    """What the parameters of one visitor share."""

    page: str = ""
    """The page that was shown last."""
    arrived: bool = False
    """Whether the visitor comes from another page, or has just opened the app."""
    sentence: str = ""
    """The sentence that the address named in the last run."""
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By name: the session's key and the text that :meth:`Parameter.hold` has written on that page."""
    written: set[str] = field(default_factory=set)
    """The keys of the session that have been written since the visitor came to that page."""
    owners: dict[str, Hashable] = field(default_factory=dict)
    """By key of the session: what the value belongs to."""
    in_address: dict[str, Hashable] = field(default_factory=dict)
    """By key of the session: the owner whose value stands in the address."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """By key of the session: the default that its widget was drawn with last."""


def get_address_record() -> AddressRecord:
    return st.session_state.setdefault("address", AddressRecord())
