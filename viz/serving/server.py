"""Build and run the server of the app: its command line, its middleware and its use of memory."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from attenscope.language import IS_INSTALLED, replace_commands_when_installed, say
from attenscope.viz.serving.middleware import (
    MEGABYTE,
    MessageGuard,
    PageBeginning,
    SafeHeaders,
    ServerSettings,
    UploadLimits,
    parse_boolean_setting,
)
from attenscope.viz.streamlit_internals import (
    count_uploaded_bytes,
    is_allowed_host_header,
    list_streamlit_options,
    read_browser_message_type,
)

THREAD_SWITCH_INTERVAL = 0.0005
"""Seconds after which a thread that computes in Python lets another one go on.

With the default of 0.005 a visitor's run waits so long at each of its dozens of steps while another visitor's text is
read.
"""
INSTALLED_SCRIPT = Path(__file__).parents[1] / "start" / "attenscope_app.py"
"""Where an installed package has the script (setup.py)."""
APP_SCRIPT = INSTALLED_SCRIPT if INSTALLED_SCRIPT.is_file() else Path(__file__).parents[2] / "app.py"
Endpoint = Callable[[Request], Awaitable[Response]]


def build_app(settings: ServerSettings, routes: Sequence[BaseRoute], welcome: Callable[[str], str]) -> st.App:
    """The app with its middleware, for any ASGI server.

    Args:
        settings: Its limits.
        routes: They answer beside the pages.
        welcome: Builds, in a language, what a page begins with that has nothing in its address.
    """
    return st.App(
        APP_SCRIPT,
        routes=list(routes),
        middleware=[
            Middleware(SafeHeaders, settings=settings, is_own=is_allowed_host_header),
            Middleware(UploadLimits, settings=settings, stored=count_uploaded_bytes),
            Middleware(MessageGuard, kind=read_browser_message_type),
            Middleware(PageBeginning, welcome=welcome),
        ],
    )


def serve_app(
    arguments: Sequence[str],
    endpoints: Mapping[str, Endpoint] = MappingProxyType({}),
    on_start: Callable[[], object] = lambda: None,
    welcome: Callable[[str], str] = lambda _language: "",
) -> None:
    """Serve the app under a command line until it is stopped.

    `endpoints` answer beside its pages, by their path below that of the app; `on_start` is called once the command line
    is known to be right; `welcome` is that of :func:`build_app`.

    Raises ValueError for a wrong command line, and for a port that is in use.
    """
    given, own = split_streamlit_options(arguments)
    options = read_option_variables(os.environ) | given
    settings = ServerSettings.from_process_environment()
    if settings.read_only and any(one.partition("=")[0] in ("--model", "--models") for one in own):
        raise ValueError(
            say("A read-only server (ATTENSCOPE_READ_ONLY) shows the released models alone: leave --model out.")
        )
    check_port_is_free(options)
    base = options.get("server.baseUrlPath", st.get_option("server.baseUrlPath")).strip("/")
    prefix = f"/{base}" if base else ""
    routes = [Route(f"{prefix}/{path}", endpoint) for path, endpoint in endpoints.items()]
    served = build_app(settings, routes, welcome)
    sys.argv = [str(APP_SCRIPT), *own]  # Read by the pages; and Streamlit looks for its configuration beside the first.
    sys.setswitchinterval(THREAD_SWITCH_INTERVAL)
    on_start()
    served.run(config=choose_allowed_hosts(options))


def check_port_is_free(options: Mapping[str, Any]) -> None:
    """Raise ValueError where another program listens at the port that was asked for."""
    port = options.get("server.port")
    if port is None:
        return
    if not 0 <= port <= MOST_PORT:
        raise ValueError(say("A port is a number from 0 to {most}.", most=MOST_PORT))
    host = options.get("server.address", DEFAULT_HOST)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # As the server does.
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:  # Of any other error the server says what is wrong.
                other = port + 99 if port + 99 <= MOST_PORT else port - 99
                example = f"attenscope app --port {other}" if IS_INSTALLED else f"make run PORT={other}"
                raise ValueError(
                    say("Port {port} is used by another program. Choose another: {example}", port=port, example=example)
                ) from error


# The command line of ``python -m viz``: Streamlit's options, and after ``--`` the app's own.


DEFAULT_HOST = "127.0.0.1"
"""As in .streamlit/config.toml."""
MOST_PORT = 65535
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")


def split_streamlit_options(arguments: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Options such as ``--server.port 8600`` or ``--server.headless=true``, and all else, for the app.

    An option that takes a list may be repeated. Raises ValueError for an option without a value, and for one after the
    app's own arguments.
    """
    own = list(arguments)
    options: dict[str, Any] = {}
    while own and _is_streamlit_option(own[0]):
        name, equals, value = own.pop(0).removeprefix("--").partition("=")
        if not equals:
            if not own or own[0].startswith("--"):
                raise ValueError(say("{option} needs a value, such as {option} 8600.", option=f"--{name}"))
            value = own.pop(0)
        found = _parse_option_value(name, value)
        options[name] = [*options.get(name, []), *found] if isinstance(found, list) else found
    own = own[1:] if own[:1] == ["--"] else own
    if late := next(filter(_is_streamlit_option, own), None):
        example = replace_commands_when_installed("python -m viz") + " --server.port 8600 -- --models FOLDER"
        raise ValueError(say("{option} must stand first, as in: {example}", option=late, example=example))
    return options, own


