"""What whoever serves the app decides about it, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from model.language.say import say, to_say

MEGABYTE = 1024 * 1024
NO_FILES = to_say("This server takes no files. Run Attenscope on your own machine to open one.")
"""What a visitor of a read-only server reads who wants to open a file."""
YES, NO = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


@dataclass(frozen=True)
class Settings:
    """The limits of one server; sizes in bytes."""

    read_only: bool = False
    """No visitor can upload a file: for a server that everybody can reach."""
    metrics: bool = False
    """Whether Streamlit's figures of itself can be asked for (``_stcore/metrics``)."""
    embedded_in: str = "'self'"
    """The sites that may show the app in a frame, as ``frame-ancestors`` of a Content-Security-Policy names them."""
    session_uploads: int = 256 * MEGABYTE
    """The files of one visitor together."""
    server_uploads: int = 1024 * MEGABYTE
    """The files of all visitors together."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """Read ATTENSCOPE_READ_ONLY, _METRICS, _EMBEDDED_IN, _SESSION_UPLOADS and _SERVER_UPLOADS (in MB).

        ValueError with a sentence for a value that means nothing.
        """
        return cls(
            read_only=_switch(environment, "ATTENSCOPE_READ_ONLY"),
            metrics=_switch(environment, "ATTENSCOPE_METRICS"),
            embedded_in=_sources(environment, "ATTENSCOPE_EMBEDDED_IN", cls.embedded_in),
            session_uploads=_megabytes(environment, "ATTENSCOPE_SESSION_UPLOADS", cls.session_uploads),
            server_uploads=_megabytes(environment, "ATTENSCOPE_SERVER_UPLOADS", cls.server_uploads),
        )

    @classmethod
    def of_this_process(cls) -> Self:
        """The same of this process's environment."""
        return cls.of(os.environ)


def _switch(environment: Mapping[str, str], name: str) -> bool:
    text = environment.get(name, "").strip().lower()
    if text not in (*YES, *NO):
        raise ValueError(say("{name} is {text!r}; it must be 1 or 0.", name=name, text=text))
    return text in YES


def _sources(environment: Mapping[str, str], name: str, default: str) -> str:
    text = " ".join(environment.get(name, "").split()) or default
    if not text.isascii() or ";" in text or "," in text:
        raise ValueError(
            say(
                "{name} is {text!r}; it must name sites with spaces between, such as https://school.example.",
                name=name,
                text=text,
            )
        )
    return text


def _megabytes(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip()
    if text and not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ValueError(say("{name} is {text!r}; it must be a number of megabytes.", name=name, text=text))
    return int(text) * MEGABYTE if text else default
