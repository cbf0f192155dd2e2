"""Models that run in the browser, from the command line: ``python -m viz.export live OUT``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from model.atomic_write import write_file
from model.checkpoint.load import CheckpointError, available, load_checkpoint
from model.cli.writable import WritableError, check_writable
from model.language.current import speaking
from model.language.say import listed, say
from model.language.terminal import add_language

from ..engine.package import Form, PackageError
from . import collect


def main(arguments: Sequence[str]) -> int:
    """Write the file and say how large it is; 1, with the reason, where it cannot be made."""
    given = _parser().parse_args(arguments)
    names = given.checkpoint or available()[:1]
    if not names:
        print(say("There is no checkpoint: train one with `python -m model train`."), file=sys.stderr)
        return 1
    collect.begin()
    from .live_file import live_file, live_folder  # after the runtime, as all that draws components

    form: Form | None = "int8" if given.int8 else "half" if given.half else None
    try:
        if given.folder:
            given.out.mkdir(parents=True, exist_ok=True)
        else:
            check_writable(given.out)
        checkpoints = [load_checkpoint(name) for name in names]
        with speaking(given.language):
            if given.folder:
                made = live_folder(checkpoints, date.today(), form)
                files = {given.out / name: data for name, data in made.items()}
            else:
                files = {given.out: live_file(checkpoints, date.today(), form or "half").encode()}
    except OSError as error:
        print(say("{file} cannot be written: {reason}", file=given.out, reason=error), file=sys.stderr)
        return 1
    except (WritableError, CheckpointError) as error:
        print(error, file=sys.stderr)
        return 1
    except PackageError as error:
        print(say("{names} cannot run in the browser: {reason}.", names=listed(names), reason=error), file=sys.stderr)
        return 1
    for path, data in files.items():
        write_file(path, data)
        print(f"{path}: {len(data) / 1e6:.1f} MB")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m viz.export live", description=say("Models that run in one HTML file.")
    )
    parser.add_argument("out", type=Path, help=say("the HTML file, or the folder, to write"))
    parser.add_argument(
        "--folder", action="store_true", help=say("a folder for a web host, each model beside the page")
    )
    parser.add_argument(
        "--checkpoint",
        action="append",
        metavar="NAME",
        help=say("a checkpoint, by name or folder; may be given repeatedly"),
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--half", action="store_true", help=say("weights in half precision (the default of a file)"))
    form.add_argument(
        "--int8", action="store_true", help=say("weights in 8 bits, half as large and a little less exact")
    )
    add_language(parser)
    parser.epilog = say(
        "A folder has both unless one is named; a phone then takes 8 bits, where little is lost by them."
    )
    return parser
