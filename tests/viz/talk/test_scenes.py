"""Talks as files: what is written is read again, and every mistake is named by its line."""

from __future__ import annotations

import time
import tomllib

import pytest

from attenscope.network.config import TransformerConfig
from attenscope.viz.talk.checks import check_talk
from attenscope.viz.talk.file import format_talk, parse_talk
from attenscope.viz.talk.scenes import MOST_SCENES, Scene, Talk
from attenscope.viz.ui.addresses.page_registry import PAGES

GOOD = """title = "Two views"
model = "small"

[[scene]]
title = "First"
page = "explore"
hide = ["translation"]
notes = '''
One line,
[[scene]]
and page = "none" is only said.
'''

[scene.view]
sentence = "He said \\"no\\"."
layer = 2
words = true

[[scene]]
title = "Second"
page = "decode"
"""
AWKWARD = 'Quotes " and \\ and """ three, \ttabs, <b>, 漢字, \u200b and a bell \a'


def test_a_talk_is_read() -> None:
    talk, mistakes = parse_talk(GOOD)
    assert not mistakes
    assert (talk.title, talk.model) == ("Two views", "small")
    first, second = talk.scenes
    assert first.view == {"sentence": 'He said "no".', "layer": "2", "words": "true"}
    assert first.hide == ("translation",)
    assert "[[scene]]" in first.notes
    assert (first.lines["page"], first.lines["view.layer"], second.lines[""]) == (6, 16, 19)
    assert first.address("small") == "/?model=small&sentence=He+said+%22no%22.&layer=2&words=true"
    assert second.address("small", present="1") == "/decode?model=small&present=1"
    assert Scene("Elsewhere", "/evil.example").address("small") == "/%2Fevil.example?model=small"


LIVE = """[[scene]]
page = "explore"
live = true
[scene.view]
view = "links"
words = true

[[scene]]
page = "explore"
live = true
[scene.view]
view = "pipeline"

[[scene]]
page = "decode"
live = "yes"

[[scene]]
page = "masks"
live = true
"""


def test_a_live_scene_is_one_that_can_be() -> None:
    talk, mistakes = parse_talk(LIVE)
    assert [(one.line, "true or false" in one.text) for one in mistakes] == [(16, True)]
    assert parse_talk(format_talk(talk))[0] == talk
    checked = check_talk(talk, {"small": TransformerConfig()})
    assert [scene.live for scene in checked.shown] == [True, False, False, False]
    assert [one.line for one in checked.mistakes] == [6, 10, 20]
    assert checked.mistakes[0].text.endswith("are shown without words.")
    assert "only heatmap, links and text" in checked.mistakes[1].text
    assert checked.shown[0].presenter_data()["address"].endswith("&live=1")
    assert checked.shown[0].presenter_data(language="de")["address"].endswith("&live=1&lang=de")
    foreign = check_talk(talk, {"hf:small": None}).mistakes
    assert "no model that a file can hold" in foreign[0].text


def test_a_scene_keeps_its_language_and_else_has_that_of_the_visitor() -> None:
    views = [page.extract_view_parameters({"lang": "de"}) for page in PAGES.values()]
    assert views == [{"lang": "de"}] * len(PAGES), "what is added to a talk"
    own, other = Scene("One", "why", views[0]), Scene("Two", "why")
    assert own.presenter_data(language="zh")["address"] == "/why?lang=de"
    assert other.presenter_data(language="zh")["address"] == "/why?lang=zh"
    assert other.presenter_data()["address"] == "/why"


def test_the_key_of_a_file_beside_a_talk_takes_no_other_file_out_of_the_address() -> None:
    scene = Scene("A picture", "explore", {"file": "garden.png"}, trace="mine.safetensors")
    assert scene.presenter_data(keys={"mine.safetensors": "k"})["address"] == "/?file=garden.png&kept=k"
    assert scene.presenter_data()["address"] == "/?file=garden.png"


ENDS = [
    "to be seen in\nC:\\talks\\",
    "either ''' or \"\"\" # here",
    'she said\n""',
    "\\\"\n'''\nend",
]
"""Notes that hold what a string of several lines could begin or end with."""


