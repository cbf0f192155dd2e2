"""How a typed text is put to a folder's model: in its chat template, or behind a task prefix such as T5's.

A chat template is a program of the folder. It is rendered in the sandbox of transformers, in a process whose time and
memory are bounded (:mod:`.template_process`).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from transformers import PreTrainedTokenizerBase

from ..language import say
from ..runnable_model import CHAT_TEMPLATE, InputError

TRANSLATION_TASK = re.compile(r"translation_(?P<source>[a-z]{2,3})_to_(?P<target>[a-z]{2,3})")
"""A task of T5: ``translation_en_to_de``."""
LONGEST_PREFIX = 200
LONGEST_TEMPLATE = LONGEST_PROMPT = 100_000
"""Characters of a template, and of what it makes of a text."""
START_SECONDS, REPLY_SECONDS = 120, 30
"""Seconds after which the process is ended: a busy machine takes a minute to load transformers."""

RoleSpan = tuple[str, int, int]
"""A role (system, user), and where its own text begins and ends."""


@dataclass(frozen=True)
class Prompt:
    """A typed text as a model reads it."""

    text: str
    is_whole: bool = False
    """Whether its special tokens stand in it, so that the tokenizer adds none."""
    roles: tuple[RoleSpan, ...] = ()
    """In characters of the text; what stands between them is the template's own."""


class PromptTemplate(Protocol):
    """One way to put a typed text to a model."""

    def apply(self, text: str) -> Prompt:
        """Return the text as the model reads it. Raises InputError where it cannot be applied to this text."""


@dataclass(frozen=True)
class TaskPrefix:
    """A text that stands before every source."""

    prefix: str

    def apply(self, text: str) -> Prompt:
        """Return the text behind the prefix, which is not put there twice."""
        return Prompt(text if text.startswith(self.prefix) else f"{self.prefix}{text}")


def find_task_prefixes(config: Mapping[str, Any]) -> dict[str, TaskPrefix]:
    """Return the prefixes that a configuration names, by task."""
    tasks = config.get("task_specific_params")
    found = {}
    for name, facts in tasks.items() if isinstance(tasks, dict) else ():
        prefix = facts.get("prefix") if isinstance(facts, dict) else None
        if isinstance(prefix, str) and 0 < len(prefix.strip()) <= len(prefix) <= LONGEST_PREFIX:
            found[str(name)] = TaskPrefix(prefix)
    return found


def find_translation_task(tasks: Mapping[str, TaskPrefix], asked: Mapping[str, str]) -> str:
    """Return the task that writes the language asked for (source, target); "" where there is none, or none is asked."""
    source, target = asked.get("source"), asked.get("target")
    for name in tasks:
        found = TRANSLATION_TASK.fullmatch(name)
        if target and found and found["target"] == target and found["source"] == (source or found["source"]):
            return name
    return ""


def describe_template(templates: Mapping[str, PromptTemplate | None], chosen: str) -> str:
    """Return which template is applied, in a sentence; "" where there is none to choose."""
    if CHAT_TEMPLATE in templates:
        return (
            say("The text stands in the chat template of this folder, as a message of the user.")
            if chosen == CHAT_TEMPLATE
            else say("The chat template of this folder is not applied: the text is read as it is typed.")
        )
    prefixes = {name: one.prefix for name, one in templates.items() if isinstance(one, TaskPrefix)}
    if chosen in prefixes:
        return say("Before the text stands “{prefix}”, a task prefix of this folder.", prefix=prefixes[chosen].strip())
    if not prefixes:
        return ""
    return say(
        "This folder names task prefixes, such as “{prefix}”; none stands before the text. Settings on Explore have "
        "them.",
        prefix=next(iter(prefixes.values())).strip(),
    )