def _is_streamlit_option(argument: str) -> bool:
    return argument.startswith("--") and "." in argument.partition("=")[0]


def read_option_variables(environment: Mapping[str, str]) -> dict[str, Any]:
    """Options of the server that Streamlit's variables name, as STREAMLIT_SERVER_PORT names ``--server.port``."""
    return {
        name: _parse_option_value(name, environment[one.variable])
        for name, one in list_streamlit_options().items()
        if name.startswith("server.") and environment.get(one.variable)
    }


def _parse_option_value(name: str, text: str) -> Any:
    """What Streamlit takes for an option; a text for one that it does not know.

    A list of texts is JSON, or has commas or spaces between. Raises ValueError for a text that means nothing, and for
    an empty list: for Streamlit, no names of hosts are any names.
    """
    declared = list_streamlit_options().get(name)
    option = f"--{name}"
    if declared is None:
        return text
    if declared.is_list:
        texts = _parse_texts(text)
        if not texts:
            raise ValueError(say("{option} needs a value, such as {option} 8600.", option=option))
        return texts
    if declared.kind is bool:
        return parse_boolean_setting(option, text)
    try:
        return declared.kind(text)
    except ValueError as error:
        raise ValueError(say("{name} is {text!r}; it must be a number.", name=option, text=text)) from error


def _parse_texts(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        found = None
    return [str(one) for one in found] if isinstance(found, list) else text.replace(",", " ").split()


def choose_allowed_hosts(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with the names under which the server answers.

    By default they are this machine's alone: otherwise a page of another site could reach it by a name of its own (DNS
    rebinding). Where other machines may connect, they are any. Given names come to this machine's own, under which its
    health is checked.
    """
    if names := options.get("server.allowedHosts"):
        return options | {"server.allowedHosts": [*names, *LOOPBACK_HOSTS]}
    if options.get("server.address", DEFAULT_HOST) in LOOPBACK_HOSTS:
        return options
    return options | {"server.allowedHosts": ["*"]}


# Memory: what is freed goes back to the system, so that a server that runs for days does not grow.


MMAP_THRESHOLD, ARENA_MAX = -3, -8
"""Parameters of glibc's mallopt, as malloc.h numbers them."""
LARGE_ARRAY_BYTES = 2**22
"""Bytes from which an array has pages of its own, which go back when it is freed."""
MEMORY_POOLS = 2
"""Pools for small pieces; otherwise every thread may get one, and memory that is free in one is of no use to others."""


ABSENT_SESSIONS_BYTES = 24 * MEGABYTE
"""What the sessions of visitors who have gone may hold together."""


class AbsentSessions:
    """Chooses which sessions to end of visitors who have gone.

    Streamlit keeps each for two minutes and more, in case its connection comes back: what ten visitors have pasted and
    uploaded would stay for so long. Who has been away for one interval keeps a session while it is among the smallest.
    """

    def __init__(self, most: int = ABSENT_SESSIONS_BYTES) -> None:
        """At most `most` bytes stay."""
        self._most = most
        self._sizes: dict[str, int | None] = {}
        """Of each session that was absent at the last call; measured once, when it is absent for the second time."""
        self.has_ended_any = False
        """Whether the last call chose a session, so that there is memory to give back."""

    def choose(self, measures: Mapping[str, Callable[[], int]]) -> list[str]:
        """Return the sessions to end, the largest first, of those that were absent at the last call too.

        Args:
            measures: What tells how many bytes a session holds, for each that is absent now.
        """
        before = self._sizes
        found = {one: before[one] or measure() for one, measure in measures.items() if one in before}
        self._sizes = {one: found.get(one) for one in measures}
        left, chosen = sum(found.values()), []
        for session in sorted(found, key=lambda one: (-found[one], one)):
            if left <= self._most:
                break
            left -= found[session]
            chosen.append(session)
        self.has_ended_any = bool(chosen)
        return chosen


def _load_glibc() -> Any:
    """The C library where it is glibc, else None."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):  # Windows
        return None
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


def limit_glibc_retained_memory() -> None:
    """Let glibc keep less of what is freed; by default it keeps more, the larger the freed arrays are."""
    if (library := _load_glibc()) is not None:
        library.mallopt(MMAP_THRESHOLD, LARGE_ARRAY_BYTES)
        library.mallopt(ARENA_MAX, MEMORY_POOLS)


def release_free_memory() -> None:
    """Give back to the system the memory that is free now."""
    if (library := _load_glibc()) is not None:
        library.malloc_trim(0)
