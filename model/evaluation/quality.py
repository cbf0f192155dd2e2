"""Evaluate translation quality: BLEU and chrF, by phenomenon, in sentence tables and card quotes, and in 8 bits."""

from __future__ import annotations

import dataclasses
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch

from ..atomic_write import write_file
from ..checkpoint.load import CHECKPOINTS_FOLDER, Checkpoint, build_model, unique_weights
from ..checkpoint.measurements import CardSection, Score
from ..decoding.beam import BeamStop
from ..fast_linear import reorder_linear_weights
from ..language import replace_commands_when_installed, say, to_say
from ..network.transformer import Transformer
from ..text.words import is_cjk, split_words
from ..translate import Translator

if TYPE_CHECKING:
    import sacrebleu

# Scores: sacreBLEU and chrF with their signatures, by sentence length, and speed.


LENGTH_RANGES = ((1, 5), (6, 10), (11, 15), (16, 25), (26, 10_000))
"""Words of the source sentence, both ends included; a Chinese or Japanese character is one."""


@dataclass(frozen=True)
class Evaluation:
    """Scores of one checkpoint on one test set; :meth:`as_json` is what `--json` prints."""

    checkpoint: str
    beam: int
    sentences: int
    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    by_length: tuple[tuple[str, int, float], ...]
    """(words of the source, sentences, BLEU)"""
    seconds: float
    target_tokens_per_second: float

    def as_json(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "by_length": [dict(zip(("words", "sentences", "bleu"), row, strict=True)) for row in self.by_length],
        }

    def score(self, name: str, step: int | None = None) -> Score:
        """Return the part that is kept beside the checkpoint; `name` is that of the set, `step` that of a snapshot."""
        shared = {field.name for field in dataclasses.fields(Score)} & set(self.__dict__)
        return Score(set=name, step=step, **{field: self.__dict__[field] for field in shared})


def evaluate_translator(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    beam: int = 1,
    stop: BeamStop = "early",
) -> tuple[Evaluation, list[str]]:
    """Translate and score: cased sacreBLEU with its own tokenisation (13a, or zh for Chinese) and chrF.

    Returns the translations as well. Raises ValueError where the lines do not fit together.
    """
    if len(sources) != len(references) or not sources:
        raise ValueError(
            say(
                "There are {sources} source lines and {references} reference lines; there must be as many of both, and "
                "one at least.",
                sources=len(sources),
                references=len(references),
            )
        )
    import sacrebleu  # only who measures needs it, not who runs the app

    started = time.perf_counter()
    written = translator.translate_batch(sources, beam, stop)
    seconds = time.perf_counter() - started
    tokens = sum(len(ids) for ids in translator.tokenizer.encode_ids(written))
    against = list(references)
    metric = make_bleu_metric(read_target_language(translator))
    chrf = sacrebleu.CHRF()
    result = Evaluation(
        checkpoint=translator.name,
        beam=beam,
        sentences=len(sources),
        bleu=round(metric.corpus_score(written, [against]).score, 2),
        bleu_signature=str(metric.get_signature()),
        chrf=round(chrf.corpus_score(written, [against]).score, 2),
        chrf_signature=str(chrf.get_signature()),
        by_length=_score_by_length(metric, sources, written, against),
        seconds=round(seconds, 1),
        target_tokens_per_second=round(tokens / seconds, 1),
    )
    return result, written


def read_target_language(translator: Translator) -> str:
    """Return the code of the language that a checkpoint writes, as its card says; English where it does not."""
    return str(translator.card.get("target_language", "en"))


def make_bleu_metric(target_language: str) -> sacrebleu.BLEU:
    """Return BLEU with the tokenisation that fits the language: 13a takes a Chinese sentence for one word."""
    import sacrebleu  # only who measures needs it, not who runs the app

    return sacrebleu.BLEU(tokenize="zh" if target_language == "zh" else "13a")


def _score_by_length(
    metric: sacrebleu.BLEU, sources: Sequence[str], scored: Sequence[str], against: Sequence[str]
) -> tuple[tuple[str, int, float], ...]:
    words = [_count_length(source) for source in sources]
    rows = []
    for low, high in LENGTH_RANGES:
        chosen = [i for i, count in enumerate(words) if low <= count <= high]
        if chosen:
            score = metric.corpus_score([scored[i] for i in chosen], [[against[i] for i in chosen]]).score
            rows.append((f"{low} to {high}" if high < 10_000 else f"{low} or more", len(chosen), round(score, 2)))
    return tuple(rows)


