"""Words in other pieces by chance, worked by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from attenscope.checkpoint.load import CHECKPOINTS_FOLDER
from attenscope.text.tokenizer import Tokenizer, split_with_dropout

RANKS = {"er": 0, "lo": 1, "low": 2, "lower": 3, "we": 4, "▁low": 5, "▁lower": 6}
ROOT = Path(__file__).parents[3]


def by_chance(text: str, *draws: float) -> list[str]:
    """The pieces of a text when these numbers are drawn, and then ones that leave nothing out."""
    left = iter(draws)
    return split_with_dropout(text, RANKS, 0.1, lambda: next(left, 0.5))


def test_without_a_chance_the_best_merge_is_taken_each_time() -> None:
    assert by_chance("▁lower▁lo") == ["▁lower", "▁", "lo"]
    assert split_with_dropout("▁lower", RANKS, 0.0, lambda: 0.0) == ["▁lower"]
    assert split_with_dropout("▁lower", RANKS, 1.0, lambda: 0.99) == list("▁lower")


def test_a_merge_that_is_left_out_at_one_step_can_come_at_the_next() -> None:
    """Candidates from left to right: lo, then er, which is better; "we" is none once "lo" stays."""
    assert by_chance("▁lower", 0.5, 0.05) == ["▁lower"]
    assert by_chance("lo", 0.05) == ["l", "o"]  # no candidate is left at that step
    assert by_chance("lowe", 0.05, 0.5) == ["lo", "we"]


@pytest.mark.parametrize("name", ["everyday-en-de", "everyday-zh-en", "preset-original"])
def test_without_dropout_the_pieces_are_those_of_sentencepiece(name: str) -> None:
    """Bytes, unknown characters and runs of them, digits, forms that are normalised."""
    tokenizer = Tokenizer.load(CHECKPOINTS_FOLDER / name / "tokenizer.model")
    texts = [
        "I  don\N{RIGHT SINGLE QUOTATION MARK}t know 狗猫, ﬁne 2019!",
        "",
        "  ",
        "🐶🐶 汤姆会说三种语言。<s>",
        "Ünïcode ▁▁x",
    ]
    texts += (CHECKPOINTS_FOLDER / "sentences.en").read_text(encoding="utf-8").splitlines()
    assert tokenizer.encode_ids_with_dropout(texts, 0.0, seed=1) == tokenizer.encode_ids(texts)


def test_another_process_draws_the_same() -> None:
    path = CHECKPOINTS_FOLDER / "everyday-en-de" / "tokenizer.model"
    texts = (CHECKPOINTS_FOLDER / "sentences.en").read_text(encoding="utf-8").splitlines()
    asked = f"Tokenizer.load(Path({str(path)!r})).encode_ids_with_dropout({texts!r}, 0.1, 7)"
    code = f"from pathlib import Path; from attenscope.text.tokenizer import Tokenizer; print({asked})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(Tokenizer.load(path).encode_ids_with_dropout(texts, 0.1, 7))
