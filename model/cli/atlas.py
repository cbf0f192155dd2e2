"""`python -m model atlas`: what every head does over a whole corpus, written as Parquet."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
from tqdm import tqdm

from ..atlas.build import LINES_A_PART, Share, build
from ..atlas.corpus import Corpus, Skipped
from ..atlas.folder import Manifest
from ..devices import chosen_device
from ..language.say import listed, say
from ..live.live_model import LiveModel
from ..text.tags import MODELS
from ..translate import Translator
from ..user_model import load
from .use import add_common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    parser.add_argument("--model", metavar="hf:FOLDER", help=say("a folder of Hugging Face instead of a checkpoint"))
    parser.add_argument("--source", type=Path, required=True, help=say("one sentence a line"))
    parser.add_argument("--target", type=Path, help=say("translations, line by line (default: the model translates)"))
    parser.add_argument("--sentences", type=_positive, metavar="N", help=say("only the first N lines"))
    parser.add_argument("--output", type=Path, required=True, help=say("the folder of the atlas"))
    parser.add_argument(
        "--part",
        type=_positive,
        default=LINES_A_PART,
        metavar="LINES",
        help=say("lines that are written together, by one process (default {lines})", lines=LINES_A_PART),
    )
    parser.add_argument(
        "--no-costs", action="store_true", help=say("do not switch off every head: most of the time is spent on that")
    )
    parser.add_argument(
        "--least-weight", type=float, default=0.0, metavar="W", help=say("keep no link below this weight")
    )
    parser.add_argument("--licence", default="", metavar="TEXT", help=say("the corpus's licence and whom to name"))


def run(arguments: argparse.Namespace) -> int:
    """Build an atlas, or go on with one that was begun."""
    share = Share.of_environment()
    for path in (arguments.source, arguments.target):
        if path is not None and not path.is_file():
            raise ValueError(say("There is no file {path}: give a text with one sentence a line.", path=path))
    if not 0 <= arguments.least_weight < 1:
        raise ValueError(
            say("--least-weight is a weight from 0 to 1, not {least_weight}.", least_weight=arguments.least_weight)
        )
    translator = _model(arguments)
    corpus = Corpus.read(arguments.source, arguments.target, arguments.part, arguments.sentences)
    first = share.rank == 0
    if first and (missing := _untagged(translator)):
        print(missing)
    # Of the corpus each process has its share; the bar of the first shows its own.
    own = sum(
        min(corpus.size, corpus.lines - at)
        for at in range(share.rank * corpus.size, corpus.lines, share.world * corpus.size)
    )
    with tqdm(total=own, unit=f" {say('lines')}", disable=not first) as bar:
        found = build(
            translator,
            corpus,
            arguments.output,
            costs=not arguments.no_costs,
            least_weight=arguments.least_weight,
            licence=arguments.licence,
            share=share,
            on_progress=bar.update,
        )
    if found is not None:
        print(report(found, arguments.output))
    return 0


def report(found: Manifest, folder: Path) -> str:
    """Return what an atlas holds, in words."""
    size = sum(found.files.values()) / 1e6
    speed = found.sentences / max(found.seconds, 1e-9)
    held = say(
        "{sentences:,} sentences, {links:,} links, {size:.1f} MB in {folder}; {speed:.1f} sentences a second and "
        "process.",
        sentences=found.sentences,
        links=found.links,
        size=size,
        folder=folder,
        speed=speed,
    )
    return f"{Skipped(found.skipped, found.skipped_lines).sentence()}\n{held}"


def _model(arguments: argparse.Namespace) -> LiveModel:
    """The checkpoint, or the translating model that ``--model`` names."""
    if not arguments.model:
        return Translator.load(arguments.checkpoint, _device(arguments.device))
    found = load(arguments.model)
    if not (isinstance(found, LiveModel) and found.can("translate")):
        raise ValueError(say("{model} has no encoder beside a decoder, so it has no atlas.", model=found.name))
    return found


def _device(name: str | None) -> torch.device:
    """The device asked for; on a machine with several GPUs each process of torchrun has its own."""
    device = chosen_device(name)
    if device == torch.device("cuda") and "LOCAL_RANK" in os.environ:
        return chosen_device(f"cuda:{os.environ['LOCAL_RANK']}")
    return device


def _untagged(translator: LiveModel) -> str:
    """Which languages of the model have no tagger, in words; "" where both have one."""
    languages = {str(translator.card.get(f"{side}_language", "")) for side in ("source", "target")}
    missing = sorted(one or say("a language that the model card does not name") for one in languages - set(MODELS))
    if not missing:
        return ""
    return say(
        "Parts of speech are known for these languages alone: {known}; none for {missing}.",
        known=listed(sorted(MODELS)),
        missing=listed(missing),
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(say("{text} is not a number above 0", text=text))
    return value