def _count_length(text: str) -> int:
    """The words between spaces; where a text has Chinese or Japanese, which has no spaces, its characters are words."""
    if not any(map(is_cjk, text)):
        return len(text.split())
    return sum(any(map(str.isalnum, word)) for word in split_words(text))


def describe_evaluation(result: Evaluation) -> str:
    """Return the scores as lines for people."""
    lines = [
        say(
            "{model} · {sentences} sentences · beam {beam}",
            model=result.checkpoint,
            sentences=result.sentences,
            beam=result.beam,
        ),
        f"BLEU {result.bleu}   {result.bleu_signature}",
        f"chrF {result.chrf}   {result.chrf_signature}",
        say(
            "{tokens} target tokens a second ({seconds} s)",
            tokens=result.target_tokens_per_second,
            seconds=result.seconds,
        ),
    ]
    by_length = to_say("{words} words: BLEU {bleu} ({count} sentences)")
    lines += [f"  {say(by_length, words=words, bleu=bleu, count=count)}" for words, count, bleu in result.by_length]
    return "\n".join(lines)


# Sentences by phenomenon, with references: what a model can be trusted with, and how a person has read it.
#
# `checkpoints/phenomena.SOURCE-TARGET.tsv` holds a phenomenon, a sentence and a reference a line; none of the
# sentences is training text. What a person thinks of a translation is kept beside the model, in readings.json, with
# the translation that was read: once the model writes another, the reading no longer counts.


READINGS_FILE = "readings.json"
PHENOMENA_SECTION = CardSection("phenomena", "python -m model quality")


class PhenomenaError(ValueError):
    """A file of sentences or readings that cannot be used; the message says which line and why."""


class PhenomenonItem(NamedTuple):
    """One sentence of a kind."""

    phenomenon: str
    source: str
    reference: str


Verdict = Literal["right", "wrong", "unsure"]


class Reading(NamedTuple):
    """What two readers who did not see each other thought of a translation, and a third where they differ."""

    translation: str
    right: tuple[bool, ...]
    """Whether a teacher would accept it: what it says, and its grammar."""

    @property
    def verdict(self) -> Verdict:
        """What both say, or the third; ``unsure`` where they differ and no third has read it."""
        if len(set(self.right)) == 1:
            return "right" if self.right[0] else "wrong"
        return "unsure" if len(self.right) == 2 else "right" if self.right[2] else "wrong"


class TranslatedItem(NamedTuple):
    """A sentence, what a model wrote, and what was thought of it."""

    item: PhenomenonItem
    translation: str
    reading: Reading | None

    @property
    def verdict(self) -> Verdict | Literal[""]:
        """That of its reading; "" where it was not read."""
        return self.reading.verdict if self.reading else ""

    @property
    def marked_verdict(self) -> str:
        """The same, with a mark where a third reader decided."""
        return f"{self.verdict}, by a third reader" if self.reading and len(self.reading.right) > 2 else self.verdict


def read_phenomenon_items(path: Path) -> list[PhenomenonItem]:
    """The sentences of a file. Raises PhenomenaError for a line without three columns."""
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
        items.append(PhenomenonItem(*cells))
    return items


def read_translation_judgements(path: Path) -> dict[str, Reading]:
    """Readings by sentence; none where there is no file. Raises PhenomenaError for a file that holds no readings."""
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {source: _parse_reading(one) for source, one in found.items()}
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise PhenomenaError(
            say("{path} holds no readings ({error}): restore it from its source.", path=path, error=repr(error))
        ) from error


def _parse_reading(reading: Mapping[str, Any]) -> Reading:
    """The reading of two, and of a third where these differ."""
    first, second, *third = (one is True for one in reading["right"])
    return Reading(str(reading["translation"]), (first, second, *(third[:1] if first != second else ())))


def write_translation_judgements(path: Path, readings: Mapping[str, Reading]) -> None:
    """Write what :func:`read_translation_judgements` reads, a sentence a line."""
    lines = [
        f"  {json.dumps(source, ensure_ascii=False)}: {json.dumps(one._asdict(), ensure_ascii=False)}"
        for source, one in readings.items()
    ]
    write_file(path, "{\n" + ",\n".join(lines) + "\n}\n")


