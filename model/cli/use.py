"""`python -m model translate`, `trace`, `evaluate`, `quality` and `familiarity`: a checkpoint from the command line."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..atomic_write import write_file
from ..checkpoint.bleu_scores import CARD, Protocol, keep_score
from ..checkpoint.files import CheckpointError, folder_of
from ..checkpoint.load import FOLDER
from ..checkpoint.snapshots import load_snapshot
from ..decoding.beam_search import STOPS
from ..devices import chosen_device, one_thread_each
from ..evaluation.card_quotes import quotes, with_quotes
from ..evaluation.familiarity import FILE, measure, summary, write_familiarity
from ..evaluation.sentence_table import quality_table
from ..language.catalogue import SOURCE
from ..language.current import speaking
from ..language.say import listed, say
from ..training.data import Pair, read_pairs
from ..translate import Translator
from .writable import check_writable

DEFAULT = "everyday-en-de"
BEAM = 4
"""Of the translations that are read sentence by sentence."""


def add_translate(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    _add_beam(parser)
    parser.add_argument(
        "--closest-to",
        type=Path,
        metavar="FILE",
        help=say(
            "of a line's hypotheses, write the one closest to the same line of this file (chrF++), and that line where "
            "none is close"
        ),
    )


def add_trace(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    parser.add_argument("sentence")
    parser.add_argument("--output", type=Path, required=True, help=say("the trace, a safetensors file"))


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    parser.add_argument("--source", type=Path, required=True, help=say("one sentence a line"))
    parser.add_argument("--reference", type=Path, required=True, help=say("line N translates line N of the source"))
    _add_beam(parser)
    parser.add_argument(
        "--tokenized", action="store_true", help=say("lower-case, normalise and Moses-tokenise both sides")
    )
    parser.add_argument("--json", action="store_true", help=say("print one JSON object"))
    parser.add_argument("--output", type=Path, help=say("write the translations here, one a line"))
    parser.add_argument("--step", type=int, help=say("score the snapshot of this training step"))
    parser.add_argument(
        "--keep", metavar="SET", help=say("put the score into the checkpoint's scores.json under this name")
    )


def add_quality(parser: argparse.ArgumentParser) -> None:
    add_common(parser)


def add_familiarity(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    add_text(parser)
    parser.add_argument(
        "--sentences", type=int, default=500, help=say("how many sentences (default {default})", default=500)
    )


def add_text(parser: argparse.ArgumentParser) -> None:
    """Arguments that name the parallel text to measure on."""
    parser.add_argument("--data", type=Path, required=True, help=say("a data folder, as train takes it"))
    parser.add_argument("--split", default="dev", help=say("the text to measure on: SPLIT.en, SPLIT.de (default dev)"))
    parser.add_argument("--set", help=say("its name for people (default: folder and split)"))


def named_text(arguments: argparse.Namespace, translator: Translator) -> tuple[list[Pair], str]:
    """Return the pairs of the text that the arguments name, in the translator's languages, and its name for people."""
    source, target = (str(translator.card.get(f"{side}_language", "")) for side in ("source", "target"))
    pairs = read_pairs([arguments.data], source, target, arguments.split)
    return pairs, arguments.set or f"{arguments.data.name} {arguments.split}"


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """The argument that names a checkpoint."""
    parser.add_argument(
        "--checkpoint",
        default=DEFAULT,
        help=say("name below checkpoints/ or a folder (default {default})", default=DEFAULT),
    )


def add_common(parser: argparse.ArgumentParser) -> None:
    """Arguments that name a checkpoint and what it runs on."""
    add_checkpoint(parser)
    parser.add_argument("--device", help=say("cpu or cuda (default: the GPU when there is one)"))


