"""The command ``python -m viz.export``: write a talk, or models that run in the browser, as one HTML file.

Usage::

    python -m viz.export TALK.toml OUT.html [--dark] [--int8] [--language CODE]
    python -m viz.export movie ADDRESS OUT.webm [--height 720] [--dark] [--language CODE]
    python -m viz.export live [--checkpoint NAME ...] [--model hf:FOLDER ...] [--half | --int8] [--folder]
                              [--language CODE] OUT
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

from attenscope.checkpoint.load import Checkpoint, CheckpointError, list_checkpoints, load_checkpoint
from attenscope.cli.translate_and_evaluate import WritableError, check_writable, write_output
from attenscope.language import (
    add_language_option,
    join_items,
    replace_commands_when_installed,
    say,
    terminal_language,
    translate_argparse,
    use_language,
)
from attenscope.runnable_model import LocalError, RunnableModel
from attenscope.user_model import load_user_model
from attenscope.viz.engine.pack_checkpoint import EngineModel, PackageError, WeightForm, describe_model
from attenscope.viz.export import talk_html
from attenscope.viz.export.browser_recording import write_movie
from attenscope.viz.figures.figure_style import DARK, LIGHT
from attenscope.viz.talk.attachments import read_talk_files_from_folder
from attenscope.viz.talk.checks import CheckedTalk, check_talk
from attenscope.viz.talk.file import count_scenes, parse_talk
from attenscope.viz.talk.scenes import Mistake

# The subcommand ``live``: models that run in the browser.


def export_browser_models(arguments: Sequence[str]) -> int:
    """Write the file or folder and print its sizes; return 1, with the reason printed, where it cannot be made."""
    given = build_live_parser().parse_args(arguments)
    folders = given.model or []
    names = given.checkpoint or ([] if folders else list_checkpoints()[:1])
    if not names and not folders:
        print(say("There is no checkpoint: train one with `python -m model train`."), file=sys.stderr)
        return 1
    talk_html.start_streamlit_runtime_without_server()
    # After the runtime is there, like everything that draws components.
    from attenscope.viz.export.browser_model_file import build_live_model_html, build_live_model_site

    form: WeightForm | None = "int8" if given.int8 else "half" if given.half else None
    try:
        if given.folder:
            given.out.mkdir(parents=True, exist_ok=True)
        else:
            check_writable(given.out)
        models: list[Checkpoint | EngineModel] = [load_checkpoint(name) for name in names]
        models += map(_load_folder_model, folders)
        with use_language(given.language):
            if given.folder:
                made = build_live_model_site(models, _read_build_date(), form)
                files = {given.out / name: data for name, data in made.items()}
            else:
                files = {given.out: build_live_model_html(models, _read_build_date(), form or "half").encode()}
        for path, data in files.items():
            write_output(path, data)
    except OSError as error:
        print(say("{file} cannot be written: {reason}", file=given.out, reason=error), file=sys.stderr)
        return 1
    except (WritableError, CheckpointError, LocalError) as error:
        print(error, file=sys.stderr)
        return 1
    except PackageError as error:
        print(
            say("{names} cannot run in the browser: {reason}.", names=join_items([*names, *folders]), reason=error),
            file=sys.stderr,
        )
        return 1
    for path, data in files.items():
        print(f"{path}: {len(data) / 1e6:.1f} MB")
    return 0


def _load_folder_model(spec: str) -> EngineModel:
    """The model of a folder as the engine runs it. Raises LocalError and PackageError."""
    model = load_user_model(spec)
    if not isinstance(model, RunnableModel):
        raise PackageError(say("it only reads"))
    return describe_model(model)


def build_live_parser() -> argparse.ArgumentParser:
    """Return the parser of the subcommand ``live``."""
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
    parser.add_argument(
        "--model",
        action="append",
        metavar="hf:FOLDER",
        help=say("a Marian folder of transformers; may be given repeatedly"),
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--half", action="store_true", help=say("weights in half precision (the default of a file)"))
    form.add_argument(
        "--int8", action="store_true", help=say("weights in 8 bits, half as large and a little less exact")
    )
    add_language_option(parser)
    parser.epilog = say(
        "A folder has both unless one is named; a phone then takes 8 bits, where little is lost by them."
    )
    return parser


def _read_build_date() -> date:
    """Return the day that a file bears: today, or that of SOURCE_DATE_EPOCH, so that a build can be repeated."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(epoch), UTC).date() if epoch.isdecimal() else date.today()


