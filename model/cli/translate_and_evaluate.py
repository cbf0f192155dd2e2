"""The commands `translate`, `trace`, `evaluate`, `quality`, `familiarity`, `check`, and shared helpers."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unicodedata import east_asian_width

import torch

from ..atomic_write import write_file
from ..checkpoint.load import CHECKPOINTS_FOLDER, CheckpointError, find_checkpoint_folder, list_checkpoints
from ..checkpoint.measurements import CARD_FILE, save_score
from ..checkpoint.snapshots import load_snapshot
from ..decoding.beam import BEAM_STOPS
from ..devices import available_devices, choose_device, limit_to_one_thread
from ..evaluation.device_check import DeviceCheck, compare_device_with_cpu
from ..evaluation.in_domain_detection import (
    FAMILIARITY_FILE,
    describe_familiarity,
    measure_familiarity,
    write_familiarity,
)
from ..evaluation.quality import (
    PHENOMENA_SECTION,
    READINGS_FILE,
    attach_translation_judgements,
    choose_closest,
    describe_evaluation,
    evaluate_translator,
    format_sample_translation_table,
    read_card_translations,
    read_phenomenon_items,
    read_translation_judgements,
    replace_phenomena_table,
    retranslate_card_table,
)
from ..language import SOURCE_LANGUAGE, format_number, join_items, say, to_say, use_language
from ..training.data import SentencePair, read_pairs
from ..translate import Translator

DEFAULT_CHECKPOINT = "everyday-en-de"
READING_BEAM = 4
"""The beam width of the translations that people read sentence by sentence."""


def add_translate_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_and_device_arguments(parser)
    _add_beam_arguments(parser)
    parser.add_argument(
        "--closest-to",
        type=Path,
        metavar="FILE",
        help=say(
            "of a line's hypotheses, write the one closest to the same line of this file (chrF++), and that line where "
            "none is close"
        ),
    )


def add_trace_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_and_device_arguments(parser)
    parser.add_argument("sentence")
    parser.add_argument("--output", type=Path, required=True, help=say("the trace, a safetensors file"))


def add_evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_and_device_arguments(parser)
    parser.add_argument("--source", type=Path, required=True, help=say("one sentence a line"))
    parser.add_argument("--reference", type=Path, required=True, help=say("line N translates line N of the source"))
    _add_beam_arguments(parser)
    parser.add_argument("--json", action="store_true", help=say("print one JSON object"))
    parser.add_argument("--output", type=Path, help=say("write the translations here, one a line"))
    parser.add_argument("--step", type=int, help=say("score the snapshot of this training step"))
    parser.add_argument(
        "--keep", metavar="SET", help=say("put the score into the checkpoint's scores.json under this name")
    )


def add_quality_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_and_device_arguments(parser)


def add_familiarity_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_and_device_arguments(parser)
    add_parallel_text_arguments(parser)
    parser.add_argument(
        "--sentences", type=int, default=500, help=say("how many sentences (default {default})", default=500)
    )


def add_parallel_text_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the parallel text to measure on."""
    parser.add_argument("--data", type=Path, required=True, help=say("a data folder, as train takes it"))
    parser.add_argument("--split", default="dev", help=say("the text to measure on: SPLIT.en, SPLIT.de (default dev)"))
    parser.add_argument("--set", help=say("its name for people (default: folder and split)"))


def load_parallel_text_pairs(arguments: argparse.Namespace, translator: Translator) -> tuple[list[SentencePair], str]:
    """Return the pairs of the text that the arguments name, in the translator's languages, and its name for people."""
    source, target = (str(translator.card.get(f"{side}_language", "")) for side in ("source", "target"))
    pairs = read_pairs([arguments.data], source, target, arguments.split)
    return pairs, arguments.set or f"{arguments.data.name} {arguments.split}"


def add_checkpoint_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a checkpoint."""
    parser.add_argument(
        "--checkpoint",
        default=DEFAULT_CHECKPOINT,
        help=say("name below checkpoints/ or a folder (default {default})", default=DEFAULT_CHECKPOINT),
    )


def add_checkpoint_and_device_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a checkpoint and the device it runs on."""
    add_checkpoint_argument(parser)
    parser.add_argument("--device", help=say("cpu or cuda (default: the GPU when there is one)"))


def _add_beam_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--beam", type=int, default=1, help=say("beam width (default 1: greedy)"))
    parser.add_argument(
        "--stop",
        choices=BEAM_STOPS,
        default="early",
        help=say(
            "end a beam search by the usual rule (early, the default), or when no better hypothesis can come (proven)"
        ),
    )


def _load_translator(arguments: argparse.Namespace) -> Translator:
    return Translator.load(arguments.checkpoint, choose_device(arguments.device))


