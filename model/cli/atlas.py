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
from ..text.tags import MODELS
from ..translate import Translator
from .use import DEFAULT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--checkpoint", default=DEFAULT, help=f"name below checkpoints/ or a folder (default {DEFAULT})"
    )
    parser.add_argument("--device", help="cpu or cuda (default: the GPU when there is one)")
    parser.add_argument("--source", type=Path, required=True, help="one sentence a line")
    parser.add_argument("--target", type=Path, help="translations, line by line (default: the model translates)")
    parser.add_argument("--sentences", type=_positive, metavar="N", help="only the first N lines")
    parser.add_argument("--output", type=Path, required=True, help="the folder of the atlas")
    parser.add_argument("--part", type=_positive, default=LINES_A_PART, metavar="LINES",
                        help=f"lines that are written together, by one process (default {LINES_A_PART})")  # fmt: skip
    parser.add_argument("--no-costs", action="store_true",
                        help="do not switch off every head: most of the time is spent on that")  # fmt: skip
    parser.add_argument("--least-weight", type=float, default=0.0, metavar="W", help="keep no link below this weight")
    parser.add_argument("--licence", default="", metavar="TEXT", help="the corpus's licence and whom to name")


def run(arguments: argparse.Namespace) -> int:
    """Build an atlas, or go on with one that was begun."""
    share = Share.of_environment()
    for path in (arguments.source, arguments.target):
        if path is not None and not path.is_file():
            raise ValueError(f"There is no file {path}: give a text with one sentence a line.")
    if not 0 <= arguments.least_weight < 1:
        raise ValueError(f"--least-weight is a weight from 0 to 1, not {arguments.least_weight}.")
    translator = Translator.load(arguments.checkpoint, _device(arguments.device))
    corpus = Corpus.read(arguments.source, arguments.target, arguments.part, arguments.sentences)
    first = share.rank == 0
    if first and (missing := _untagged(translator)):
        print(missing)
    # Of the corpus each process has its share; the bar of the first shows its own.
    own = sum(min(corpus.size, corpus.lines - at) for at in range(share.rank * corpus.size, corpus.lines,
                                                                  share.world * corpus.size))  # fmt: skip
    with tqdm(total=own, unit=" lines", disable=not first) as bar:
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
    return (
        f"{Skipped(found.skipped, found.skipped_lines).sentence()}\n"
        f"{found.sentences:,} sentences, {found.links:,} links, {size:.1f} MB in {folder}; "
        f"{speed:.1f} sentences a second and process."
    )


def _device(name: str | None) -> torch.device:
    """The device asked for; on a machine with several GPUs each process of torchrun has its own."""
    device = chosen_device(name)
    if device == torch.device("cuda") and "LOCAL_RANK" in os.environ:
        return chosen_device(f"cuda:{os.environ['LOCAL_RANK']}")
    return device


def _untagged(translator: Translator) -> str:
    """Which languages of the model have no tagger, in words; "" where both have one."""
    languages = {str(translator.card.get(f"{side}_language", "")) for side in ("source", "target")}
    missing = sorted(one or "a language that the model card does not name" for one in languages - set(MODELS))
    known = " and ".join(sorted(MODELS))
    return f"Parts of speech are known for {known} alone; none for {', '.join(missing)}." if missing else ""


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return value
