"""A talk as one HTML file: ``python -m viz.export TALK.toml OUT.html [--dark]``."""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path

from ..figures.palette import DARK, LIGHT
from ..stage.scenes import read
from . import collect


def main() -> int:
    """Write the file and say what could not be shown; 1 where nothing could be written."""
    parser = argparse.ArgumentParser(prog="python -m viz.export", description="A talk as one HTML file.")
    parser.add_argument("talk", type=Path, help="the talk, a TOML file")
    parser.add_argument("out", type=Path, help="the HTML file to write")
    parser.add_argument("--dark", action="store_true", help="light ink on dark paper")
    asked = parser.parse_args()
    try:
        talk, mistakes = read(asked.talk.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        print(f"{asked.talk} cannot be read as a talk: {error}", file=sys.stderr)
        return 1
    for mistake in mistakes:
        print(f"{asked.talk}: {mistake}", file=sys.stderr)
    if not talk.scenes:
        return 1
    collect.begin()
    from .. import cache  # after the runtime, as all that draws components

    palette = DARK if asked.dark else LIGHT
    told = lambda done: print(f"scene {done + 1} of {len(talk.scenes)}: {talk.scenes[done].title}")  # noqa: E731
    page = collect.talk_file(talk, cache.configurations(), palette, date.today(), told)
    asked.out.write_text(page, encoding="utf-8")
    print(f"{asked.out}: {len(page.encode()) / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
