"""`python -m model align`: the alignment error rate of every cross-attention head."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from tqdm import tqdm

from ..checkpoint.files import folder_of
from ..devices import chosen_device
from ..language.say import number, say
from ..translate import Translator
from ..word_alignment.gold import read_gold, released_gold
from ..word_alignment.links import GoldError
from ..word_alignment.measure import measure
from ..word_alignment.rates import FILE, Rate, Rates
from .columns import table
from .use import add_common
from .writable import check_writable

SHOWN = 10
"""Heads printed without --json."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    parser.add_argument(
        "--gold",
        type=Path,
        metavar="FOLDER",
        help=say("with source.txt, target.txt and links.txt (default: the released one of the model's languages)"),
    )
    parser.add_argument("--tokenized", action="store_true", help=say("words of the gold are parted by spaces"))
    parser.add_argument("--json", action="store_true", help=say("print one JSON object; layers and heads count from 0"))


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, and keep the file beside the checkpoint."""
    folder = folder_of(arguments.checkpoint)
    check_writable(folder / FILE)
    translator = Translator.load(arguments.checkpoint, chosen_device(arguments.device))
    source, target = (str(translator.card.get(f"{side}_language", "")) for side in ("source", "target"))
    place = arguments.gold or released_gold(source, target)
    if place is None:
        raise GoldError(
            say(
                "No gold alignment of {language} and {other} comes with the project: give one by --gold.",
                language=source,
                other=target,
            )
        )
    gold = read_gold(place, arguments.tokenized)
    with tqdm(total=len(gold.pairs), unit=f" {say('pairs')}", disable=arguments.json) as bar:
        found = measure(translator, gold, bar.update)
    found.write(folder)
    print(json.dumps(asdict(found), ensure_ascii=False) if arguments.json else report(found))
    return 0


def report(found: Rates) -> str:
    """The best heads and the means, for people."""
    heads = sorted((one for one in found.rates if one.part == "head"), key=lambda one: one.aer)
    facts = {"model": found.model, "pairs": found.pairs, "gold": found.gold}
    links = {"sure": found.sure, "possible": found.possible}
    said = (
        say(
            "{model} on {pairs} pairs of {gold}, {left_out} left out: {sure:,} sure links, {possible:,} possible",
            **facts,
            **links,
            left_out=found.left_out,
        )
        if found.left_out
        else say("{model} on {pairs} pairs of {gold}: {sure:,} sure links, {possible:,} possible", **facts, **links)
    )
    rows = [
        ["", say("AER"), "(95%)", say("link precision"), say("link recall")],
        *(_row(one) for one in (*heads[:SHOWN], found.best("layer"), found.best("all"))),
        [say("diagonal"), number(found.diagonal, ".1%"), "", "", ""],
        [say("best head, held out"), number(found.held_out, ".1%"), "", "", ""],
    ]
    return "\n".join([said, *(f"  {line}" for line in table(rows))])


def _row(one: Rate) -> list[str]:
    names = {
        "head": say("head {place}", place=f"{one.layer + 1}.{one.head + 1}"),
        "layer": say("mean of layer {layer}", layer=one.layer + 1),
        "all": say("mean of all"),
    }
    bounds = say("({low:.1%} to {high:.1%})", low=one.low, high=one.high)
    name = f"{names[one.part]}, {one.reading}"
    return [name, number(one.aer, ".1%"), bounds, number(one.precision, ".1%"), number(one.recall, ".1%")]