def run_translate(arguments: argparse.Namespace) -> int:
    """Translate the lines of standard input to standard output; an empty line stays empty."""
    limit_to_one_thread()
    translator = _load_translator(arguments)
    lines = _split_lines(sys.stdin.read())
    references = read_lines(arguments.closest_to) if arguments.closest_to else []
    if arguments.closest_to and len(references) != len(lines):
        raise ValueError(
            say(
                "{file} has {references} lines and the text {lines}; there must be as many of both.",
                file=arguments.closest_to,
                references=len(references),
                lines=len(lines),
            )
        )
    full = [number for number, line in enumerate(lines) if line.strip()]
    found = translator.hypotheses_batch([lines[at] for at in full], arguments.beam, arguments.stop)
    hypotheses = dict(zip(full, found, strict=True))
    for number in range(len(lines)):
        written = hypotheses.get(number, [""])
        print(choose_closest(written, references[number], lines[number]) if references else written[0])
    return 0


def run_trace(arguments: argparse.Namespace) -> int:
    limit_to_one_thread()
    check_writable(arguments.output)
    translation = _load_translator(arguments).translate(arguments.sentence)
    translation.trace.save(arguments.output)
    print(translation.text)
    return 0


def run_evaluate(arguments: argparse.Namespace) -> int:
    if arguments.output:
        check_writable(arguments.output)
    sources, references = (read_lines(path) for path in (arguments.source, arguments.reference))
    translator = _load_translator(arguments)
    if arguments.step is not None:
        translator = Translator(load_snapshot(translator.checkpoint, arguments.step, arguments.checkpoint))
    result, written = evaluate_translator(translator, sources, references, arguments.beam, arguments.stop)
    print(json.dumps(result.as_json(), ensure_ascii=False) if arguments.json else describe_evaluation(result))
    if arguments.keep:
        with use_language(SOURCE_LANGUAGE):
            save_score(find_checkpoint_folder(arguments.checkpoint), result.score(arguments.keep, arguments.step))
    if arguments.output:
        write_file(arguments.output, "\n".join(written) + "\n")
    return 0


def run_quality(arguments: argparse.Namespace) -> int:
    """Translate the fixed sentences of the checkpoint's source language, and what its card quotes."""
    folder = find_checkpoint_folder(arguments.checkpoint)
    path, card = folder / "sentences.md", folder / CARD_FILE
    for one in (path, card):
        check_writable(one)
    translator = _load_translator(arguments)
    sentences = _read_fixed_sentences(translator)
    name = folder.name if folder.parent == CHECKPOINTS_FOLDER else arguments.checkpoint
    with use_language(SOURCE_LANGUAGE):
        write_file(path, format_sample_translation_table(translator, sentences, name))
    print(say("Wrote {path}", path=path))
    if card.exists():
        text = retranslate_card_table(
            card.read_text(encoding="utf-8"), lambda sentence: translator.translate(sentence, capture=False).text
        )
        with use_language(SOURCE_LANGUAGE):
            write_file(card, _update_card_phenomena_table(text, translator, folder))
        print(say("Wrote {path}, translations quoted: {count}", path=card, count=len(read_card_translations(text))))
    return 0


def run_familiarity(arguments: argparse.Namespace) -> int:
    """Measure how probable a checkpoint finds its own translations; write the result beside it and into its card."""
    folder = find_checkpoint_folder(arguments.checkpoint)
    check_writable(folder / FAMILIARITY_FILE)
    translator = _load_translator(arguments)
    found = measure_familiarity(translator, *load_parallel_text_pairs(arguments, translator), arguments.sentences)
    with use_language(SOURCE_LANGUAGE):
        write_familiarity(folder, found)
    print(describe_familiarity(found))
    print(say("Wrote {path}", path=folder / FAMILIARITY_FILE))
    return 0


def _update_card_phenomena_table(card: str, translator: Translator, folder: Path) -> str:
    """Return the card with its table of sentences by phenomenon renewed, where it has a place for one."""
    languages = (translator.card.get(f"{side}_language", "") for side in ("source", "target"))
    path = CHECKPOINTS_FOLDER / f"phenomena.{'-'.join(languages)}.tsv"
    if PHENOMENA_SECTION.begin not in card or not path.is_file():
        return card
    items = read_phenomenon_items(path)
    written = translator.translate_batch([one.source for one in items], beam=READING_BEAM)
    read = read_translation_judgements(folder / READINGS_FILE)
    return replace_phenomena_table(card, attach_translation_judgements(items, written, read), READING_BEAM)


