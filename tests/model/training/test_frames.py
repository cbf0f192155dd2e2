"""Synthetic pairs: what a hand declines, and what the released table gives."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from attenscope.training.synthetic import NUMBER_DRAWERS, fill_sentence_frames, read_sentence_frames

CHECKPOINTS = Path(__file__).parents[3] / "checkpoints"
TABLE = CHECKPOINTS / "everyday-en-de" / "frames.tsv"
NOUNS = "noun\tdog\tHund\tm\tdogs\tHunde\nnoun\tcat\tKatze\tf\tcats\tKatzen\nnoun\teagle\tTier\tn\teagles\tTiere\n"
ADJECTIVES = "adjective\texpensive\tteuer\nadjective\told\talt\n"


def pairs(tmp_path: Path, frame: str) -> dict[str, str]:
    """What a frame gives with three nouns, one of each gender, and two adjectives."""
    (tmp_path / "frames.tsv").write_text(f"# words\n{NOUNS}{ADJECTIVES}frame\t{frame}\n", encoding="utf-8")
    return dict(fill_sentence_frames(read_sentence_frames(tmp_path / "frames.tsv"), 1))


@pytest.mark.parametrize(
    ("english", "german", "wanted"),
    [
        ("the [noun]", "[der noun]", ["Der Hund", "Die Katze", "Das Tier"]),
        ("I see the [noun]", "Ich sehe [den noun]", ["Ich sehe den Hund", "Ich sehe die Katze", "Ich sehe das Tier"]),
        ("with my [noun]", "mit [meinem noun]", ["Mit meinem Hund", "Mit meiner Katze", "Mit meinem Tier"]),
        ("her [noun]", "[ihr noun]", ["Ihr Hund", "Ihre Katze", "Ihr Tier"]),
        ("no [noun]", "[keinen noun]", ["Keinen Hund", "Keine Katze", "Kein Tier"]),
        ("in the [noun]: it", "[im noun]: [er noun]", ["Im Hund: er", "In der Katze: sie", "Im Tier: es"]),
        ("two [nouns]", "zwei [nouns]", ["Zwei Hunde", "Zwei Katzen", "Zwei Tiere"]),
    ],
)
def test_articles_and_pronouns_follow_the_gender(tmp_path: Path, english: str, german: str, wanted: list[str]) -> None:
    found = pairs(tmp_path, f"{english}\t{german}")
    assert sorted(found.values()) == sorted(wanted)


def test_adjectives_follow_article_case_and_gender(tmp_path: Path) -> None:
    found = pairs(tmp_path, "a [adjective] [noun]\t[ein adjective noun], [einen adjective noun], [dem adjective noun]")
    assert found == {
        "An expensive dog": "Ein teurer Hund, einen teuren Hund, dem teuren Hund",
        "An expensive cat": "Eine teure Katze, eine teure Katze, der teuren Katze",
        "An expensive eagle": "Ein teures Tier, ein teures Tier, dem teuren Tier",
        "An old dog": "Ein alter Hund, einen alten Hund, dem alten Hund",
        "An old cat": "Eine alte Katze, eine alte Katze, der alten Katze",
        "An old eagle": "Ein altes Tier, ein altes Tier, dem alten Tier",
    }
    assert set(pairs(tmp_path, "a [noun]\t[ein noun]")) == {"A dog", "A cat", "An eagle"}


def test_two_slots_of_a_kind_are_two_words(tmp_path: Path) -> None:
    found = pairs(tmp_path, "[noun] and [noun2]\t[noun] und [noun2]")
    assert len(found) == 6
    assert all(len(set(english.lower().split(" and "))) == 2 for english in found)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("frame\tthe [verb]\tdas [verb]", 'nothing fills the slot "verb"'),
        ("frame\tthe [noun]\tder [noun2]", 'nothing fills the slot "noun2"'),
        ("frame\t[adjective], [adjective2], [adjective3]\t[adjective]", 'nothing fills the slot "adjective"'),
        ("frame\tthe [noun]\t[des noun]", 'nothing fills the slot "des noun"'),
        ("frame\tthe [adjective]\t[der adjective]", 'nothing fills the slot "der adjective"'),
        ("frame\tthe [noun]", "Line 7 of"),
    ],
)
def test_a_frame_that_nothing_fills_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pairs(tmp_path, line.removeprefix("frame\t"))


def test_the_same_seed_gives_the_same_pairs() -> None:
    table = read_sentence_frames(TABLE)
    first, second, other = (
        fill_sentence_frames(table, 1),
        fill_sentence_frames(table, 1),
        fill_sentence_frames(table, 2),
    )
    assert first == second != other
    assert len(first) == len(set(first)) > 5000
    assert not [pair for pair in first if set("[]") & set("".join(pair))]


def test_numbers_are_alike_on_both_sides_but_for_their_marks() -> None:
    random = np.random.default_rng(1)
    for kind, number in NUMBER_DRAWERS.items():
        for english, german, *_ in (number(random) for _ in range(20)):
            if kind == "spoken":
                assert len(english.split()) == len(german.split())
            else:
                assert re.sub(r"\D", "", english) == re.sub(r"\D", "", german) != ""
                assert (english == german) == (kind not in ("decimal", "price", "thousand"))


def test_no_sentence_that_models_are_read_by_is_given() -> None:
    """Whatever the seed: none of the fixed sentences fits a frame whose slots hold words of its lists."""
    table = read_sentence_frames(TABLE)
    frames = [_pattern(english, table.lists) for english, _ in table.frames]
    fixed = [line.split("\t")[1] for line in (CHECKPOINTS / "phenomena.en-de.tsv").read_text("utf-8").splitlines()]
    assert not [sentence for sentence in fixed if any(frame.fullmatch(sentence) for frame in frames)]


def _pattern(frame: str, lists: dict) -> re.Pattern[str]:
    def inside(slot: str) -> str:
        kind = re.sub(r"\d", "", slot)
        entries = lists.get(kind) or lists.get(kind.removesuffix("s"))
        if not entries:
            return r"[\w.,:]+(?: \w+)*" if kind == "spoken" else r"[\d.,:]+"
        return "|".join(re.escape(word) for one in entries for word in (one.english, one.english_plural) if word)

    parts = re.split(r"\[([^]]*)\]", frame)
    return re.compile(
        "".join(f"(?:{inside(part)})" if at % 2 else re.escape(part) for at, part in enumerate(parts)), re.IGNORECASE
    )
