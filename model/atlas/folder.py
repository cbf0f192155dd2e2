"""An atlas on disk: its manifest and tables, and the parts of one that is being built.

atlas.json            what it was made of, with the model's hash; what was left out; the size of every file
heads.parquet         a row a map x layer x head, a column a measure
halves.parquet        the same for the sentences of even and of odd numbers
sentences.parquet     a row a sentence
tags.parquet          the weight between parts of speech, of each head
costs.parquet         a row a sentence and head: what switching the head off costs
links/*.parquet       the heaviest keys of each row of each head
parts/                only while it is being built: the same tables of so many lines each
"""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ..atomic_write import write_file
from ..language.say import say
from ..text.words import START

FORMAT = "attenscope-atlas-2"
MANIFEST, PARTS = "atlas.json", "parts"
HEADS, HALVES, SENTENCES, TAG_MASS, COSTS, LINKS = "heads", "halves", "sentences", "tags", "costs", "links"
SINGLE = (HEADS, HALVES, SENTENCES, TAG_MASS, COSTS)
"""Tables of one file each."""
ATLAS = "atlas"
"""The folder of a released model's atlas, beside its weights."""


class AtlasError(ValueError):
    """An atlas that cannot be used or built; the message says why and what to do."""


@dataclass(frozen=True)
class Plan:
    """What an atlas is made of: only the same goes on."""

    model: str
    model_hash: str
    source: str
    """The name of the corpus, without its folder."""
    target: str
    """The same of the given translations; "" where the model made them."""
    lines: int
    lines_a_part: int
    corpus_sha256: str
    costs: bool
    least_weight: float = 0.0
    """Below which no link is kept."""

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return -(-self.lines // self.lines_a_part)


@dataclass(frozen=True)
class Manifest:
    """What atlas.json says."""

    plan: Plan
    complete: bool = False
    sentences: int = 0
    links: int = 0
    tokens: int = 0
    """Of all translations, </s> included."""
    seconds: float = 0.0
    """That the parts took, of all processes together."""
    skipped: dict[str, int] = field(default_factory=dict)
    skipped_lines: dict[str, list[int]] = field(default_factory=dict)
    """The first lines of each reason, from 1."""
    licence: str = ""
    """Of the corpus, with whom to name, in the words of whoever built the atlas."""
    start: str = START
    """The token that a target begins with when it is fed in."""
    files: dict[str, int] = field(default_factory=dict)
    """The size of every table in bytes, by its path in the folder."""

    def __post_init__(self) -> None:
        """Raise TypeError for a value of another kind than its default: a file may hold anything."""
        default = {one.name: one.default if one.default is not MISSING else {} for one in fields(self)[1:]}
        for name, usual in default.items():
            kinds = (int, float) if isinstance(usual, float) else type(usual)
            if not isinstance(getattr(self, name), kinds):
                raise TypeError(name)
        if not all(isinstance(size, int) for size in self.files.values()):
            raise TypeError("files")

    def write(self, folder: Path) -> None:
        """Write atlas.json, whole or not at all."""
        facts = {"format": FORMAT, **asdict(self)}
        write_file(folder / MANIFEST, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Return what atlas.json says. AtlasError."""
    path = folder / MANIFEST
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        if found.pop("format") != FORMAT:
            raise AtlasError(
                say(
                    "{path} was written by another version of this project ({format} is read here): build the atlas "
                    "again.",
                    path=path,
                    format=FORMAT,
                )
            )
        return Manifest(plan=Plan(**found.pop("plan")), **found)
    except FileNotFoundError as error:
        raise AtlasError(
            say(
                "There is no atlas in {folder}: make one with `python -m model atlas --source FILE --output {folder}`.",
                folder=folder,
            )
        ) from error
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        if isinstance(error, AtlasError):
            raise
        raise AtlasError(
            say("{path} is damaged ({error}): build the atlas again.", path=path, error=repr(error))
        ) from error


def check_complete(folder: Path, manifest: Manifest) -> None:
    """Raise AtlasError, naming the file, where a table is missing or is not as long as it was when it was written."""
    if not manifest.complete:
        raise AtlasError(
            say("The atlas in {folder} is not finished: the command that began it goes on with it.", folder=folder)
        )
    for name, size in manifest.files.items():
        path = folder / name
        if not _is_file(path):
            raise AtlasError(say("{path} is missing: restore the atlas from its source, or build it again.", path=path))
        if path.stat().st_size != size:
            raise AtlasError(
                say(
                    "{path} is damaged: it has {found:,} bytes and was written with {written:,}. Restore the atlas "
                    "from its source, or build it again.",
                    path=path,
                    found=path.stat().st_size,
                    written=size,
                )
            )


def _is_file(path: Path) -> bool:
    """Whether there is a file; also where no file could have that name."""
    try:
        return path.is_file()
    except OSError:
        return False


def check_model(manifest: Manifest, name: str, model_hash: str) -> None:
    """Raise AtlasError for the atlas of another model, or of the same before it was trained further."""
    if manifest.plan.model_hash != model_hash:
        raise AtlasError(
            say(
                "This atlas is of {of} with the hash {of_hash}; the model here is {model} with {hash}. Build an atlas "
                "of this one: `python -m model atlas --checkpoint {model} ...`",
                of=manifest.plan.model,
                of_hash=manifest.plan.model_hash,
                model=name,
                hash=model_hash,
            )
        )
