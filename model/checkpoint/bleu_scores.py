"""scores.json beside a checkpoint: what `python -m model evaluate --keep SET` measured, for the card and the page."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..atomic_write import write_file
from ..language.say import say
from .card_section import CardSection

SCORES, CARD = "scores.json", "README.md"
SECTION = CardSection("scores", "python -m model evaluate --keep")


Protocol = Literal["raw", "tokenized"]
PROTOCOL_NAMES: dict[str, str] = {"raw": "cased, raw text", "tokenized": "lower-cased, tokenised"}


class ScoresError(ValueError):
    """A scores.json that cannot be read; the message names the file and the fault."""


@dataclass(frozen=True)
class Score:
    """One test set, scored once."""

    set: str
    """Its name for people, such as "Tatoeba dev"."""
    sentences: int
    beam: int
    protocol: Protocol
    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    step: int | None = None
    """The step of the snapshot that was scored; None for the released weights."""
    target_tokens_per_second: float | None = None
    """None where it was not measured."""

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two scores the same measurement."""
        return self.set, self.protocol, self.beam, self.step


def read_scores(folder: Path) -> tuple[Score, ...]:
    """Return the scores of a checkpoint's folder, in the order kept; none where there is no file. ScoresError."""
    path = folder / SCORES
    if not path.exists():
        return ()
    try:
        found = tuple(Score(**one) for one in json.loads(path.read_text(encoding="utf-8"))["scores"])
        if not all(map(_sound, found)):
            raise ValueError(say("a field has a value of the wrong type"))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ScoresError(
            say(
                '{folder}/{scores} is not a list of scores: it must hold {{"scores": [...]}}, as `python -m model '
                "evaluate --keep SET` writes it ({error}).",
                folder=folder.name,
                scores=SCORES,
                error=error,
            )
        ) from error
    return found


def keep_score(folder: Path, score: Score) -> tuple[Score, ...]:
    """Put a score into the folder's file, in place of the same measurement before, and its table into the card."""
    before = read_scores(folder)
    if any(one.key == score.key for one in before):
        after = tuple(score if one.key == score.key else one for one in before)
    else:
        after = (*before, score)
    text = json.dumps({"scores": [dataclasses.asdict(one) for one in after]}, indent=2, ensure_ascii=False)
    write_file(folder / SCORES, text + "\n")
    card = folder / CARD
    if card.exists():
        write_file(card, with_table(card.read_text(encoding="utf-8"), after))
    return after


def with_table(card: str, scores: Sequence[Score]) -> str:
    """Return a model card with its table of scores replaced; one without the two marks around it stays as it is."""
    return SECTION.replaced(card, table(scores))


def table(scores: Sequence[Score]) -> str:
    """Return the scores as Markdown, their signatures below."""
    lines = ["| set | beam | text | BLEU | chrF | tokens/s |", "|---|---:|---|---:|---:|---:|"]
    for one in scores:
        name = f"{one.set} ({one.sentences:,})" + ("" if one.step is None else f", snapshot of step {one.step:,}")
        speed = "" if one.target_tokens_per_second is None else f"{one.target_tokens_per_second:,.0f}"
        text = PROTOCOL_NAMES[one.protocol]
        lines.append(f"| {name} | {one.beam} | {text} | {one.bleu:.2f} | {one.chrf:.2f} | {speed} |")
    return "\n".join([*lines, "", *_signatures(scores), ""])


def _signatures(scores: Sequence[Score]) -> list[str]:
    """A line for each way of preparing the text."""
    found = dict.fromkeys((one.protocol, one.bleu_signature, one.chrf_signature) for one in scores)
    return [f"- {PROTOCOL_NAMES[protocol]}: BLEU `{bleu}`, chrF `{chrf}`" for protocol, bleu, chrf in found]


def _sound(score: Score) -> bool:
    texts = all(isinstance(one, str) for one in (score.set, score.bleu_signature, score.chrf_signature))
    numbers = all(isinstance(one, (int, float)) for one in (score.bleu, score.chrf, score.sentences, score.beam))
    free = isinstance(score.step, int | None) and isinstance(score.target_tokens_per_second, int | float | None)
    return texts and numbers and free and score.protocol in PROTOCOL_NAMES
