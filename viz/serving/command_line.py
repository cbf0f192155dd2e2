"""The command line of ``python -m viz``: Streamlit's options, and after ``--`` the app's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from model.language.say import say

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def split(arguments: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Options such as ``--server.port 8600`` or ``--server.headless=true``, and all else, for the app.

    ValueError for an option without a value, and for one that stands behind what is the app's.
    """
    own = list(arguments)
    options: dict[str, Any] = {}
    while own and _is_streamlits(own[0]):
        name, equals, value = own.pop(0).removeprefix("--").partition("=")
        if not equals:
            if not own or own[0].startswith("--"):
                raise ValueError(say("{option} needs a value, such as {option} 8600.", option=f"--{name}"))
            value = own.pop(0)
        options[name] = _value(value)
    own = own[1:] if own[:1] == ["--"] else own
    if late := next(filter(_is_streamlits, own), None):
        example = "python -m viz --server.port 8600 -- --models FOLDER"
        raise ValueError(say("{option} must stand first, as in: {example}", option=late, example=example))
    return options, own


def _is_streamlits(argument: str) -> bool:
    return argument.startswith("--") and "." in argument.partition("=")[0]


def _value(text: str) -> Any:
    """A number, true or false; any other text as it is."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return text
    return found if isinstance(found, int | float) else text


def with_hosts(options: dict[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Options that let other machines in by any name, where they are let in and nothing is said of names.

    By default the server answers to this machine's names alone: otherwise a page of another site could reach it by a
    name of its own (DNS rebinding). `environment` is that of the process, where Streamlit takes options from as well.
    """
    address = options.get("server.address") or environment.get("STREAMLIT_SERVER_ADDRESS") or LOOPBACK[0]
    if address in LOOPBACK or environment.get("STREAMLIT_SERVER_ALLOWED_HOSTS"):
        return options
    return {"server.allowedHosts": ["*"], **options}
