"""The command line ``python -m model``: the table of its commands, and the parser that runs one of them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from .language import (
    SOURCE_LANGUAGE,
    current_language,
    join_items,
    replace_commands_when_installed,
    say,
    terminal_language,
    to_say,
    translate_argparse,
    use_language,
)


class Command(NamedTuple):
    """One command. Its module is loaded when it is asked for: ``diagnose`` needs neither a tokenizer nor torch."""

    text: str
    """What it does, as :func:`.language.say` takes it."""
    module: str
    arguments: str
    """The function of the module that declares its options."""
    run: str
    """The function of the module that runs it."""
    package: str = __package__


COMMANDS = {
    "train": Command(to_say("train a checkpoint from a recipe"), "cli.train", "add_train_arguments", "run_train"),
    "translate": Command(
        to_say("translate standard input, line by line"),
        "cli.translate_and_evaluate",
        "add_translate_arguments",
        "run_translate",
    ),
    "trace": Command(
        to_say("translate one sentence and save its attention"),
        "cli.translate_and_evaluate",
        "add_trace_arguments",
        "run_trace",
    ),
    "evaluate": Command(
        to_say("score a checkpoint on a test set"),
        "cli.translate_and_evaluate",
        "add_evaluate_arguments",
        "run_evaluate",
    ),
    "quality": Command(
        to_say("write a model's fixed sentences and the quotes of its card"),
        "cli.translate_and_evaluate",
        "add_quality_arguments",
        "run_quality",
    ),
    "why": Command(to_say("say what a word of a translation rests on"), "cli.why", "add_why_arguments", "run_why"),
    "attribution": Command(
        to_say("measure the attribution methods of a checkpoint and keep them beside it"),
        "cli.why",
        "add_attribution_arguments",
        "run_attribution",
    ),
    "familiarity": Command(
        to_say("measure how probable a checkpoint finds text of its own kind and other text, and keep it beside it"),
        "cli.translate_and_evaluate",
        "add_familiarity_arguments",
        "run_familiarity",
    ),
    "check": Command(
        to_say("compare every model on this machine's GPU with the same model on the CPU"),
        "cli.translate_and_evaluate",
        "add_check_arguments",
        "run_check",
    ),
    "atlas": Command(
        to_say("measure what every head does over a corpus"), "cli.heads", "add_atlas_arguments", "run_atlas"
    ),
    "heads": Command(
        to_say("say what an atlas tells of each head, and search it"), "cli.heads", "add_heads_arguments", "run_heads"
    ),
    "align": Command(
        to_say("hold every cross-attention head against a gold alignment, and keep the rates"),
        "cli.heads",
        "add_align_arguments",
        "run_align",
    ),
    "prune": Command(
        to_say("take heads away one after another, and keep what is left beside the model"),
        "cli.heads",
        "add_prune_arguments",
        "run_prune",
    ),
    "timeline": Command(
        to_say("measure every head at each snapshot of a training, and keep it"),
        "cli.heads",
        "add_timeline_arguments",
        "run_timeline",
    ),
    "release": Command(
        to_say("measure again all that hangs on a checkpoint's weights, and say what no longer holds"),
        "cli.release_measurements",
        "add_release_arguments",
        "run_release",
    ),
    "mask": Command(
        to_say("show and judge the masks of an architecture, by its configuration alone"),
        "cli.architecture_mask",
        "add_mask_arguments",
        "run_mask",
    ),
    "diagnose": Command(
        to_say("say what is wrong with masks or attention weights"),
        "cli.diagnose",
        "add_diagnose_arguments",
        "run_diagnose",
    ),
}


def main(
    arguments: Sequence[str] | None = None,
    commands: Mapping[str, Command] = COMMANDS,
    program: str = "python -m model",
) -> int:
    """Run one of `commands` and return its exit code; what a person can mend is said in one sentence, with code 2.

    It is said in the language of the terminal, and in English what a command writes as JSON.
    """
    language = terminal_language()
    translate_argparse(language)
    with use_language(language):
        return _run_command(
            sys.argv[1:] if arguments is None else list(arguments), commands, replace_commands_when_installed(program)
        )


def build_parser(
    program: str, commands: Mapping[str, Command] = COMMANDS, asked: str | None = None
) -> argparse.ArgumentParser:
    """Return the parser of all `commands`; the options of the one that is `asked` for alone are declared.

    Raises ModuleNotFoundError where its module needs a package that is not installed.
    """
    about = say("The command line: {commands}.", commands=join_items(commands))
    parser = argparse.ArgumentParser(prog=program, description=about)
    subparsers = parser.add_subparsers(dest="command", required=True)
    texts = {name: say(one.text) for name, one in commands.items()}
    subs = {name: subparsers.add_parser(name, help=text, description=text) for name, text in texts.items()}
    if asked is not None and asked in commands:
        command = commands[asked]
        module = import_module(f".{command.module}", command.package)
        getattr(module, command.arguments)(subs[asked])
        subs[asked].set_defaults(run=getattr(module, command.run))
    return parser


def _run_command(given: list[str], commands: Mapping[str, Command], program: str) -> int:
    try:
        parser = build_parser(program, commands, given[0] if given else None)
    except ModuleNotFoundError as error:
        absent = say("this needs {package}, which is not installed here.", package=error.name)
        print(f"{program} {given[0]}: {absent}", file=sys.stderr)
        return 2
    chosen = parser.parse_args(given)
    try:
        with use_language(SOURCE_LANGUAGE if getattr(chosen, "json", False) else current_language()):
            code = int(chosen.run(chosen))
            sys.stdout.flush()
            return code
    except BrokenPipeError:  # Whoever read the lines has had enough, as ``head`` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError) as error:
        print(f"{program} {chosen.command}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