def attach_translation_judgements(
    items: Sequence[PhenomenonItem], translations: Sequence[str], readings: Mapping[str, Reading]
) -> list[TranslatedItem]:
    """Return each sentence with its translation, and its reading where that very translation was read."""
    found = []
    for item, translation in zip(items, translations, strict=True):
        reading = readings.get(item.source)
        found.append(
            TranslatedItem(item, translation, reading if reading and reading.translation == translation else None)
        )
    return found


def format_phenomena_table(found: Sequence[TranslatedItem], beam: int) -> str:
    """Return Markdown: a row a phenomenon with its chrF and how many were read as right, then every sentence."""
    lines = ["| phenomenon | sentences | chrF | read as right |", "|---|---:|---:|---:|"]
    names = dict.fromkeys(one.item.phenomenon for one in found)
    lines += [_phenomenon_row(name, [one for one in found if one.item.phenomenon == name]) for name in names]
    lines += [_phenomenon_row("all", found), "", f"Translated with beam {beam}.", ""]
    lines += ["| sentence | translation | reference | read as |", "|---|---|---|---|"]
    for one in found:
        cells = one.item.source, one.translation, one.item.reference, one.marked_verdict
        lines.append(f"| {' | '.join(map(_escape_cell, cells))} |")
    return "\n".join(lines)


def replace_phenomena_table(card: str, found: Sequence[TranslatedItem], beam: int) -> str:
    """Return a card with the table between its marks; one without them stays as it is."""
    return (
        PHENOMENA_SECTION.replace_section(card, format_phenomena_table(found, beam))
        if PHENOMENA_SECTION.begin in card
        else card
    )


def _phenomenon_row(name: str, found: Sequence[TranslatedItem]) -> str:
    import sacrebleu  # only who measures needs it, not who runs the app

    score = sacrebleu.CHRF().corpus_score([one.translation for one in found], [[one.item.reference for one in found]])
    read = [one for one in found if one.reading]
    right = sum(one.verdict == "right" for one in read)
    said = f"{right} of {len(read)}" if read else ""
    return f"| {name} | {len(found)} | {score.score:.1f} | {said} |"


# Fixed everyday sentences as a table to be read: a regression shows here before it shows in a score.


def format_sample_translation_table(
    translator: Translator, sentences: Sequence[str], checkpoint: str, beam: int = 4
) -> str:
    """Return Markdown: each sentence with the greedy translation, and the beam's where it differs.

    `checkpoint` is the name or the folder that the translator was loaded by.
    """
    greedy, best = translator.translate_batch(sentences), translator.translate_batch(sentences, beam=beam)
    lines = [
        f"# {translator.name} on {len(sentences)} everyday sentences",
        "",
        f"Made by `{replace_commands_when_installed('python -m model quality')} --checkpoint {checkpoint}`.",
        "",
        f"| source | greedy | beam {beam}, where it differs |",
        "|---|---|---|",
    ]
    for source, one, other in zip(sentences, greedy, best, strict=True):
        cells = source, one, other if other != one else ""
        lines.append(f"| {' | '.join(map(_escape_cell, cells))} |")
    return "\n".join([*lines, ""])


# Translations that a model card quotes, written into it by the model that the card is of.
#
# They stand in a table between two marks. A person writes its first column, the sentences, and its last, what is to be
# seen; `python -m model quality` fills in the translations between them, so that a card quotes what its model writes.


QUOTES_SECTION = CardSection("quotes", "python -m model quality")
_CELL_BORDER = re.compile(r"(?<!\\)\|")


def read_card_translations(card: str) -> tuple[tuple[str, str], ...]:
    """Return the sentences of a card's table with their translations there; none where there is no table."""
    return tuple((cells[0], cells[1]) for cells in map(_split_cells, _list_card_table_rows(card)))


def retranslate_card_table(card: str, translate: Callable[[str], str]) -> str:
    """Return a card with every translation of its table made again; one without the two marks stays as it is."""
    for row in _list_card_table_rows(card):
        sentence, _, *remarks = _split_cells(row)
        card = card.replace(row, f"| {' | '.join(map(_escape_cell, (sentence, translate(sentence), *remarks)))} |")
    return card