class ChatTemplate:
    """The chat template of a tokenizer, for one message of the user, with the beginning of the reply behind it."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """ValueError where the tokenizer has no template that is meant for a chat alone, or too long a one."""
        self._template = tokenizer.get_chat_template()
        if not isinstance(self._template, str) or len(self._template) > LONGEST_TEMPLATE:
            raise ValueError(f"no chat template, or one of more than {LONGEST_TEMPLATE} characters")
        self._names = {name: _convert_to_plain_strings(value) for name, value in tokenizer.special_tokens_map.items()}
        self._process = _TemplateProcess()

    def apply(self, text: str) -> Prompt:
        """Return the chat as the model reads it. Raises InputError."""
        # Two more chats tell where the texts of the roles stand: with another text of the user, and with a system's.
        other, system = ("A" if not text.strip().startswith("A") else "B"), "system-text-0"
        chats = [
            [{"role": "user", "content": text}],
            [{"role": "user", "content": other}],
            [{"role": "system", "content": system}, {"role": "user", "content": text}],
        ]
        try:
            found, with_other, with_system = self._process.render(self._template, self._names, chats, LONGEST_PROMPT)
        except TimeoutError:
            found = with_other = with_system = None
        if found is None or len(found) >= LONGEST_PROMPT:
            raise InputError(
                say(
                    "The chat template of this folder cannot be applied to this text: type another one, or take the "
                    "template away under Settings on Explore."
                )
            )
        user = _find_user_text_span(found, with_other or "", text)
        spans = [_find_system_text_span(found, with_system or "", system), user] if user else []
        return Prompt(found, is_whole=True, roles=tuple(one for one in spans if one))


def _find_user_text_span(prompt: str, other: str, text: str) -> RoleSpan | None:
    """Where a text stands in a prompt, which differs there from one of an `other` text; None where that cannot be told.

    A template may strip it.
    """
    differs = (at for at, (one, two) in enumerate(zip(prompt, other, strict=False)) if one != two)
    start = next(differs, min(len(prompt), len(other)))
    own = next((one for one in (text, text.strip()) if one and prompt.startswith(one, start)), None)
    return None if own is None else ("user", start, start + len(own))


def _find_system_text_span(prompt: str, with_system: str, system: str) -> RoleSpan | None:
    """Where a template puts a text of the system that nobody typed, by a prompt `with_system` text; None for none."""
    before, found, after = with_system.partition(system)
    start, end = len(before), len(prompt) - len(after)
    is_there = found and prompt.startswith(before) and prompt.endswith(after) and prompt[start:end].strip()
    return ("system", start, end) if is_there else None


def _convert_to_plain_strings(value: Any) -> Any:
    return [str(one) for one in value] if isinstance(value, list | tuple) else str(value)


class _TemplateProcess:
    """Renders chats in a process of its own, one request at a time; it is started when it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def render(
        self, template: str, names: Mapping[str, Any], chats: Sequence[Any], longest: int
    ) -> Sequence[str | None]:
        """Return each chat as the template writes it, cut to `longest` characters; None where it cannot be applied.

        Raises TimeoutError where that takes too much time or memory.
        """
        with self._lock:
            process = self._process or self._start()
            asked = {"template": template, "names": names, "chats": chats, "longest": longest}
            found: Sequence[str | None] = self._exchange(process, f"{json.dumps(asked)}\n", REPLY_SECONDS)
            self._process = process
            return found

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("template_process.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # The server alone hears Control+C.
        )
        weakref.finalize(self, _end_process, process)
        self._exchange(process, "", START_SECONDS)
        return process

    def _exchange(self, process: subprocess.Popen[str], line: str, seconds: float) -> Any:
        """Send a line and return what the process replies; one that does not in time is ended."""
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = None
        watch = threading.Timer(seconds, process.kill)
        watch.start()
        try:
            process.stdin.write(line)
            process.stdin.flush()
            return json.loads(process.stdout.readline())
        except (OSError, ValueError) as error:
            _end_process(process)
            raise TimeoutError("the template took too long") from error
        finally:
            watch.cancel()


def _end_process(process: subprocess.Popen[str]) -> None:
    process.kill()
    with suppress(OSError), process:  # closes the pipes and waits
        pass
