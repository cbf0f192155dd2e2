"""Limits on what visitors upload, together: Streamlit limits one file alone, and keeps all in memory."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model.language.catalogue import closest
from model.language.current import speaking
from model.language.say import say, to_say

from .settings import MEGABYTE, NO_FILES, Settings

LANGUAGE = re.compile(rb"[\w-]*")
"""The first language of an Accept-Language header."""
UPLOAD = re.compile(r".*/_stcore/upload_file/(?P<session>[^/]+)/[^/]+")


class TooMuchError(Exception):
    """More bytes came than there is place for; its text says so."""


class UploadLimits:
    """ASGI middleware that refuses a file before it is read, or while it comes, once the place is taken."""

    def __init__(self, app: ASGIApp, settings: Settings, stored: Callable[[], Mapping[str, int]]) -> None:
        """`stored` says how many bytes each session has in memory."""
        self._app, self._settings, self._stored = app, settings, stored
        self._coming: defaultdict[str, int] = defaultdict(int)
        """By session: bytes of uploads that are on their way. Of the one event loop alone, so no lock."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = scope["type"] == "http" and scope["method"] == "PUT" and UPLOAD.fullmatch(scope["path"])
        if not found:
            await self._app(scope, receive, send)
        elif self._settings.read_only:
            with speaking(_language(scope)):
                refused = PlainTextResponse(say(NO_FILES), 403)
            await refused(scope, receive, send)
        else:
            await self._upload(found["session"], scope, receive, send)

    async def _upload(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        length = dict(scope["headers"]).get(b"content-length", b"")
        held = expected = int(length) if length.isdigit() else 0
        language = _language(scope)
        if refusal := self._refusal(session, expected, language):
            await PlainTextResponse(refusal, 413)(scope, receive, send)
            return
        came = 0
        begun = False

        async def receiving() -> Message:
            nonlocal came, held
            message = await receive()
            came += len(message.get("body", b""))
            if came > held:  # More than was said, or nothing was said.
                if refusal := self._refusal(session, came - held, language):
                    raise TooMuchError(refusal)
                self._coming[session] += came - held
                held = came
            return message

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        self._coming[session] += held
        try:
            await self._app(scope, receiving, sending)
        except TooMuchError as refusal:
            if not begun:
                await PlainTextResponse(str(refusal), 413)(scope, receive, send)
        finally:
            self._coming[session] -= held
            if not self._coming[session]:
                del self._coming[session]

    def _refusal(self, session: str, more: int, language: str) -> str:
        """Why so many bytes more find no place, in a language; empty where they do."""
        stored = self._stored()
        own = stored.get(session, 0) + self._coming[session]
        everybody = sum(stored.values()) + sum(self._coming.values())
        for used, limit, message in (
            (
                own,
                self._settings.session_uploads,
                to_say("Your files may have {most} MB together: remove one, then try again."),
            ),
            (
                everybody,
                self._settings.server_uploads,
                to_say("The files of all visitors may have {most} MB together: remove one, then try again."),
            ),
        ):
            if used + more > limit:
                with speaking(language):
                    return say(message, most=limit // MEGABYTE)
        return ""


def _language(scope: Scope) -> str:
    """The language that the request's browser asks for first, as far as the interface has it."""
    asked = LANGUAGE.match(dict(scope["headers"]).get(b"accept-language", b""))
    return closest(asked[0].decode() if asked else "")
