"""`python -m model prune`: what is left of the translations as heads are taken away."""

from __future__ import annotations

import argparse
from pathlib import Path

from tqdm import tqdm

from ..checkpoint.files import folder_of
from ..devices import chosen_device
from ..heads.atlas import open_atlas, released_atlas
from ..heads.pruning import cost_order, points, prune
from ..heads.pruning_curves import FILE, Pruning
from ..translate import InputError, Translator
from .use import DEFAULT, read_lines
from .writable import check_writable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--checkpoint", default=DEFAULT, help=f"name below checkpoints/ or a folder (default {DEFAULT})"
    )
    parser.add_argument("--device", help="cpu or cuda (default: the GPU when there is one)")
    parser.add_argument("--source", type=Path, required=True, help="one sentence a line")
    parser.add_argument("--target", type=Path, required=True, help="their references, line by line")
    parser.add_argument("--atlas", type=Path, metavar="FOLDER", help="where costs are read (default: the released one)")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N lines")
    parser.add_argument("--sentences", type=int, default=500, metavar="N", help="lines that are used (default 500)")
    parser.add_argument("--points", type=int, default=13, metavar="N", help="numbers of heads, both ends included")
    parser.add_argument("--orders", type=int, default=5, metavar="N", help="random orders (default 5)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print a table, and keep the file beside the checkpoint."""
    if min(arguments.skip, arguments.orders - 1, arguments.sentences - 1, arguments.points - 2) < 0:
        raise ValueError("--skip is 0 or more, --orders and --sentences 1 or more, --points 2 or more.")
    folder = folder_of(arguments.checkpoint)
    check_writable(folder / FILE)
    translator = Translator.load(arguments.checkpoint, chosen_device(arguments.device))
    place = arguments.atlas or released_atlas(arguments.checkpoint)
    order = cost_order(open_atlas(place, folder.name, translator.checkpoint.hash))
    sides = [read_lines(path)[arguments.skip :][: arguments.sentences] for path in (arguments.source, arguments.target)]
    if len(sides[0]) != len(sides[1]) or not sides[0]:
        raise ValueError(
            f"From line {arguments.skip + 1} on there are {len(sides[0])} sources and {len(sides[1])} references; "
            "there must be as many of both, and one at least."
        )
    check_sentences(translator, sides[0], arguments.skip + 1)
    models = (arguments.orders + 1) * (len(points(len(order), arguments.points)) - 2) + 2
    with tqdm(total=models, unit=" models") as bar:
        found = prune(
            translator,
            list(zip(*sides, strict=True)),
            order,
            source=arguments.source.name,
            first_line=arguments.skip + 1,
            random_orders=arguments.orders,
            count=arguments.points,
            on_progress=bar.update,
        )
    found.write(folder)
    print(report(found))
    return 0


def check_sentences(translator: Translator, sentences: list[str], first_line: int) -> None:
    """Raise InputError, naming the line, for a sentence that the model cannot read."""
    for line, sentence in enumerate(sentences, first_line):
        try:
            translator.encode(sentence)
        except InputError as error:
            raise InputError(f"Line {line}: {error}") from error


def report(found: Pruning) -> str:
    """The curves as a table, and where they are kept."""
    lines = [
        f"{found.model} on {found.sentences:,} sentences of {found.source}, from line {found.first_line:,} on",
        "heads left   by cost: BLEU   log p   at random: BLEU (least to most)",
    ]
    for at, heads in enumerate(found.left):
        bleu = [one.bleu[at] for one in found.random]
        own = found.by_cost
        lines.append(
            f"{heads:10}   {own.bleu[at]:13.1f} {own.log_prob[at]:7.2f}   {min(bleu):14.1f} to {max(bleu):.1f}"
        )
    return "\n".join([*lines, found.signature])
