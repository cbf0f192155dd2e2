"""Sentences by phenomenon, with references: what a model can be trusted with, and how a person has read it.

`checkpoints/phenomena.SOURCE-TARGET.tsv` holds a phenomenon, a sentence and a reference a line; none of the sentences
is training text. What a person thinks of a translation is kept beside the model, in readings.json, with the translation
that was read: once the model writes another, the reading no longer counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import sacrebleu

from ..atomic_write import write_file
from ..checkpoint.card_section import CardSection
from ..language.say import say

READINGS = "readings.json"
SECTION = CardSection("phenomena", "python -m model quality")


class PhenomenaError(ValueError):
    """A file of sentences or readings that cannot be used; the message says which line and why."""


class Item(NamedTuple):
    """One sentence of a kind."""

    phenomenon: str
    source: str
    reference: str


class Reading(NamedTuple):
    """What a person thought of a translation at two readings."""

    translation: str
    right: tuple[bool, bool]
    """Whether a teacher would accept it: what it says, and its grammar."""


class Translated(NamedTuple):
    """A sentence, what a model wrote, and what was thought of it."""

    item: Item
    translation: str
    reading: Reading | None

    @property
    def verdict(self) -> str:
        """``right`` or ``wrong`` where both readings say so, ``unsure`` where they part; "" where it was not read."""
        if self.reading is None:
            return ""
        first, second = self.reading.right
        return "unsure" if first != second else "right" if first else "wrong"


def read_items(path: Path) -> list[Item]:
    """The sentences of a file. PhenomenaError for a line without three columns."""
    items = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        cells = line.split("\t")
        if len(cells) != 3 or not all(cell.strip() for cell in cells):
            raise PhenomenaError(
                say(
                    "{file}, line {line}: write a phenomenon, a sentence and a reference, tabs between.",
                    file=path,
                    line=number,
                )
            )
        items.append(Item(*cells))
    return items


def read_readings(path: Path) -> dict[str, Reading]:
    """Readings by sentence; none where there is no file. PhenomenaError for a file that holds no readings."""
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {
            source: Reading(str(one["translation"]), (one["right"][0] is True, one["right"][1] is True))
            for source, one in found.items()
        }
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise PhenomenaError(
            say("{path} holds no readings ({error}): restore it from its source.", path=path, error=repr(error))
        ) from error


def write_readings(path: Path, readings: Mapping[str, Reading]) -> None:
    """Write what :func:`read_readings` reads, a sentence a line."""
    lines = [
        f"  {json.dumps(source, ensure_ascii=False)}: {json.dumps(one._asdict(), ensure_ascii=False)}"
        for source, one in readings.items()
    ]
    write_file(path, "{\n" + ",\n".join(lines) + "\n}\n")


def with_readings(
    items: Sequence[Item], translations: Sequence[str], readings: Mapping[str, Reading]
) -> list[Translated]:
    """Each sentence with its translation, and its reading where that very translation was read."""
    found = []
    for item, translation in zip(items, translations, strict=True):
        reading = readings.get(item.source)
        found.append(Translated(item, translation, reading if reading and reading.translation == translation else None))
    return found


def table(found: Sequence[Translated], beam: int) -> str:
    """Markdown: a row a phenomenon with its chrF and how many were read as right, then every sentence."""
    lines = ["| phenomenon | sentences | chrF | read as right |", "|---|---:|---:|---:|"]
    names = dict.fromkeys(one.item.phenomenon for one in found)
    lines += [_summary(name, [one for one in found if one.item.phenomenon == name]) for name in names]
    lines += [_summary("all", found), "", f"Translated with beam {beam}.", ""]
    lines += ["| sentence | translation | reference | read as |", "|---|---|---|---|"]
    for one in found:
        cells = one.item.source, one.translation, one.item.reference, one.verdict
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def with_table(card: str, found: Sequence[Translated], beam: int) -> str:
    """A card with the table between its marks; one without them stays as it is."""
    return SECTION.replaced(card, table(found, beam)) if SECTION.begin in card else card


def _summary(name: str, found: Sequence[Translated]) -> str:
    score = sacrebleu.CHRF().corpus_score([one.translation for one in found], [[one.item.reference for one in found]])
    read = [one for one in found if one.reading]
    right = sum(one.verdict == "right" for one in read)
    said = f"{right} of {len(read)}" if read else ""
    return f"| {name} | {len(found)} | {score.score:.1f} | {said} |"
