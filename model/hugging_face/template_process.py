"""A process that renders chat templates, which come with a folder: one may run for ever, or fill the memory.

It is run by its path, reads requests and writes replies, a line of JSON each, and loads nothing but the sandbox in
which ``apply_chat_template`` of transformers renders.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

SECONDS_OF_COMPUTING = 3
"""What one request may take of a processor; rendering takes milliseconds."""
MEMORY_LIMIT = 2**30
"""Bytes of memory that the process may ask for."""


def serve_requests(requests: TextIO, replies: TextIO) -> None:
    """Say that it is ready, and answer each line with a line until there are no more."""
    from transformers.utils.chat_template_utils import render_jinja_template

    def render(chat: Sequence[Mapping[str, str]], template: str, names: Mapping[str, Any]) -> str | None:
        with suppress(Exception):  # a template raises anything
            ((text,), _) = render_jinja_template([chat], chat_template=template, add_generation_prompt=True, **names)
            return str(text)
        return None

    _limit_memory()
    _write_json_line(replies, "ready")
    for line in requests:
        asked = json.loads(line)
        with _limit_computing_time(SECONDS_OF_COMPUTING):
            texts = [render(chat, asked["template"], asked["names"]) for chat in asked["chats"]]
        _write_json_line(replies, [text if text is None else text[: asked["longest"]] for text in texts])


def _write_json_line(replies: TextIO, reply: Any) -> None:
    replies.write(f"{json.dumps(reply)}\n")
    replies.flush()


@contextmanager
def _limit_computing_time(seconds: float) -> Iterator[None]:
    """End this process where the block computes longer, on systems that can."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)  # The signal's default is the end, inside of C too.
    yield
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, 0)


def _limit_memory() -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


if __name__ == "__main__":
    written = sys.stdout
    sys.stdout = sys.stderr  # What a library prints is no reply.
    serve_requests(sys.stdin, written)
