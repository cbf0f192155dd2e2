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
from ..language.say import number, say
from ..translate import InputError, Translator
from .columns import table
from .use import add_common, read_lines
from .writable import check_writable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    parser.add_argument("--source", type=Path, required=True, help=say("one sentence a line"))
    parser.add_argument("--target", type=Path, required=True, help=say("their references, line by line"))
    parser.add_argument(
        "--atlas", type=Path, metavar="FOLDER", help=say("where costs are read (default: the released one)")
    )
    parser.add_argument("--skip", type=int, default=0, metavar="N", help=say("leave out the first N lines"))
    parser.add_argument(
        "--sentences",
        type=int,
        default=500,
        metavar="N",
        help=say("lines that are used (default {default})", default=500),
    )
    parser.add_argument("--points", type=int, default=13, metavar="N", help=say("numbers of heads, both ends included"))
    parser.add_argument(
        "--orders", type=int, default=5, metavar="N", help=say("random orders (default {default})", default=5)
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure, print a table, and keep the file beside the checkpoint."""
    if min(arguments.skip, arguments.orders - 1, arguments.sentences - 1, arguments.points - 2) < 0:
        raise ValueError(say("--skip is 0 or more, --orders and --sentences 1 or more, --points 2 or more."))
    folder = folder_of(arguments.checkpoint)
    check_writable(folder / FILE)
    translator = Translator.load(arguments.checkpoint, chosen_device(arguments.device))
    place = arguments.atlas or released_atlas(arguments.checkpoint)
    order = cost_order(open_atlas(place, folder.name, translator.checkpoint.hash))
    sides = [read_lines(path)[arguments.skip :][: arguments.sentences] for path in (arguments.source, arguments.target)]
    if len(sides[0]) != len(sides[1]) or not sides[0]:
        raise ValueError(
            say(
                "From line {line} on there are {sources} sources and {references} references; there must be as many of "
                "both, and one at least.",
                line=arguments.skip + 1,
                sources=len(sides[0]),
                references=len(sides[1]),
            )
        )
    check_sentences(translator, sides[0], arguments.skip + 1)
    models = (arguments.orders + 1) * (len(points(len(order), arguments.points)) - 2) + 2
    with tqdm(total=models, unit=f" {say('models')}") as bar:
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
            raise InputError(say("Line {line}: {error}", line=line, error=error)) from error


def report(found: Pruning) -> str:
    """The curves as a table, and where they are kept."""
    said = say(
        "{model} on {sentences:,} sentences of {source}, from line {line:,} on",
        model=found.model,
        sentences=found.sentences,
        source=found.source,
        line=found.first_line,
    )
    rows = [[say("heads left"), say("by cost: BLEU"), "log p", say("at random: BLEU (least to most)")]]
    for at, heads in enumerate(found.left):
        bleu = [one.bleu[at] for one in found.random]
        own = found.by_cost
        ends = say("{least:.1f} to {most:.1f}", least=min(bleu), most=max(bleu))
        rows.append([str(heads), number(own.bleu[at], ".1f"), number(own.log_prob[at], ".2f"), ends])
    return "\n".join([said, *table(rows, texts=0), found.signature])
