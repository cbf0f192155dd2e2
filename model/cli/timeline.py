"""`python -m model timeline`: every head measured at each snapshot of a training."""

from __future__ import annotations

import argparse
from pathlib import Path

from tqdm import tqdm

from ..atlas.build import LINES_A_PART
from ..atlas.corpus import Corpus
from ..atlas.places import NAMES
from ..checkpoint.files import folder_of
from ..checkpoint.load import load_checkpoint
from ..checkpoint.snapshots import snapshot_steps
from ..devices import chosen_device
from ..experiments.training_timeline import stops
from ..heads.timeline import timeline
from ..heads.timeline_table import FILE, Timeline, TimelineError
from ..language.say import number, say
from .columns import table
from .use import add_common
from .writable import check_writable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    parser.add_argument("--source", type=Path, required=True, help=say("one sentence a line"))
    parser.add_argument("--target", type=Path, required=True, help=say("their translations, line by line"))
    parser.add_argument(
        "--sentences",
        type=int,
        default=500,
        metavar="N",
        help=say("lines that are used (default {default})", default=500),
    )
    parser.add_argument(
        "--costs", action="store_true", help=say("switch off every head too, which takes most of the time")
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure, print how many heads carry each label, and keep the file beside the checkpoint."""
    folder = folder_of(arguments.checkpoint)
    check_writable(folder / FILE)
    if arguments.sentences < 1:
        raise ValueError(say("--sentences is a number above 0, not {sentences}.", sentences=arguments.sentences))
    if not snapshot_steps(folder):
        raise TimelineError(
            say("{folder} kept no snapshots of its training: train with `snapshots` in its recipe.", folder=folder.name)
        )
    checkpoint = load_checkpoint(arguments.checkpoint, chosen_device(arguments.device))
    corpus = Corpus.read(arguments.source, arguments.target, LINES_A_PART, arguments.sentences)
    found_stops = stops(checkpoint, folder)
    with tqdm(total=len(found_stops), unit=f" {say('snapshots')}") as bar:
        found = timeline(found_stops, corpus, arguments.costs, bar.update)
    found.write(folder)
    print(report(found))
    return 0


def report(found: Timeline) -> str:
    """How many heads carry each label, at each stop."""
    names = [say("released") if step is None else number(step, ",") for step in found.steps]
    counts = {name: found.labelled(place) for place, name in NAMES.items()}
    said = say(
        "{model}: heads by label on {sentences:,} sentences of {source}",
        model=found.model,
        sentences=found.sentences,
        source=found.source,
    )
    rows = [[say(name), *map(str, row)] for name, row in counts.items() if any(row)]
    return "\n".join([said, *table([[say("step"), *names], *rows])])
