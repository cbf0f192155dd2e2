"""The language of a command line: which variable says it, what is said in it, and what stays English."""

from __future__ import annotations

import argparse
import gettext
import inspect
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from attenscope import language as model_language
from attenscope.__main__ import main
from attenscope.language import ARGPARSE_MESSAGES, LANGUAGES, PSEUDO_LANGUAGE, terminal_language


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "de"),
        ({"LANG": "de_DE.UTF-8", "LC_MESSAGES": "zh_CN"}, "zh"),
        ({"LANG": "de_DE.UTF-8", "LC_MESSAGES": "zh_CN", "LC_ALL": "en_GB"}, "en"),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "fr:de_AT:zh"}, "de"),
        ({"LANG": "C.UTF-8", "LANGUAGE": "de"}, "en"),
        ({"LC_ALL": "POSIX", "LANG": "de_DE"}, "en"),
        ({"LANG": "fr_FR@euro"}, "en"),
        ({"LANG": "en_US", "LANGUAGE": "en_XA"}, PSEUDO_LANGUAGE),
    ],
)
def test_the_variables_of_gettext_say_the_language(
    variables: dict[str, str], language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_language, "COMPLETE_LANGUAGES", tuple(LANGUAGES))
    assert terminal_language(variables) == language


def test_a_language_that_is_not_complete_is_not_spoken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_language, "COMPLETE_LANGUAGES", ("en",))
    assert terminal_language({"LANG": "de_DE.UTF-8"}) == "en"


def test_argparse_says_what_is_translated_of_it() -> None:
    source = inspect.getsource(argparse)
    for message in ARGPARSE_MESSAGES:
        assert repr(message) in source or f'"{message}"' in source, message


@pytest.fixture(autouse=True)
def _default_catalogue() -> Iterator[None]:
    """The catalogue of the process, which a command line has replaced."""
    before = gettext.textdomain()
    yield
    gettext.textdomain(before)


@pytest.mark.parametrize(("complete", "usage"), [(("en",), "usage: "), (("en", "de"), "Aufruf: ")])
def test_argparse_speaks_no_language_that_is_not_complete(
    complete: tuple[str, ...], usage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(model_language, "COMPLETE_LANGUAGES", complete)
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    with pytest.raises(SystemExit):
        main(["translate", "--help"])
    assert capsys.readouterr().out.startswith(usage)


@pytest.fixture
def accented(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of the pseudo-language."""
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    monkeypatch.setenv("LANGUAGE", "en_XA")
    monkeypatch.setenv("COLUMNS", "200")


def in_accents(message: str) -> str:
    return model_language.load_catalogue(PSEUDO_LANGUAGE).gettext(message)


@pytest.mark.usefixtures("accented")
def test_help_and_errors_are_said_in_the_language_of_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert in_accents("train a checkpoint from a recipe") in capsys.readouterr().out
    assert main(["trace", "A word.", "--output", str(tmp_path)]) == 2
    said = in_accents("'{path}' is a folder; name a file to write.").format(path=tmp_path)
    assert capsys.readouterr().err == f"python -m model trace: {said}\n"
    assert model_language.current_language() == "en"


@pytest.mark.usefixtures("accented")
def test_json_is_in_english(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "weights.npy", np.full((4, 4), 0.25))
    arguments = ["diagnose", str(tmp_path / "weights.npy"), "--meant", "causal"]
    assert main([*arguments, "--json"]) == 1
    finding = json.loads(capsys.readouterr().out)["findings"][0]
    assert finding["message"].isascii()
    assert main(arguments) == 1
    assert in_accents("faulty") in capsys.readouterr().out
