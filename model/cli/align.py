"""`python -m model align`: the alignment error rate of every cross-attention head."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from tqdm import tqdm

from ..checkpoint.files import folder_of
from ..devices import chosen_device
from ..translate import Translator
from ..word_alignment.gold import read_gold, released_gold
from ..word_alignment.links import GoldError
from ..word_alignment.measure import measure
from ..word_alignment.rates import FILE, Rate, Rates
from .use import DEFAULT
from .writable import check_writable

SHOWN = 10
"""Heads printed without --json."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--checkpoint", default=DEFAULT, help=f"name below checkpoints/ or a folder (default {DEFAULT})"
    )
    parser.add_argument("--device", help="cpu or cuda (default: the GPU when there is one)")
    parser.add_argument("--gold", type=Path, metavar="FOLDER", help="with source.txt, target.txt and links.txt "
                        "(default: the released one of the model's languages)")  # fmt: skip
    parser.add_argument("--tokenized", action="store_true", help="words of the gold are parted by spaces")
    parser.add_argument("--json", action="store_true", help="print one JSON object; layers and heads count from 0")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, and keep the file beside the checkpoint."""
    folder = folder_of(arguments.checkpoint)
    check_writable(folder / FILE)
    translator = Translator.load(arguments.checkpoint, chosen_device(arguments.device))
    languages = tuple(str(translator.card.get(f"{side}_language", "")) for side in ("source", "target"))
    place = arguments.gold or released_gold(*languages)
    if place is None:
        raise GoldError(f"No gold alignment of {' and '.join(languages)} comes with the project: give one by --gold.")
    gold = read_gold(place, arguments.tokenized)
    with tqdm(total=len(gold.pairs), unit=" pairs", disable=arguments.json) as bar:
        found = measure(translator, gold, bar.update)
    found.write(folder)
    print(json.dumps(asdict(found), ensure_ascii=False) if arguments.json else report(found))
    return 0


def report(found: Rates) -> str:
    """The best heads and the means, for people."""
    heads = sorted((one for one in found.rates if one.part == "head"), key=lambda one: one.aer)
    left_out = f", {found.left_out} left out" if found.left_out else ""
    return "\n".join(
        [
            f"{found.model} on {found.pairs} pairs of {found.gold}{left_out}: {found.sure:,} sure links, "
            f"{found.possible:,} possible",
            "                            AER  (95%)          precision  recall",
            *(_line(one) for one in (*heads[:SHOWN], found.best("layer"), found.best("all"))),
            f"  {'diagonal':24} {found.diagonal:5.1%}",
            f"  {'best head, held out':24} {found.held_out:5.1%}",
        ]
    )


def _line(one: Rate) -> str:
    name = {
        "head": f"head {one.layer + 1}.{one.head + 1}",
        "layer": f"mean of layer {one.layer + 1}",
        "all": "mean of all",
    }
    return (
        f"  {f'{name[one.part]}, {one.reading}':24} {one.aer:5.1%}  ({one.low:.1%} to {one.high:.1%})  "
        f"{one.precision:9.1%}  {one.recall:6.1%}"
    )
