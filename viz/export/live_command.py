"""Models that run in the browser, from the command line: ``python -m viz.export live OUT.html``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from model.atomic_write import write_file
from model.checkpoint.load import CheckpointError, available, load_checkpoint
from model.cli.writable import WritableError, check_writable

from ..engine.package import PackageError
from . import collect


def main(arguments: Sequence[str]) -> int:
    """Write the file and say how large it is; 1, with the reason, where it cannot be made."""
    given = _parser().parse_args(arguments)
    names = given.checkpoint or available()[:1]
    if not names:
        print("There is no checkpoint: train one with `python -m model train`.", file=sys.stderr)
        return 1
    collect.begin()
    from .live_file import live_file  # after the runtime, as all that draws components

    try:
        check_writable(given.out)
        checkpoints = [load_checkpoint(name) for name in names]
        page = live_file(checkpoints, date.today(), "int8" if given.int8 else "half")
    except (WritableError, CheckpointError) as error:
        print(error, file=sys.stderr)
        return 1
    except PackageError as error:
        print(f"{', '.join(names)} cannot run in the browser: {error}.", file=sys.stderr)
        return 1
    write_file(given.out, page)
    print(f"{given.out}: {len(page.encode()) / 1e6:.1f} MB")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m viz.export live", description="Models that run in one HTML file.")
    parser.add_argument("out", type=Path, help="the HTML file to write")
    parser.add_argument(
        "--checkpoint", action="append", metavar="NAME", help="a checkpoint, by name or folder; may be given repeatedly"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--half", action="store_true", help="weights in half precision (the default)")
    form.add_argument("--int8", action="store_true", help="weights in 8 bits, half as large and a little less exact")
    return parser
