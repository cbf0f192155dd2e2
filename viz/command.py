"""The command ``attenscope`` of the installed package: the pages, and all that ``python -m model`` does."""

from __future__ import annotations

import argparse
import os
import re
import sys
import threading
import time
import webbrowser
from collections.abc import Sequence
from contextvars import Context
from importlib import metadata
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from attenscope.__main__ import COMMANDS, Command
from attenscope.__main__ import main as run_command
from attenscope.checkpoint import FOLDER_VARIABLE
from attenscope.language import join_items, say, terminal_language, to_say, use_language

PAGE_OPTIONS = ("model", "models", "atlas")
"""Options that the pages read themselves."""
DEFAULT_PORT = 8501
START_TIMEOUT = 60.0
"""Seconds to wait for the server before the browser is opened; later it is not opened."""


def add_app_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="SPEC", help=say("hf:FOLDER of transformers, or package.module:factory"))
    parser.add_argument("--models", metavar="DIR", help=say("offer all Hugging Face folders of a directory"))
    parser.add_argument("--atlas", metavar="FOLDER", help=say("an atlas of your own for the page Heads"))
    parser.add_argument(
        "--checkpoints", metavar="DIR", type=Path, help=say("another folder of this project's checkpoints")
    )
    _add_server_arguments(parser)


def add_open_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "trace", type=Path, help=say("a trace that was saved, or a folder that attenscope.watch has written")
    )
    _add_server_arguments(parser)


def _add_server_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=int,
        default=DEFAULT_PORT,
        help=say("the port on this machine (default {port})", port=DEFAULT_PORT),
    )
    parser.add_argument("--no-browser", action="store_true", help=say("open no browser"))


def run_app(arguments: argparse.Namespace) -> int:
    """Serve the pages until they are stopped. ValueError for a folder that holds no checkpoint."""
    folder = arguments.checkpoints
    if folder is not None:
        if not any(folder.glob("*/config.json")):
            raise ValueError(
                say("--checkpoints {folder}: no folder in it holds a checkpoint (config.json).", folder=folder)
            )
        os.environ[FOLDER_VARIABLE] = str(folder.resolve())
    given = {f"--{name}": getattr(arguments, name) for name in PAGE_OPTIONS}
    return _serve_pages(
        arguments, [part for name, value in given.items() if value is not None for part in (name, value)]
    )


def open_trace(arguments: argparse.Namespace) -> int:
    """Serve the pages with a trace or a training opened in them. OpenError for what cannot be shown."""
    from attenscope.untrusted_trace import read_trace_file, read_training_traces

    (read_training_traces if arguments.trace.is_dir() else read_trace_file)(arguments.trace)
    return _serve_pages(arguments, ["--open", str(arguments.trace.resolve())])


def _missing_packages_text() -> str:
    """Return the sentence that says what the extra [app] asks for and is not installed; "" where all is.

    The checkout, whose packages requirements.txt brings, has no extras to read.
    """
    absent = [name for name in list_app_packages() if not _is_installed(name)]
    if not absent:
        return ""
    return say("this needs {packages}, not installed here: pip install 'attenscope[app]'.", packages=join_items(absent))


def list_app_packages() -> list[str]:
    """Return the names of what the installed package's extra [app] needs on every system."""
    try:
        requirements = metadata.requires("attenscope") or []
    except metadata.PackageNotFoundError:
        return []
    of_app = [line for line in requirements if re.search(r"""; extra == ['"]app['"]$""", line)]
    return [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in of_app]


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def _serve_pages(arguments: argparse.Namespace, options: Sequence[str]) -> int:
    if absent := _missing_packages_text():
        raise ValueError(absent)
    from attenscope.viz.__main__ import main

    address = f"http://127.0.0.1:{arguments.port}"
    if not arguments.no_browser and _has_screen():
        threading.Thread(target=_open_browser, args=(address,), daemon=True).start()
    # In a context of its own, so that visitors do not get the language of this terminal.
    Context().run(main, ["--server.port", str(arguments.port), "--server.fileWatcherType", "none", "--", *options])
    return 0


def _has_screen() -> bool:
    return not sys.platform.startswith("linux") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open_browser(address: str) -> None:
    """Open the browser once the server answers."""
    end = time.monotonic() + START_TIMEOUT
    while time.monotonic() < end:
        try:
            with urlopen(f"{address}/_stcore/health", timeout=1):
                break
        except (URLError, OSError):
            time.sleep(0.2)
    else:
        return
    webbrowser.open(address)


APP_COMMANDS = {
    "app": Command(
        to_say("serve the pages, with the released models or your own"),
        "command",
        "add_app_arguments",
        "run_app",
        __package__,
    ),
    "open": Command(
        to_say("serve the pages with a saved trace opened"), "command", "add_open_arguments", "open_trace", __package__
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
        absent = _missing_packages_text()
    if absent:
        print(f"attenscope export: {absent}", file=sys.stderr)
        return 2
    from attenscope.viz.export.__main__ import main as export

    sys.argv = ["attenscope export", *arguments]
    return export()


if __name__ == "__main__":
    sys.exit(main())
