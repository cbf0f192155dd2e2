"""The command ``attenscope`` of the installed package: the pages, and all that ``python -m model`` does."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from attenscope.__main__ import COMMANDS, Command
from attenscope.__main__ import main as run_command
from attenscope.language import terminal_language, to_say, use_language
from attenscope.viz.server import missing_packages_text

APP_COMMANDS = {
    "app": Command(
        to_say("serve the pages, with the released models or your own"), "server", "add_arguments", "run", __package__
    ),
    "open": Command(
        to_say("serve the pages with a saved trace opened"), "server", "add_open", "open_trace", __package__
    ),
    "export": Command(
        to_say("write a talk, or models that run in the browser, as one file"),
        "export",
        "add_arguments",
        "run",
        __package__,
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["export"]:
        return _run_export(given[1:])
    return run_command(given, {**APP_COMMANDS, **COMMANDS}, "attenscope")


def _run_export(arguments: Sequence[str]) -> int:
    """Run the export, which has a parser of its own, since it imports what it draws after its arguments are known."""
    with use_language(terminal_language()):
        absent = missing_packages_text()
    if absent:
        print(f"attenscope export: {absent}", file=sys.stderr)
        return 2
    from attenscope.viz.export.__main__ import main as export

    sys.argv = ["attenscope export", *arguments]
    return export()


if __name__ == "__main__":
    sys.exit(main())
