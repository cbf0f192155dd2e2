"""The command line of the project."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple


class Command(NamedTuple):
    """One command. Its module is loaded when it is asked for: ``diagnose`` needs neither a tokenizer nor torch."""

    text: str
    module: str
    arguments: str = "add_arguments"
    run: str = "run"
    package: str = __package__


COMMANDS = {
    "train": Command("train a checkpoint from a recipe", "cli.train"),
    "translate": Command("translate standard input, line by line", "cli.use", "add_translate", "translate"),
    "trace": Command("translate one sentence and save its attention", "cli.use", "add_trace", "trace"),
    "evaluate": Command("score a checkpoint on a test set", "cli.use", "add_evaluate", "evaluate"),
    "quality": Command(
        "write a model's fixed sentences and the quotes of its card",
        "cli.use",
        "add_quality",
        "quality",
    ),
    "why": Command("say what a word of a translation rests on", "cli.why"),
    "attribution": Command(
        "measure the attribution methods of a checkpoint and keep them beside it",
        "cli.why",
        "add_measure",
        "run_measure",
    ),
    "familiarity": Command(
        "measure how probable a checkpoint finds text of its own kind and other text, and keep it beside it",
        "cli.use",
        "add_familiarity",
        "familiarity",
    ),
    "check": Command("compare every model on this machine's GPU with the same model on the CPU", "cli.check"),
    "atlas": Command("measure what every head does over a corpus", "cli.atlas"),
    "heads": Command("say what an atlas tells of each head, and search it", "cli.heads"),
    "align": Command("hold every cross-attention head against a gold alignment, and keep the rates", "cli.align"),
    "prune": Command("take heads away one after another, and keep what is left beside the model", "cli.prune"),
    "timeline": Command("measure every head at each snapshot of a training, and keep it", "cli.timeline"),
    "diagnose": Command("say what is wrong with masks or attention weights", "cli.diagnose"),
}


def main(
    arguments: Sequence[str] | None = None,
    commands: Mapping[str, Command] = COMMANDS,
    program: str = f"python -m {__package__}",
) -> int:
    """Run one of `commands` and return its exit code; what a person can mend is said in one sentence, with code 2."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser(prog=program, description=f"The command line: {', '.join(commands)}.")
    subparsers = parser.add_subparsers(dest="command", required=True)
    subs = {name: subparsers.add_parser(name, help=one.text, description=one.text) for name, one in commands.items()}
    asked = commands.get(given[0]) if given else None
    try:
        module = import_module(f".{asked.module}", asked.package) if asked else None
    except ModuleNotFoundError as error:
        print(f"{parser.prog} {given[0]}: this needs {error.name}, which is not installed here.", file=sys.stderr)
        return 2
    if asked:
        getattr(module, asked.arguments)(subs[given[0]])
    chosen = parser.parse_args(given)
    try:
        return int(getattr(module, commands[chosen.command].run)(chosen))
    except (ValueError, OSError) as error:
        print(f"{parser.prog} {chosen.command}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
