"""python -m model train | translate | trace | evaluate | quality | diagnose"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from . import diagnose_cli, train_cli, use_cli

Command = tuple[str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]]

COMMANDS: dict[str, Command] = {
    "train": ("train a checkpoint from a recipe", train_cli.add_arguments, train_cli.run),
    "translate": ("translate standard input, line by line", use_cli.add_translate, use_cli.translate),
    "trace": ("translate one sentence and save its attention", use_cli.add_trace, use_cli.trace),
    "evaluate": ("score a checkpoint on a test set", use_cli.add_evaluate, use_cli.evaluate),
    "quality": ("write the table of fixed everyday sentences", use_cli.add_quality, use_cli.quality),
    "diagnose": ("say what is wrong with masks or attention weights", diagnose_cli.add_arguments, diagnose_cli.run),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m model", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True)
    for name, (text, add_arguments, _) in COMMANDS.items():
        add_arguments(subparsers.add_parser(name, help=text, description=text))
    chosen = parser.parse_args(arguments)
    try:
        return COMMANDS[chosen.command][2](chosen)
    except (ValueError, OSError) as error:  # what a person can mend is said in one sentence
        print(f"{parser.prog} {chosen.command}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
