"""Choices, whose values are keys and whose words are the visitor's; widgets whose values stand in the address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import streamlit as st

from model.language.current import current_language
from model.language.say import say

from ..components.enter_key import enter_key
from ..serving.settings import NO_FILES, Settings
from .url_state.kinds import Choice, Number
from .url_state.parameter import Parameter

T = TypeVar("T")
SHOWN_IN = "language of choices"
"""Where the session has in which language the browser shows each choice, by the widget's key."""


def offer(draw: Callable[..., Any], label: str, options: Sequence[Any], *rest: Any, key: str, **more: Any) -> Any:
    """Draw a choice, such as `st.selectbox`, among options that are the same in every language.

    `format_func` says them in the visitor's. A browser sends back the words that it shows, and Streamlit 1.67 does not
    tell it that these have changed: in another language the value is set anew, so that the browser gets its new words.
    """
    shown_in = st.session_state.setdefault(SHOWN_IN, {})
    if key in st.session_state and shown_in.get(key, current_language()) != current_language():
        st.session_state[key] = st.session_state[key]
    found = draw(label, options, *rest, key=key, **more)
    shown_in[key] = current_language()
    return found


def segmented_control(label: str, of: Choice[T], options: Sequence[T] | None = None, **more: Any) -> T:
    """One of the options beside each other, the first where the default is none of them; only heard is the label."""
    listed = of.options if options is None else tuple(options)
    held = of.hold(listed)
    found = offer(
        st.segmented_control,
        label,
        listed,
        required=True,
        format_func=of.label,
        label_visibility="collapsed",
        **of.storage | more,
    )
    return held if found is None else found


def selectbox(label: str, of: Choice[T], options: Sequence[T] | None = None, **more: Any) -> T:
    """One of the options in a list; the first of them where the default is not there."""
    listed = of.options if options is None else tuple(options)
    of.hold(listed)
    return offer(st.selectbox, label, listed, format_func=of.label, **of.storage | more)


def following_selectbox(label: str, of: Parameter[T | None], options: Sequence[T], default: T, **more: Any) -> T:
    """One of the options; until one is chosen it follows `default`, and the address says nothing.

    The parameter has a slot of its own, as its name is the widget's key.
    """
    chosen = of.hold()
    if chosen not in options:
        chosen = None
        of.show_in_address(None)
    st.session_state[of.name] = default if chosen is None else chosen
    choose = lambda: of.set(st.session_state[of.name])  # noqa: E731
    return offer(st.selectbox, label, options, key=of.name, on_change=choose, **more)


def number_input(label: str, of: Number[Any], default: Any = None, **more: Any) -> Any:
    """A number between the parameter's bounds, or narrower ones: `min_value`, `max_value`."""
    first = of.default if default is None else default
    bounds = {"min_value": of.low, "max_value": of.high}
    found = st.number_input(label, value=first, **bounds | of.binding | more)
    return first if found is None else found


def toggle(label: str, of: Parameter[bool], **more: Any) -> bool:
    return st.toggle(label, of.default, **of.binding | more)


def sentence_input(label: str, of: Parameter[str], **more: Any) -> str:
    """A sentence in as many lines as it needs; Enter submits it, and a line break within is a space."""
    enter_key(of.name)
    text = st.text_area(label, height="content", **of.binding | more)
    return " ".join((text or "").splitlines())


def text_input(label: str, of: Parameter[str], default: str | None = None, **more: Any) -> str:
    return st.text_input(label, of.default if default is None else default, **of.binding | more) or ""


def file_uploader(label: str, megabytes: int, **more: Any) -> Any:
    """A place for files of at most `megabytes` each, and at most what the server takes; a sentence where it takes none.

    What a file uploader of Streamlit returns: a file or None, with `accept_multiple_files` a list.
    """
    if Settings.of_this_process().read_only:
        st.caption(say(NO_FILES))
        return [] if more.get("accept_multiple_files") else None
    return st.file_uploader(label, max_upload_size=min(megabytes, largest_file()), **more)


def largest_file() -> int:
    """The megabytes of a file that the server takes."""
    return int(st.get_option("server.maxUploadSize"))
