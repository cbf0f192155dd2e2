"""Read and write the measurements beside a checkpoint: scores, history, JSON files and card sections."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from ..atomic_write import format_csv, write_file
from ..language import join_items, replace_commands_when_installed, say

# A measurement of a model: a JSON file beside it, which counts only for the very weights that were measured.


class Measurement(Protocol):
    """The content of a measurement file, which names its model."""

    @property
    def model(self) -> str: ...

    @property
    def model_hash(self) -> str: ...


M = TypeVar("M", bound=Measurement)


def hash_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the SHA-256 of sentences and their translations: UTF-8, a pair a line, a tab between its two sides."""
    digest = hashlib.sha256()
    for source, target in pairs:
        digest.update(f"{source}\t{target}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class MeasurementFile:
    """One kind of measurement file, and its error messages."""

    name: str
    format: str
    error: type[ValueError]
    command: str
    """What makes the file, for a message; ``{model}`` stands for the checkpoint's name."""
    missing: str
    """The message where there is no file; ``{model}`` and ``{how}``, the command, may stand in it."""

    def read(self, folder: Path, model: str, model_hash: str, made: Callable[[dict[str, Any]], M]) -> M:
        """Return what `made` makes of the file in a folder.

        Raises the error of this kind where there is no file, for one of another model or version, and where `made`
        raises: then the file is damaged.
        """
        path, how = folder / self.name, replace_commands_when_installed(self.command.format(model=model))
        try:
            found: Any = json.loads(path.read_text(encoding="utf-8"))
            if found.pop("format") != self.format:
                raise self.error(
                    say(
                        "{path} was written by another version of this project: measure again with `{how}`.",
                        path=path,
                        how=how,
                    )
                )
            measured = made(found)
        except FileNotFoundError as error:
            raise self.error(say(self.missing, model=model, how=how)) from error
        except (OSError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
            if isinstance(error, self.error):
                raise
            raise self.error(
                say("{path} is damaged ({error}): measure again with `{how}`.", path=path, error=repr(error), how=how)
            ) from error
        if measured.model_hash != model_hash:
            raise self.error(
                say(
                    "{path} is of {of} with the hash {of_hash}; the model here is {model} with {hash}: measure again "
                    "with `{how}`.",
                    path=path,
                    of=measured.model,
                    of_hash=measured.model_hash,
                    model=model,
                    hash=model_hash,
                    how=how,
                )
            )
        return measured


# history.csv: the course of a training, a row every so many steps.


HISTORY_FILE = "history.csv"


class HistoryError(ValueError):
    """A history that cannot be read; the message names the file and the fault."""


@dataclass(frozen=True)
class HistoryRow:
    """One line of history.csv."""

    step: int
    epoch: int
    loss: float
    """Label-smoothed cross-entropy a target token, mean since the last row."""
    rate: float
    tokens_per_second: float
    seconds: float
    """Training time since step 0, over all sessions."""
    bleu: float | None = None
    """Greedy sacreBLEU on the first `evaluate_sentences` of dev, or empty."""


HISTORY_COLUMNS = tuple(field.name for field in fields(HistoryRow))


def write_history(rows: Sequence[HistoryRow], path: Path) -> None:
    write_file(path, format_csv(HISTORY_COLUMNS, [tuple(asdict(row).values()) for row in rows]))


def read_history(folder: Path) -> tuple[HistoryRow, ...]:
    """Return the rows in a checkpoint's folder; none where there is no history. Raises HistoryError."""
    path = folder / HISTORY_FILE
    if not path.exists():
        return ()
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.DictReader(file)
            if not set(HISTORY_COLUMNS) <= set(lines.fieldnames or ()):
                raise ValueError("columns are missing")
            return tuple(map(_parse_row, lines))
    except (OSError, UnicodeDecodeError, csv.Error, KeyError, TypeError, ValueError) as error:
        raise HistoryError(
            say(
                "{folder}/{history} is not a training history: it must have the columns {names} and numbers in them.",
                folder=folder.name,
                history=HISTORY_FILE,
                names=join_items(HISTORY_COLUMNS),
            )
        ) from error


def _parse_row(line: dict[str, str]) -> HistoryRow:
    loss, rate, speed, seconds = (float(line[name]) for name in ("loss", "rate", "tokens_per_second", "seconds"))
    bleu = float(line["bleu"]) if line["bleu"] else None
    return HistoryRow(int(line["step"]), int(line["epoch"]), loss, rate, speed, seconds, bleu)


# A part of a model card that a command writes, between two marks.


class CardSection(NamedTuple):
    """The marks around what one command writes into a card."""

    name: str
    command: str
    """The command, which the first mark names for whoever reads the file."""

    @property
    def begin(self) -> str:
        """The line before the part."""
        return f"<!-- {self.name}: {self.command} -->\n"

    @property
    def end(self) -> str:
        """The line after it."""
        return f"<!-- end of {self.name} -->\n"

    @property
    def empty(self) -> str:
        """The place for it in a card that has nothing there yet."""
        return f"{self.begin}\n{self.end}"

    def text(self, card: str) -> str:
        """Return what stands between the marks of a card; empty where it lacks one of them."""
        _, _, rest = card.partition(self.begin)
        text, end, _ = rest.partition(self.end)
        return text if end else ""

    def replace_section(self, card: str, text: str) -> str:
        """Return a card with the part replaced; one that lacks a mark stays as it is."""
        before, _, rest = card.partition(self.begin)
        _, end, after = rest.partition(self.end)
        return f"{before}{self.begin}\n{text.strip()}\n\n{self.end}{after}" if end else card

    def put(self, card: str, heading: str, text: str) -> str:
        """Return a card with the part replaced, or added at the end below a heading."""
        if self.begin not in card:
            card = f"{card.rstrip()}\n\n## {heading}\n\n{self.empty}"
        return self.replace_section(card, text)


# scores.json beside a checkpoint: what `python -m model evaluate --keep SET` measured.


SCORES_FILE, CARD_FILE = "scores.json", "README.md"
SCORES_SECTION = CardSection("scores", "python -m model evaluate --keep")


class ScoresError(ValueError):
    """A scores.json that cannot be read; the message names the file and the fault."""


@dataclass(frozen=True)
class Score:
    """One test set, scored once."""

    set: str
    """Its name for people, such as "Tatoeba dev"."""
    sentences: int
    beam: int
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
        return self.set, self.beam, self.step


def read_scores(folder: Path) -> tuple[Score, ...]:
    """Return the scores of a checkpoint's folder, in the order kept; none where there is no file.

    Raises ScoresError.
    """
    path = folder / SCORES_FILE
    if not path.exists():
        return ()
    try:
        found = tuple(Score(**one) for one in json.loads(path.read_text(encoding="utf-8"))["scores"])
        if not all(map(_is_sound_score, found)):
            raise ValueError(say("a field has a value of the wrong type"))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ScoresError(
            say(
                '{folder}/{scores} is not a list of scores: it must hold {{"scores": [...]}}, as `python -m model '
                "evaluate --keep SET` writes it ({error}).",
                folder=folder.name,
                scores=SCORES_FILE,
                error=error,
            )
        ) from error
    return found


def save_score(folder: Path, score: Score) -> tuple[Score, ...]:
    """Put a score into the folder's file, in place of the same measurement before, and its table into the card."""
    before = read_scores(folder)
    if any(one.key == score.key for one in before):
        after = tuple(score if one.key == score.key else one for one in before)
    else:
        after = (*before, score)
    text = json.dumps({"scores": [asdict(one) for one in after]}, indent=2, ensure_ascii=False)
    write_file(folder / SCORES_FILE, text + "\n")
    card = folder / CARD_FILE
    if card.exists():
        write_file(card, replace_score_table(card.read_text(encoding="utf-8"), after))
    return after


def replace_score_table(card: str, scores: Sequence[Score]) -> str:
    """Return a model card with its table of scores replaced; one without the two marks around it stays as it is."""
    return SCORES_SECTION.replace_section(card, format_score_table(scores))


def format_score_table(scores: Sequence[Score]) -> str:
    """Return the scores as Markdown, their signatures below."""
    lines = ["| set | beam | BLEU | chrF | tokens/s |", "|---|---:|---:|---:|---:|"]
    for one in scores:
        name = f"{one.set} ({one.sentences:,})" + ("" if one.step is None else f", snapshot of step {one.step:,}")
        speed = "" if one.target_tokens_per_second is None else f"{one.target_tokens_per_second:,.0f}"
        lines.append(f"| {name} | {one.beam} | {one.bleu:.2f} | {one.chrf:.2f} | {speed} |")
    return "\n".join([*lines, "", *_signature_lines(scores), ""])


def _signature_lines(scores: Sequence[Score]) -> list[str]:
    """A line for each way of scoring."""
    found = dict.fromkeys((one.bleu_signature, one.chrf_signature) for one in scores)
    return [f"- BLEU `{bleu}`, chrF `{chrf}`" for bleu, chrf in found]


def _is_sound_score(score: Score) -> bool:
    texts = all(isinstance(one, str) for one in (score.set, score.bleu_signature, score.chrf_signature))
    numbers = all(isinstance(one, (int, float)) for one in (score.bleu, score.chrf, score.sentences, score.beam))
    free = isinstance(score.step, int | None) and isinstance(score.target_tokens_per_second, int | float | None)
    return texts and numbers and free
