"""What a list says of a checkpoint: languages, what it is for, size and score. Nothing is loaded for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..language.say import say, to_say
from .bleu_scores import Score, read_scores
from .files import read_facts
from .preset_comparison import has_preset, parameter_count

PRESET_GROUP = to_say("Presets, trained alike")


@dataclass(frozen=True)
class Summary:
    """One checkpoint in a list."""

    name: str
    title: str
    """What it is, as its card says; "" where the card says nothing."""
    source_language: str
    """Its code, such as "en"; "" where the card does not name it. So is the target language."""
    target_language: str
    parameters: int
    score: Score | None
    """The first score kept of the released weights on raw text, with the widest beam; None where none is kept."""
    preset: bool
    """Whether its recipe starts from a preset."""


def summary(folder: Path) -> Summary:
    """Return what a list says of a checkpoint. Raises a kind of ValueError for one that cannot be read."""
    card = {key: str(value) for key, value in read_facts(folder)["card"].items()}
    kept = [one for one in read_scores(folder) if one.step is None and one.protocol == "raw"]
    score = max(kept, key=lambda one: one.beam, default=None)
    languages = card.get("source_language", ""), card.get("target_language", "")
    preset = has_preset(folder)
    return Summary(folder.name, card.get("title", ""), *languages, parameter_count(folder), score, preset)


def grouped(found: Iterable[Summary], names: Mapping[str, str]) -> dict[str, list[Summary]]:
    """Return checkpoints by direction, in the words of `names` (code -> language); those of presets by themselves."""
    groups: dict[str, list[Summary]] = {}
    for one in sorted(found, key=lambda one: one.preset):
        source, target = (names.get(code, code) for code in (one.source_language, one.target_language))
        direction = f"{source} → {target}".strip(" →") or say("Others")
        groups.setdefault(say(PRESET_GROUP) if one.preset else direction, []).append(one)
    return groups
