"""What the address of a page can say, and what is done to an address before its page is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from ...streamlit_internals import read_whole_address, remove_query_parameters, went_through_history
from .kinds import Choice
from .parameter import Parameter
from .record import record


@dataclass(frozen=True)
class Page:
    """What the address of a page can say."""

    name: str
    """As the file of the page is named."""
    parameters: Mapping[str, Parameter[Any]]
    view: Choice[Any] | None = None
    """The parameter that says which view of the page is shown."""

    @classmethod
    def of(cls, name: str, *parameters: Parameter[Any], view: Choice[Any] | None = None) -> Page:
        """A page and its parameters."""
        return cls(name, {one.name: one for one in parameters}, view)

    @property
    def scrubbed(self) -> list[str]:
        """Names of the parameters whose change alone is no step of the browser's history."""
        return [one.name for one in self.parameters.values() if one.scrubbed]

    def view_of(self, address: Mapping[str, str]) -> dict[str, str]:
        """The part of an address that the view it shows can read."""
        view = self.view.value_of(address.get(self.view.name, "")) if self.view else ""
        known = {name: self.parameters[name] for name in address if name in self.parameters}
        return {name: address[name] for name, one in known.items() if not one.views or view in one.views}

    def current_view(self) -> dict[str, str]:
        """The part of the visitor's address that the view it shows can read."""
        return self.view_of(st.query_params.to_dict())

    def carried_address(self) -> dict[str, str]:
        """What the address of another page says that this one can read, and that a callback has not changed."""
        address, state = st.query_params.to_dict(), st.session_state
        known = ((name, self.parameters[name]) for name in address if name in self.parameters)
        return {
            name: address[name]
            for name, one in known
            if one.key not in state or one.value_of(address[name]) == state[one.key]
        }


def parameters_in(names: Mapping[str, Any]) -> tuple[Parameter[Any], ...]:
    """The parameters among the names of a module."""
    return tuple(one for one in names.values() if isinstance(one, Parameter))


def restore_address() -> None:
    """After Back or Forward, have the whole address of the entry that is gone to; comes before all that reads it."""
    if went_through_history():
        read_whole_address()


def clean_address(page: Page) -> list[Parameter[Any]]:
    """Take out of the address what this page cannot read, and what another page has left in it.

    Comes before all widgets of the page. Returns the parameters whose text was too long to be read.
    """
    address, known, returned = st.query_params, record(), went_through_history()
    given = {name: address.get_all(name) for name in page.parameters}
    named = [(one, given[one.name]) for one in page.parameters.values() if given[one.name]]
    nonsense = [one.name for one, texts in named if not one.understands(texts)]
    too_long = [one for one, texts in named if one.name in nonsense and len(texts[-1]) > one.longest]
    left = [] if known.page == page.name or returned else list(_left(page))
    remove_query_parameters(dict.fromkeys((*nonsense, *left)))
    if returned:  # The address says what was seen there; the session, what was seen last.
        for one in page.parameters.values():
            st.session_state.pop(one.key, None)
    known.arrived = known.page != page.name
    if known.arrived:
        known.page, known.texts = page.name, {}
    return too_long


def carry(*parameters: Parameter[Any]) -> None:
    """Keep for other pages what a link has brought: Streamlit does so only once the visitor has touched the widget.

    On arrival it is written into the address as well, so that the way back finds it there.
    """
    for one in parameters:
        if one.key not in st.session_state:
            continue
        value = st.session_state[one.key]
        if record().arrived and not is_in_address(one):
            one.put(value)
        else:
            st.session_state[one.key] = value


def forget(*parameters: Parameter[Any]) -> None:
    """Go back to the default; comes before the widgets of these parameters."""
    remove_query_parameters([one.name for one in parameters])
    for one in parameters:
        st.session_state.pop(one.key, None)


def is_in_address(parameter: Parameter[Any]) -> bool:
    """Return whether the visitor's address says it."""
    return parameter.name in st.query_params


def _left(page: Page) -> list[str]:
    """Names that the page before has written and that mean nothing, or something else, on this one."""
    texts = record().texts
    here = {one.name: one.key for one in page.parameters.values()}
    return [
        name
        for name, (key, text) in texts.items()
        if text and here.get(name) != key and st.query_params.get(name) == text
    ]
