"""A talk, or models that run in the browser, as one HTML file.

``python -m viz.export TALK.toml OUT.html [--dark] [--int8] [--language CODE]``
``python -m viz.export live [--checkpoint NAME ...] [--half | --int8] [--folder] [--language CODE] OUT``
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

from model.atomic_write import write_file
from model.cli.writable import WritableError, check_writable
from model.language.current import speaking
from model.language.say import say
from model.language.terminal import add_language, of_terminal, speak_for_argparse

from ..engine.package import Form
from ..figures.palette import DARK, LIGHT
from ..talk.beside import of_folder
from ..talk.checks import CheckedTalk, check
from ..talk.scenes import Mistake
from ..talk.talk_file import read, scene_count
from . import collect, live_command


def main() -> int:
    """Write the file, and return the exit code; what is said on the way is in the language of the terminal."""
    language = of_terminal()
    speak_for_argparse(language)
    with speaking(language):
        return live_command.main(sys.argv[2:]) if sys.argv[1:2] == ["live"] else _talk()


def _talk() -> int:
    """Write the scenes that can be shown and say of the others, by their lines, why not; 1 where one is left out."""
    parser = argparse.ArgumentParser(
        prog="python -m viz.export",
        description=say("A talk as one HTML file; or, with the word live, see live --help."),
    )
    parser.add_argument("talk", type=Path, help=say("the talk, a TOML file"))
    parser.add_argument("out", type=Path, help=say("the HTML file to write"))
    parser.add_argument("--dark", action="store_true", help=say("light ink on dark paper"))
    parser.add_argument("--int8", action="store_true", help=say("the models of live scenes in 8 bits a weight"))
    add_language(parser)
    arguments = parser.parse_args()
    try:
        check_writable(arguments.out)
        source = arguments.talk.read_text(encoding="utf-8-sig")
        talk, mistakes = read(source)
    except WritableError as error:
        print(error, file=sys.stderr)
        return 1
    except (OSError, UnicodeDecodeError) as error:
        problem = say("{file} cannot be read as a talk: {reason}", file=arguments.talk, reason=error)
        print(problem, file=sys.stderr)
        return 1
    collect.begin()
    from ..ui import cache  # after the runtime, as all that draws components

    models = cache.configurations()
    beside, problems = of_folder(talk, arguments.talk.parent)
    checked = check(talk, models, beside)
    for problem in problems:
        print(f"{arguments.talk}: {problem}", file=sys.stderr)
    _say(arguments.talk, mistakes, checked)
    if not checked.shown:
        return 1
    shown = replace(talk, scenes=checked.shown)

    def progress(done: int) -> None:
        facts = {"number": done + 1, "count": len(shown.scenes), "title": shown.scenes[done].title}
        print(say("scene {number} of {count}: {title}", **facts))

    palette = DARK if arguments.dark else LIGHT
    form: Form = "int8" if arguments.int8 else "half"
    with speaking(arguments.language):
        page = collect.talk_file(shown, models, palette, date.today(), progress, form, beside)
    write_file(arguments.out, page)
    print(f"{arguments.out}: {len(page.encode()) / 1e6:.1f} MB")
    missing = scene_count(source) - len(shown.scenes)
    if missing:
        facts = {"missing": missing, "count": scene_count(source)}
        print(f"{arguments.out}: {say('{missing} of {count} scenes are not in it.', **facts)}", file=sys.stderr)
    return 1 if missing else 0


def _say(file: Path, mistakes: tuple[Mistake, ...], checked: CheckedTalk) -> None:
    """Every mistake with its line, as the page Talk tells them."""
    for mistake in sorted((*mistakes, *checked.mistakes), key=lambda one: one.line):
        print(f"{file}: {mistake}", file=sys.stderr)
    if not checked.shown:
        print(f"{file}: {say('no scene can be shown, so nothing is written.')}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
