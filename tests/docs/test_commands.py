"""The commands in the README and the documents: programs, targets and options that there are; quick ones are run."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
import tomllib
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pytest

from attenscope.viz.export.__main__ import build_live_parser, build_talk_parser
from attenscope.viz.export.browser_recording import build_movie_parser
from bench.__main__ import LONG, NAMES
from publish.command_line import find_command_parser

ROOT = Path(__file__).resolve().parents[2]
SHELL = re.compile(r"^ *```sh\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
TARGETS = re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def commands(page: Path) -> list[str]:
    """The command lines of a page's blocks, without comments; those that are broken are joined."""
    found = "\n".join(SHELL.findall(page.read_text(encoding="utf-8"))).replace("\\\n", " ")
    return [line.strip() for line in found.splitlines() if line.strip()]


ALL = sorted({line for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")) for line in commands(page)})


def parses(parser: ArgumentParser, words: list[str]) -> None:
    try:
        parser.parse_args(words)
    except SystemExit as end:
        pytest.fail(f"{parser.prog} {words}: exit {end.code}")


def check_module(module: str, words: list[str]) -> None:
    """What ``python -m MODULE`` is given."""
    if module == "model":
        parses(find_command_parser(words[0]), words[1:])
    elif module == "viz.export":
        build = {"live": build_live_parser, "movie": build_movie_parser}.get(words[0])
        parses(build() if build else build_talk_parser(), words[bool(build) :])
    elif module == "viz":
        options = words[words.index("--") + 1 :] if "--" in words else []
        parses(find_command_parser("app"), options)
    elif module == "bench":
        assert set(words) <= {*NAMES, *LONG}
    else:
        assert module == "bench.libraries"


@pytest.mark.parametrize("line", ALL)
def test_a_command_is_understood(line: str) -> None:
    words = shlex.split(line, comments=True)
    if "<" in words:
        words = words[: words.index("<")]
    program, rest = words[0], words[1:]
    if program == "make":
        assert set(rest) <= set(TARGETS)
    elif program == "torchrun":
        at = rest.index("-m")
        check_module(rest[at + 1], rest[at + 2 :])
    elif program == "python":
        assert rest[0] == "-m"
        check_module(rest[1], rest[2:])
    elif program == "attenscope" and rest[0] == "export":
        check_module("viz.export", rest[1:])
    elif program == "attenscope":
        parses(find_command_parser(rest[0]), rest[1:])
    elif program == "pip":
        extras = {name for one in re.findall(r"\[(.*?)\]", line) for name in one.split(",")}
        assert extras <= set(PROJECT["optional-dependencies"])
    else:
        assert program in (".", "jupyter"), line


@pytest.mark.sweep
@pytest.mark.timeout(600)
def test_what_answers_a_question_answers(tmp_path: Path) -> None:
    """The quick commands of the pages, run in a folder with the files that they name."""
    (tmp_path / "english.txt").write_text("He turned the offer down.\n", encoding="utf-8")
    (tmp_path / "chinese.txt").write_text("我喜欢猫。\n", encoding="utf-8")
    np.savez(tmp_path / "weights.npz", weights=np.full((3, 3), 1 / 3))
    np.savetxt(tmp_path / "weights.csv", np.full((3, 3), 1 / 3), delimiter=",")
    (tmp_path / "printed.txt").write_text("[[1.0, 0.0], [0.4, 0.6]]", encoding="utf-8")
    done = 0
    for line in ALL:
        words = shlex.split(line, comments=True)
        if words[:3] != ["python", "-m", "model"] or words[3] not in ("translate", "trace", "diagnose", "why"):
            continue
        if any("path/to" in word for word in words):
            continue
        given = io.BytesIO()
        if "<" in words:
            given = io.BytesIO((tmp_path / words[-1]).read_bytes())
            words = words[: words.index("<")]
        command = [sys.executable, "-c", RUN.format(root=str(ROOT)), *words[3:]]
        ended = subprocess.run(command, cwd=tmp_path, input=given.read(), capture_output=True, check=False)
        assert ended.returncode == (words[3] == "diagnose"), (line, ended.stderr.decode())
        assert ended.stdout or (tmp_path / words[-1]).is_file(), line
        done += 1
    assert done >= 6


RUN = "import sys; sys.path.insert(0, {root!r}); from attenscope.__main__ import main; sys.exit(main())"
