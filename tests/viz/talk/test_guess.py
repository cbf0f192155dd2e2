"""What an audience can guess: parts that the picture of a scene has, each checked with the nearest that it does."""

from __future__ import annotations

import pytest

from attenscope.network.config import TransformerConfig
from attenscope.viz.talk import scenes
from attenscope.viz.talk.checks import check_talk
from attenscope.viz.talk.file import format_talk, parse_talk
from attenscope.viz.talk.scenes import Scene, Talk

SENTENCE = {"sentence": "He didn't read the well-known book."}
SMALL = TransformerConfig(heads=2, encoder_layers=3, decoder_layers=1)
GALLERY = {"part": "gallery"}


def test_the_parts_of_a_picture_are_its_words_heads_or_sides() -> None:
    words = ("He", "didn't", "read", "the", "well-known", "book")
    assert scenes.list_guessable_picture_parts(Scene("", "decode", SENTENCE), SMALL) == words
    assert scenes.list_guessable_picture_parts(Scene("", "explore", SENTENCE), SMALL) == (*words, "1.1", "1.2")
    encoder = Scene("", "explore", {"kind": "encoder"})
    assert scenes.list_guessable_picture_parts(encoder, SMALL) == ("1.1", "1.2", "2.1", "2.2", "3.1", "3.2")
    assert scenes.list_guessable_picture_parts(Scene("", "masks", GALLERY), SMALL) == ("left", "right")
    assert (
        scenes.list_guessable_picture_parts(Scene("", "masks"), SMALL)
        == scenes.list_guessable_picture_parts(Scene("", "heads", SENTENCE), SMALL)
        == ()
    )


@pytest.mark.parametrize(
    ("page", "view", "choice", "says"),
    [
        ("decode", SENTENCE, "well-known book", ""),
        ("decode", {"sentence": "我喜欢书。"}, "喜欢", ""),
        ("explore", SENTENCE, "1.2", ""),
        ("masks", GALLERY, "right", ""),
        ("decode", SENTENCE, "bok", "'book' is nearest"),
        ("decode", SENTENCE, "the book", "it has He, didn't, read"),
        ("explore", SENTENCE, "1.3", "There is no '1.3' in the picture to guess"),
        ("masks", GALLERY, "broken", "it has left, right"),
        ("heads", SENTENCE, "book", "no part of this picture"),
        ("decode", SENTENCE, "1.1", "There is no '1.1'"),
    ],
)
def test_a_choice_that_the_picture_has_not_is_named(page: str, view: dict[str, str], choice: str, says: str) -> None:
    found = scenes.find_choice_problem(choice, Scene("", page, view), SMALL)
    assert says in found
    assert bool(found) == bool(says)


def test_of_a_model_whose_heads_are_not_known_any_may_be() -> None:
    assert not scenes.find_choice_problem("4.12", Scene("", "explore", SENTENCE), None)
    assert scenes.find_choice_problem("4.0", Scene("", "explore", SENTENCE), None)


def checked(guesses: str) -> tuple[tuple[str, ...], list[int]]:
    """What a scene asks, and the lines of what is wrong with it."""
    source = f'[[scene]]\npage = "decode"\nguess = {guesses}\n[scene.view]\nsentence = "She lost her key."\n'
    talk, mistakes = parse_talk(source)
    found = check_talk(talk, {"small": SMALL})
    return found.shown[0].guess, [one.line for one in (*mistakes, *found.mistakes)]


def test_what_is_asked_is_checked_and_written_again() -> None:
    assert checked('["She", "key"]') == (("She", "key"), [])
    assert checked('["She", "key", "kee"]') == (("She", "key"), [3])
    assert checked('["She", "kee"]') == ((), [3, 3])
    for wrong in ('["She"]', '["She", "She"]', '"She"', "3", '["She", ""]', str([f"{one}" for one in range(10)])):
        assert checked(wrong) == ((), [3]), wrong
    talk = Talk("T", (Scene("S", "explore", SENTENCE, guess=("1.1", "book")),))
    assert parse_talk(format_talk(talk)) == (talk, ())
    assert talk.scenes[0].presenter_data()["guess"] == ("1.1", "book")
