"""The command that serves the pages: what it says, and that its language is no visitor's."""

from __future__ import annotations

import pytest

from attenscope import language
from attenscope.language import current_language
from attenscope.viz import __main__, command


def test_visitors_are_not_spoken_to_in_the_language_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    monkeypatch.setenv("LANGUAGE", "en_XA")
    monkeypatch.setattr(language, "_of_visitor", lambda: "zh")
    spoken: list[str] = []
    monkeypatch.setattr(__main__, "main", lambda _: spoken.append(current_language()))
    assert command.main(["app", "--no-browser"]) == 0
    assert spoken == ["zh"]
