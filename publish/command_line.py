"""The pages of the command line, written from the parsers of argparse themselves."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from attenscope.__main__ import COMMANDS, build_parser
from attenscope.viz.command import APP_COMMANDS
from attenscope.viz.export.__main__ import build_live_parser, build_talk_parser

MODEL, INSTALLED = "python -m model", "attenscope"
USE = ("translate", "trace", "diagnose", "why", "heads")
"""Commands that answer a question; the others measure and train, and write into files of a checkpoint."""
INTRODUCTION = (
    "In the project's folder the commands begin with `python -m model`; of the [installed package](install.md) with\n"
    "`attenscope`. Each prints its text on this page with `--help`, in the language of the terminal. What a person\n"
    "can mend is said in one sentence, with the exit code 2.\n"
)


def build_use_page() -> str:
    """Return the Markdown of the commands that answer a question, and of those that serve and write pages."""
    others = "Commands that [measure and train](command-line-measure.md) have their own page.\n"
    parts = ["# Command line", INTRODUCTION, others]
    parts += (describe_command(name) for name in USE)
    parts += (describe_command(name) for name in APP_COMMANDS if name != "export")
    parts += [describe_parser("python -m viz.export", build_talk_parser())]
    parts += [describe_parser("python -m viz.export live", build_live_parser())]
    return "\n".join(parts)


def build_measure_page() -> str:
    """Return the Markdown of the commands that measure and train."""
    text = "The other [commands](command-line.md) answer questions; these write what they find beside a checkpoint.\n"
    return "\n".join(
        ["# Command line: measure and train", text, *(describe_command(one) for one in COMMANDS if one not in USE)]
    )


def describe_command(name: str) -> str:
    """Return the section of one command."""
    program = INSTALLED if name in APP_COMMANDS else MODEL
    return describe_parser(f"{program} {name}", find_command_parser(name))


def find_command_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of one command, with its options."""
    program, commands = (INSTALLED, APP_COMMANDS) if name in APP_COMMANDS else (MODEL, COMMANDS)
    whole = build_parser(program, commands, name)
    (group,) = (one for one in whole._actions if isinstance(one, argparse._SubParsersAction))
    return group.choices[name]


def describe_parser(command: str, parser: argparse.ArgumentParser) -> str:
    """Return a section: what the command does, how it is called, and a table of its arguments."""
    about = (parser.description or "").rstrip(".")
    formatter = parser._get_formatter()
    formatter.add_usage(None, parser._actions, parser._mutually_exclusive_groups, prefix="")
    usage = formatter.format_help().strip()
    rows = [f"| `{name}` | {text} |" for name, text in _list_arguments(parser)]
    lines = [f"## {command}", "", f"{about[:1].upper()}{about[1:]}.", "", "```text", usage, "```", ""]
    if rows:
        lines += ["| argument | what it is |", "|---|---|", *rows, ""]
    if parser.epilog:
        lines += [parser.epilog, ""]
    return "\n".join(lines)


def _list_arguments(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    formatter = parser._get_formatter()
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        name = formatter._format_action_invocation(action)
        text = formatter._expand_help(action) if action.help else ""
        yield name.replace("|", "\\|"), " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