def _read_fixed_sentences(translator: Translator) -> list[str]:
    path = CHECKPOINTS_FOLDER / f"sentences.{translator.card.get('source_language', '')}"
    if not path.is_file():
        there = join_items(sorted(one.name for one in CHECKPOINTS_FOLDER.glob("sentences.*"))) or say("none")
        raise CheckpointError(
            say(
                "There are no fixed sentences '{file}' for {model}; there are: {there}.",
                file=path.name,
                model=translator.name,
                there=there,
            )
        )
    return read_lines(path)


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text."""
    return _split_lines(path.read_text(encoding="utf-8"))


def _split_lines(text: str) -> list[str]:
    """Lines end at a line feed alone: a sentence may hold other characters that Unicode lets end one."""
    return text.removesuffix("\n").split("\n") if text else []


# `python -m model check`: every model on one device of this machine, compared with the CPU.


SENTENCES_CHECKED = 12
CHECK_COLUMNS = (
    to_say("model"),
    to_say("device"),
    to_say("same texts"),
    to_say("log-probs"),
    to_say("weights"),
    to_say("looking"),
    to_say("tokens/s"),
)


def add_check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", help=say("check this one alone (default: the GPU when there is one, else the CPU)"))
    parser.add_argument(
        "--checkpoint", action="append", metavar="NAME", help=say("check this one alone; may be repeated")
    )


def run_check(arguments: argparse.Namespace) -> int:
    """Print the devices and a table; return 1 where a model on the device differs from the same model on the CPU."""
    device = choose_device(arguments.device)
    limit_to_one_thread()
    print(
        say(
            "torch {version}; devices: {devices}. Checked: {device}.",
            version=torch.__version__,
            devices=join_items(map(_describe_device, available_devices())),
            device=device,
        )
    )
    print()
    print(_format_device_check_line((*map(say, CHECK_COLUMNS), "MiB", "")))
    found = []
    for check in _check_models(arguments.checkpoint or list_checkpoints(), device):
        found.append(check)
        print(_format_device_check_line(_format_device_check_cells(check)), flush=True)
    faulty = [one for one in found if one.faults]
    print()
    print(
        say(
            "{same} of {models} models are on {device} what they are on the CPU.",
            same=len(found) - len(faulty),
            models=len(found),
            device=device,
        )
    )
    return 1 if faulty else 0


def _check_models(names: list[str], device: torch.device) -> Iterator[DeviceCheck]:
    for name in names:
        cpu = Translator.load(name, "cpu")
        yield compare_device_with_cpu(cpu, Translator.load(name, device), _choose_device_check_sentences(cpu))


def _choose_device_check_sentences(translator: Translator) -> list[str]:
    """Return some of the fixed sentences of the model's language, or else its card's examples."""
    path = CHECKPOINTS_FOLDER / f"sentences.{translator.card.get('source_language', '')}"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    examples = translator.card.get("examples") or []
    texts = lines or ([examples] if isinstance(examples, str) else list(examples))
    return texts[:: max(1, len(texts) // SENTENCES_CHECKED)][:SENTENCES_CHECKED]


def _describe_device(device: str) -> str:
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.startswith("cuda") else device


def _format_device_check_cells(check: DeviceCheck) -> tuple[str, ...]:
    looking = (
        say("unchanged")
        if check.observer.difference == 0
        else f"{check.observer.path}, {format_number(check.observer.difference, '.0e')}"
    )
    same = say("{same} of {sentences}", same=check.same, sentences=check.sentences)
    numbers = (format_number(check.log_probs, ".0e"), format_number(check.weights, ".0e"), looking)
    speed = (format_number(check.tokens_per_second, ",.0f"), format_number(check.memory / 2**20, ".0f"))
    return check.model, check.device, same, *numbers, *speed, "; ".join(check.faults) or say("ok")


def _format_device_check_line(cells: tuple[str, ...]) -> str:
    widths = (18, 7, 10, 9, 8, 12, 8, 5, 2)
    return "  ".join(align_left(cell, places) for cell, places in zip(cells, widths, strict=True)).rstrip()


# Text in columns, as wide as a terminal draws it: a Chinese character takes two places.


def count_terminal_columns(text: str) -> int:
    """Return the number of places that a text takes in a terminal."""
    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def align_left(text: str, places: int) -> str:
    """Return a text filled up with spaces behind it."""
    return text + " " * (places - count_terminal_columns(text))


def align_right(text: str, places: int) -> str:
    """Return a text filled up with spaces before it."""
    return " " * (places - count_terminal_columns(text)) + text


def format_table(rows: Sequence[Sequence[str]], texts: int = 1) -> list[str]:
    """Return rows of cells as aligned lines: the first `texts` columns flush left, then numbers flush right."""
    widths = [max(map(count_terminal_columns, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            (align_left if at < texts else align_right)(cell, places)
            for at, (cell, places) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


# A command checks that its file can be written before it begins the work.


class WritableError(ValueError):
    """A file that cannot be written; the message says why and what to do."""


def check_writable(path: Path) -> None:
    """Raise WritableError where a file cannot be written. A file that is there stays as it is."""
    if path.is_dir():
        raise WritableError(say("'{path}' is a folder; name a file to write.", path=path))
    if not path.parent.is_dir():
        raise WritableError(
            say(
                "There is no folder '{parent}' to write {path} into; make it first.", parent=path.parent, path=path.name
            )
        )
    place = Path(os.path.realpath(path))  # As `write_file` does: a link stays one, to a file that is not there too.
    there = place.exists()
    with _raise_writable_error(path):
        place.open("ab").close()
        if not there:
            place.unlink()


def write_output(path: Path, content: bytes | str) -> None:
    """Write a file as :func:`.atomic_write.write_file` does. Raises WritableError, as where the disk is full."""
    with _raise_writable_error(path):
        write_file(path, content)


@contextmanager
def _raise_writable_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WritableError(
            say("'{path}' cannot be written: {strerror}.", path=path, strerror=error.strerror)
        ) from error
