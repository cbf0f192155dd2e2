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
from .use import DEFAULT
from .writable import check_writable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--checkpoint", default=DEFAULT, help=f"name below checkpoints/ or a folder (default {DEFAULT})"
    )
    parser.add_argument("--device", help="cpu or cuda (default: the GPU when there is one)")
    parser.add_argument("--source", type=Path, required=True, help="one sentence a line")
    parser.add_argument("--target", type=Path, required=True, help="their translations, line by line")
    parser.add_argument("--sentences", type=int, default=500, metavar="N", help="lines that are used (default 500)")
    parser.add_argument("--costs", action="store_true", help="switch off every head too, which takes most of the time")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print how many heads carry each label, and keep the file beside the checkpoint."""
    folder = folder_of(arguments.checkpoint)
    check_writable(folder / FILE)
    if arguments.sentences < 1:
        raise ValueError(f"--sentences is a number above 0, not {arguments.sentences}.")
    if not snapshot_steps(folder):
        raise TimelineError(f"{folder.name} kept no snapshots of its training: train with `snapshots` in its recipe.")
    checkpoint = load_checkpoint(arguments.checkpoint, chosen_device(arguments.device))
    corpus = Corpus.read(arguments.source, arguments.target, LINES_A_PART, arguments.sentences)
    found_stops = stops(checkpoint, folder)
    with tqdm(total=len(found_stops), unit=" snapshots") as bar:
        found = timeline(found_stops, corpus, arguments.costs, bar.update)
    found.write(folder)
    print(report(found))
    return 0


def report(found: Timeline) -> str:
    """How many heads carry each label, at each stop."""
    names = ["released" if step is None else f"{step:,}" for step in found.steps]
    counts = {name: found.labelled(place) for place, name in NAMES.items()}
    lines = [f"{found.model}: heads by label on {found.sentences:,} sentences of {found.source}"]
    lines.append(f"{'step':32}" + "".join(f"{name:>10}" for name in names))
    lines += [f"{name:32}" + "".join(f"{one:10}" for one in row) for name, row in counts.items() if any(row)]
    return "\n".join(lines)