# The command itself, and a talk.


SUBCOMMANDS = {"live": export_browser_models, "movie": write_movie}


def main() -> int:
    """Write the file and return the exit code; messages are in the language of the terminal."""
    language = terminal_language()
    translate_argparse(language)
    with use_language(language):
        subcommand = SUBCOMMANDS.get(sys.argv[1]) if len(sys.argv) > 1 else None
        return subcommand(sys.argv[2:]) if subcommand else _write_talk()


def _write_talk() -> int:
    """Write the scenes that can be shown and print why others cannot, by line; return 1 where one is left out."""
    arguments = build_talk_parser().parse_args()
    try:
        check_writable(arguments.out)
        source = arguments.talk.read_text(encoding="utf-8-sig")
        talk, mistakes = parse_talk(source)
    except WritableError as error:
        print(error, file=sys.stderr)
        return 1
    except (OSError, UnicodeDecodeError) as error:
        problem = say("{file} cannot be read as a talk: {reason}", file=arguments.talk, reason=error)
        print(problem, file=sys.stderr)
        return 1
    talk_html.start_streamlit_runtime_without_server()
    from attenscope.viz.ui import cache  # after the runtime is there, like everything that draws components

    models = cache.load_model_configs()
    beside, problems = read_talk_files_from_folder(talk, arguments.talk.parent)
    checked = check_talk(talk, models, beside)
    for problem in problems:
        print(f"{arguments.talk}: {problem}", file=sys.stderr)
    _print_mistakes(arguments.talk, mistakes, checked)
    if not checked.shown:
        return 1
    shown = replace(talk, scenes=checked.shown)

    def progress(done: int) -> None:
        facts = {"number": done + 1, "count": len(shown.scenes), "title": shown.scenes[done].title}
        print(say("scene {number} of {count}: {title}", **facts))

    palette = DARK if arguments.dark else LIGHT
    form: WeightForm = "int8" if arguments.int8 else "half"
    with use_language(arguments.language):
        page = talk_html.build_talk_file(shown, models, palette, _read_build_date(), progress, form, beside)
    try:
        write_output(arguments.out, page)
    except WritableError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{arguments.out}: {len(page.encode()) / 1e6:.1f} MB")
    missing = count_scenes(source) - len(shown.scenes)
    if missing:
        facts = {"missing": missing, "count": count_scenes(source)}
        print(f"{arguments.out}: {say('{missing} of {count} scenes are not in it.', **facts)}", file=sys.stderr)
    return 1 if missing else 0


def build_talk_parser() -> argparse.ArgumentParser:
    """Return the parser of the command that writes a talk."""
    parser = argparse.ArgumentParser(
        prog=replace_commands_when_installed("python -m viz.export"),
        description=say("A talk as one HTML file; or, with the word live or movie, see live --help and movie --help."),
    )
    parser.add_argument("talk", type=Path, help=say("the talk, a TOML file"))
    parser.add_argument("out", type=Path, help=say("the HTML file to write"))
    parser.add_argument("--dark", action="store_true", help=say("light ink on dark paper"))
    parser.add_argument("--int8", action="store_true", help=say("the models of live scenes in 8 bits a weight"))
    add_language_option(parser)
    return parser


def _print_mistakes(file: Path, mistakes: tuple[Mistake, ...], checked: CheckedTalk) -> None:
    """Print every mistake with its line, as the page Talk shows them."""
    for mistake in sorted((*mistakes, *checked.mistakes), key=lambda one: one.line):
        print(f"{file}: {mistake}", file=sys.stderr)
    if not checked.shown:
        print(f"{file}: {say('no scene can be shown, so nothing is written.')}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
