"""TOML a scene at a time, so that a mistake in one costs no other, and knowing on which line each key stands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from model.language.say import say

HEADER = re.compile(r"\s*\[\[\s*scene\s*\]\]\s*(#.*)?$")
VIEW = re.compile(r"\s*\[\s*scene\s*\.\s*(\w+)\s*\]")
KEY = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([\w-]+))\s*=""")
PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
DEEP_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){50}""")
"""A dotted key of more parts than any view has: the time to read one grows with the square of their number."""
OUTSIDE = re.compile(r"""#.*|\"{3}|'{3}|"(?:\\.|[^"\\])*+(?:"|$)|'[^']*+(?:'|$)""")
INSIDE = {'"""': re.compile(r'\\.|"""'), "'''": re.compile("'''")}
"""What decides where a string of several lines begins, and where each kind ends: its marks, and what hides them."""


class TalkError(ValueError):
    """What cannot be read, and on which line of the file."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


@dataclass(frozen=True)
class Block:
    """The lines of one scene, or those before the first."""

    text: str
    start: int
    """Its first line, from 1."""
    lines: Mapping[str, int]
    """Where each key stands; ``view.head`` for what is in the table ``[scene.view]``."""

    def table(self) -> dict[str, Any]:
        """What the block says. Raises TalkError."""
        try:
            found = _loads(self.text)
        except ValueError as error:
            place = PLACE.search(str(error))
            last = self.start + self.text.rstrip("\n").count("\n")
            line = self.start + int(place[1]) - 1 if place and place[1] else last
            what = say(
                "This is not TOML ({reason}); its scene is left out until it is mended.",
                reason=PLACE.sub("", str(error)),
            )
            raise TalkError(line, what) from error
        if "scene" not in found:
            return found
        scenes = found.pop("scene")
        if scenes == []:  # as a talk without a scene is written
            return found
        if not isinstance(scenes, list) or not isinstance(scenes[0], dict):
            raise TalkError(self.start, say("A scene begins with [[scene]] on a line of its own."))
        return scenes[0]

    def line(self, key: str) -> int:
        return self.lines.get(key, self.start)


def blocks(source: str) -> list[Block]:
    """What stands before the first scene, then each scene."""
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    outside = _outside_of_strings(lines) if _sound("\n".join(lines)) else [True] * len(lines)
    starts = [at for at, line in enumerate(lines) if outside[at] and HEADER.match(line)]
    bounds = [0, *starts, len(lines)]
    return [
        Block("\n".join(lines[low:high]) + "\n", low + 1, dict(_keys(lines[low:high], outside[low:high], low + 1)))
        for low, high in pairwise(bounds)
    ]


def _loads(text: str) -> dict[str, Any]:
    """Return what a text says. ValueError, also where the parser would take too long or go too deep."""
    if DEEP_KEY.search(text):
        raise ValueError(say("a key has more than fifty parts"))
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise ValueError(say("too many brackets stand in each other")) from error
    except ValueError as error:
        raise ValueError(say("a number has too many digits")) from error


def _sound(source: str) -> bool:
    try:
        _loads(source)
    except ValueError:
        return False
    return True


def _outside_of_strings(lines: list[str]) -> list[bool]:
    """For each line of a sound file: whether it begins outside of a string of several lines."""
    found, inside = [], ""
    for line in lines:
        found.append(not inside)
        at = 0
        while mark := (INSIDE[inside] if inside else OUTSIDE).search(line, at):
            at = mark.end()
            if mark[0] in INSIDE:
                inside = "" if inside else mark[0]
    return found


def _keys(lines: list[str], outside: list[bool], start: int) -> Iterator[tuple[str, int]]:
    yield "", start
    prefix = ""
    for at, (line, free) in enumerate(zip(lines, outside, strict=True), start):
        if not free:
            continue
        if table := VIEW.match(line):
            prefix = f"{table[1]}."
            yield table[1], at
        elif key := KEY.match(line):
            yield prefix + (key[1] or key[2] or key[3]), at