def _add_beam(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--beam", type=int, default=1, help=say("beam width (default 1: greedy)"))
    parser.add_argument(
        "--stop",
        choices=STOPS,
        default="early",
        help=say(
            "end a beam search by the usual rule (early, the default), or when no better hypothesis can come (proven)"
        ),
    )


def _loaded(arguments: argparse.Namespace) -> Translator:
    return Translator.load(arguments.checkpoint, chosen_device(arguments.device))


def translate(arguments: argparse.Namespace) -> int:
    """Lines of standard input to lines of standard output; an empty line stays empty."""
    one_thread_each()
    translator = _loaded(arguments)
    lines = _split(sys.stdin.read())
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
        print(_closest(written, references[number], lines[number]) if references else written[0])
    return 0


def _closest(hypotheses: list[str], reference: str, source: str) -> str:
    from ..evaluation.interpolation import closest  # sacrebleu is asked only of those who train

    return closest(hypotheses, reference, source)


def trace(arguments: argparse.Namespace) -> int:
    one_thread_each()
    check_writable(arguments.output)
    translation = _loaded(arguments).translate(arguments.sentence)
    translation.trace.save(arguments.output)
    print(translation.text)
    return 0


def evaluate(arguments: argparse.Namespace) -> int:
    from ..evaluation.bleu import evaluate as score  # sacrebleu is asked only of those who evaluate
    from ..evaluation.bleu import report

    if arguments.output:
        check_writable(arguments.output)
    sources, references = (read_lines(path) for path in (arguments.source, arguments.reference))
    translator = _loaded(arguments)
    if arguments.step is not None:
        translator = Translator(load_snapshot(translator.checkpoint, arguments.step, arguments.checkpoint))
    protocol: Protocol = "tokenized" if arguments.tokenized else "raw"
    result, written = score(translator, sources, references, arguments.beam, protocol, arguments.stop)
    print(json.dumps(result.as_json(), ensure_ascii=False) if arguments.json else report(result))
    if arguments.keep:
        with speaking(SOURCE):
            keep_score(folder_of(arguments.checkpoint), result.score(arguments.keep, arguments.step))
    if arguments.output:
        write_file(arguments.output, "\n".join(written) + "\n")
    return 0


def quality(arguments: argparse.Namespace) -> int:
    """Translate the fixed sentences of the checkpoint's source language, and what its card quotes."""
    folder = folder_of(arguments.checkpoint)
    path, card = folder / "sentences.md", folder / CARD
    for one in (path, card):
        check_writable(one)
    translator = _loaded(arguments)
    sentences = _fixed_sentences(translator)
    with speaking(SOURCE):
        write_file(path, quality_table(translator, sentences, arguments.checkpoint))
    print(say("Wrote {path}", path=path))
    if card.exists():
        text = with_quotes(
            card.read_text(encoding="utf-8"), lambda sentence: translator.translate(sentence, capture=False).text
        )
        with speaking(SOURCE):
            write_file(card, _with_phenomena(text, translator, folder))
        print(say("Wrote {path}, translations quoted: {count}", path=card, count=len(quotes(text))))
    return 0


def familiarity(arguments: argparse.Namespace) -> int:
    """Measure how probable a checkpoint finds what it writes; keep it beside it, and in its card."""
    folder = folder_of(arguments.checkpoint)
    check_writable(folder / FILE)
    translator = _loaded(arguments)
    found = measure(translator, *named_text(arguments, translator), arguments.sentences)
    with speaking(SOURCE):
        write_familiarity(folder, found)
    print(summary(found))
    print(say("Wrote {path}", path=folder / FILE))
    return 0


def _with_phenomena(card: str, translator: Translator, folder: Path) -> str:
    """The card with the sentences by phenomenon of the model's two languages, where it has a place for them."""
    from ..evaluation import phenomena  # sacrebleu is asked only of those who evaluate

    languages = (translator.card.get(f"{side}_language", "") for side in ("source", "target"))
    path = FOLDER / f"phenomena.{'-'.join(languages)}.tsv"
    if phenomena.SECTION.begin not in card or not path.is_file():
        return card
    items = phenomena.read_items(path)
    written = translator.translate_batch([one.source for one in items], beam=BEAM)
    read = phenomena.read_readings(folder / phenomena.READINGS)
    return phenomena.with_table(card, phenomena.with_readings(items, written, read), BEAM)


def _fixed_sentences(translator: Translator) -> list[str]:
    path = FOLDER / f"sentences.{translator.card.get('source_language', '')}"
    if not path.is_file():
        there = listed(sorted(one.name for one in FOLDER.glob("sentences.*"))) or say("none")
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
    return _split(path.read_text(encoding="utf-8"))


def _split(text: str) -> list[str]:
    """Lines end at a line feed alone: a sentence may hold other characters that Unicode lets end one."""
    return text.removesuffix("\n").split("\n") if text else []
