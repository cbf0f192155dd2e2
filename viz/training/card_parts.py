"""A model card, which is Markdown, as the parts of a saved view: headings, paragraphs, lists and tables as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from ..export.parts import Part, Table, Words

HEADING = re.compile(r"#{1,6}\s+(?P<text>.*?)\s*#*$")
ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?P<text>.*)$")
FENCE = re.compile(r"\s*(```|~~~)")
LINK = re.compile(r"\[([^\]]+)\]\([^)\s]*\)")
STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
CELL_END = re.compile(r"(?<!\\)\|")


def card_parts(card: str, name: str) -> list[Part]:
    """The parts of a card whose comments and pictures are gone; `name` is what its tables show."""
    return [part for kind, lines in _blocks(card.splitlines()) for part in _parts(kind, lines, name)]


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Lines that belong together, with what they are: a heading, an item, code, a table or text."""
    inside = False

    def kind(line: str) -> str:
        nonlocal inside
        if FENCE.match(line):
            inside = not inside
            return "fence"
        if inside:
            return "code"
        if not line.strip():
            return ""
        if line.lstrip().startswith("|"):
            return "table"
        return "heading" if HEADING.match(line) else "item" if ITEM.match(line) else "text"

    for found, group in groupby(lines, kind):
        yield found, list(group)


def _parts(kind: str, lines: list[str], name: str) -> Iterator[Part]:
    if kind == "table":
        headings, *rows = [_cells(line) for line in lines]
        yield Table(headings, [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)], name)
    elif kind == "text":
        yield Words(_plain(" ".join(map(str.strip, lines))), "picture", "text")
    elif kind == "code":
        yield from (Words(line, "picture", "text") for line in lines)
    elif kind == "heading":
        yield from (Words(_plain(HEADING.sub(r"\g<text>", line)), "picture", "heading") for line in lines)
    elif kind == "item":
        yield from (Words("• " + _plain(ITEM.sub(r"\g<text>", line)), "picture", "text") for line in lines)


def _cells(line: str) -> list[str]:
    """The cells of a row of a table, between its outer bars."""
    inner = line.strip().removeprefix("|")
    found = CELL_END.split(inner)
    return [_plain(cell.strip().replace("\\|", "|")) for cell in (found[:-1] if not found[-1].strip() else found)]


def _plain(text: str) -> str:
    """Words without the marks of their look; what stands in `code` is left alone."""
    parts = re.split(r"`([^`]*)`", text)
    parts[::2] = [LINK.sub(r"\1", STRONG.sub(r"\2", part)) for part in parts[::2]]
    return "".join(parts)