def _list_card_table_rows(card: str) -> list[str]:
    """The lines of the table below its heading."""
    return [line for line in QUOTES_SECTION.text(card).splitlines() if line.startswith("|")][2:]


def _split_cells(row: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL_BORDER.split(row)[1:-1]]


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|")


# Training text between what a model writes and a reference: sequence-level interpolation, Kim and Rush (2016),
# arXiv 1606.07947, section 3.3.


LEAST_CHRF = 60.0
"""chrF++ below which a hypothesis says something else than the reference more often than the same in other words."""


def choose_closest(hypotheses: Sequence[str], reference: str, source: str) -> str:
    """Return the hypothesis with the highest chrF++ (Popović 2017) against the reference, of equals the first.

    A hypothesis that lost one of the :func:`count_shared_names_and_numbers` does not count: a name is a small part of a
    score, and a model that learns from its own slips of names slips more often. The reference stays where no hypothesis
    is left with at least :data:`LEAST_CHRF`.
    """
    import sacrebleu  # only who measures needs it, not who runs the app

    kept = count_shared_names_and_numbers(source, reference)
    left = [one for one in hypotheses if kept <= _count_words(one)]
    chrf = sacrebleu.CHRF(word_order=2)
    scores = [100.0 if one == reference else chrf.sentence_score(one, [reference]).score for one in left]
    best = max(scores, default=0.0)
    return left[scores.index(best)] if best >= LEAST_CHRF else reference


def count_shared_names_and_numbers(source: str, reference: str) -> Counter[str]:
    """Return the names and numbers of a pair: words with a capital or a digit, as often as both sides have them."""
    shared = _count_words(source) & _count_words(reference)
    return Counter({word: count for word, count in shared.items() if re.search(r"\d", word) or word != word.lower()})


def _count_words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text))


# What a model loses in 8 bits a weight: its greedy BLEU beside that in half precision.


INT8_FILE = "int8.json"


@dataclass(frozen=True)
class EightBits:
    """What was measured of one checkpoint."""

    model_hash: str
    source: str
    """The text: its folder and file."""
    sentences: int
    half: float
    """Greedy BLEU in half precision."""
    int8: float


def quantise_rows(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the scales (R,) float32 and the whole numbers (R, C) int8 whose product is nearest to `values` (R, C)."""
    scales = (np.abs(values).max(1) / 127).astype(np.float32)
    return scales, np.rint(values / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)


def measure_int8_quality(translator: Translator, pairs: Sequence[tuple[str, str]], source: str) -> EightBits:
    """Translate the sources of `pairs` greedily with the model's weights, and with its matrices in 8 bits."""
    checkpoint, metric = translator.checkpoint, make_bleu_metric(read_target_language(translator))
    small = Translator(dataclasses.replace(checkpoint, model=_round_to_8_bits(checkpoint)))
    sources, references = (list(side) for side in zip(*pairs, strict=True))
    half, int8 = (
        round(metric.corpus_score(one.translate_batch(sources), [references]).score, 2) for one in (translator, small)
    )
    return EightBits(checkpoint.hash, source, len(pairs), half, int8)


def _round_to_8_bits(checkpoint: Checkpoint) -> Transformer:
    """The model with every matrix rounded to 8 bits."""
    weights = unique_weights(checkpoint.model)
    for name, weight in weights.items():
        if weight.ndim == 2:
            scales, numbers = quantise_rows(weight.cpu().numpy())
            weights[name] = torch.from_numpy(scales[:, None] * numbers)
    model = build_model(checkpoint.model.config, weights, checkpoint.name)
    reorder_linear_weights(model.to(next(checkpoint.model.parameters()).device))
    return model


def write_int8_quality(folder: Path, found: EightBits) -> None:
    """Write int8.json into a checkpoint's folder."""
    write_file(folder / INT8_FILE, json.dumps(dataclasses.asdict(found), indent=2, ensure_ascii=False) + "\n")


def read_all_int8_quality(folder: Path = CHECKPOINTS_FOLDER) -> Mapping[str, EightBits]:
    """Return what was measured of the checkpoints in a folder, by the hash of their weights."""
    found = [
        EightBits(**json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob(f"*/{INT8_FILE}"))
    ]
    return {one.model_hash: one for one in found}