@pytest.mark.parametrize("notes", ["", "one", "two\nlines", AWKWARD, f"{AWKWARD}\n\n{AWKWARD}", *ENDS])
def test_what_is_written_is_read_again(notes: str) -> None:
    scene = Scene(AWKWARD, "explore", {"sentence": AWKWARD, "odd key": "1"}, notes, "there", ("picture",), ("heads",))
    talk = Talk(AWKWARD, (scene, Scene("Next", "decode", minutes=2.5)), "small")
    written = format_talk(talk)
    tomllib.loads(written)
    assert parse_talk(written) == (talk, ())


@pytest.mark.parametrize(
    ("change", "line", "says", "left"),
    [
        (('page = "explore"', 'page = "explore'), 6, "not TOML", ["Second"]),
        (('page = "explore"', ""), 4, "names no page", ["Second"]),
        (('title = "Second"\npage = "decode"\n', ""), 19, "names no page", ["First"]),
        (('hide = ["translation"]', 'hide = ["translaton"]'), 7, "use sentence, translation", ["First", "Second"]),
        (('title = "Second"', "title = 3"), 20, "quotation marks", ["First", "Decode"]),
        (('title = "Second"', 'titel = "Second"'), 20, "no key 'titel'", ["First", "Decode"]),
        (("layer = 2", "layer = [2]"), 16, "text or a number", ["First", "Second"]),
        (('title = "Second"', 'title = "Second"\nminutes = -1'), 21, "from 0 to 120", ["First", "Second"]),
        (('model = "small"', 'modle = "small"'), 2, "no key 'modle'", ["First", "Second"]),
    ],
)
def test_a_mistake_names_its_line_and_the_rest_is_kept(
    change: tuple[str, str], line: int, says: str, left: list[str]
) -> None:
    broken = GOOD.replace("[[scene]]\nand page", "and page").replace(*change)
    shift = 0 if line < 10 else -1
    talk, mistakes = parse_talk(broken)
    assert [(one.line, says in one.text) for one in mistakes] == [(line + shift, True)]
    assert [scene.title for scene in talk.scenes] == left


def test_files_that_are_no_talk() -> None:
    for source in ("", "hello", "\0", "a = 1\n" * 3, "title = 'x'"):
        talk, mistakes = parse_talk(source)
        assert talk.scenes == ()
        assert mistakes
    many = '[[scene]]\npage = "explore"\n' * (MOST_SCENES + 1)
    talk, mistakes = parse_talk(many)
    assert len(talk.scenes) == MOST_SCENES
    assert "at most" in mistakes[0].text


HOSTILE = {
    "too many brackets": "title = " + "[" * 10_000 + "]" * 10_000,
    "a number has too many digits": 'title = "T"\n[[scene]]\npage = "explore"\n[scene.view]\nlayer = ' + "9" * 5_000,
    "a key has more than fifty parts": "a." * 20_000 + "b = 1",
    "There is no key": "a" * 40_000 + " = 1",
}


@pytest.mark.parametrize("says", HOSTILE)
def test_a_file_made_to_break_the_parser_gets_a_sentence_at_once(says: str) -> None:
    started = time.process_time()
    _, mistakes = parse_talk(HOSTILE[says])
    assert time.process_time() - started < 2
    assert says in mistakes[0].text
    assert len(mistakes[0].text) < 300


@pytest.mark.parametrize(
    ("page", "view", "says"),
    [
        ("explore", {"view": "linkz"}, "view = 'linkz' means nothing on the page explore: it is one of heatmap, links"),
        ("explore", {"view": "linkz"}, "'links' is nearest"),
        ("masks", {"part": "galery"}, "'gallery' is nearest"),
        ("decode", {"width": "1e999"}, "width = '1e999' means nothing on the page decode: it is a number from 1 to"),
        ("explore", {"words": "yes"}, "words = 'yes' means nothing"),
        ("explore", {"view": "links"}, ""),
    ],
)
def test_a_value_that_a_page_cannot_read_is_named_with_the_nearest(page: str, view: dict[str, str], says: str) -> None:
    checked = check_talk(Talk("T", (Scene("S", page, view),)), {"small": TransformerConfig()})
    assert checked.shown
    assert [says in one.text for one in checked.mistakes] == ([True] if says else [])
