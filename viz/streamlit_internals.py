"""The parts of Streamlit 1.67 that the pages need and that its public interface does not offer.

A query parameter that a widget is bound to can be neither removed by code nor told apart from one that the visitor's
Back button has brought. What another version of Streamlit lacks is named by :class:`InternalsError`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

if TYPE_CHECKING:
    from streamlit.runtime.scriptrunner import ScriptRunContext

VERSION = "1.67"
"""Of Streamlit: the one that was read."""


class InternalsError(RuntimeError):
    """A part of Streamlit that is not where version 1.67 has it."""

    def __init__(self, part: str) -> None:
        super().__init__(
            f"Streamlit {st.__version__} has no {part}; Attenscope was written for Streamlit {VERSION}. "
            "Install the version that requirements.txt names."
        )


def remove_query_parameters(names: Iterable[str]) -> None:
    """Take parameters out of the address, bound ones too, so that no widget of this run reads them.

    Raises InternalsError.
    """
    names = tuple(names)
    if not names:
        return
    try:
        with _context().session_state.query_params() as parameters:
            for name in names:
                parameters.remove_param(name)
            parameters.set_initial_query_params_from_current()
    except AttributeError as error:
        raise InternalsError("QueryParams.remove_param and set_initial_query_params_from_current") from error


def went_through_history() -> bool:
    """Whether this run was caused by the browser's Back or Forward. Raises InternalsError."""
    try:
        return bool(_context().is_history_navigation)
    except AttributeError as error:
        raise InternalsError("ScriptRunContext.is_history_navigation") from error


def _context() -> ScriptRunContext:
    context = get_script_run_ctx()
    if context is None:
        raise InternalsError("script run context outside of a page")
    return context
