"""Cutting words by chance: SentencePiece's own cut when nothing is dropped, and always the same text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.bpe_dropout import CUTS, BpeDropout
from model.checkpoint import FOLDER
from model.config import EOS_ID, UNK_ID
from model.tokenizer import Tokenizer

from .. import toy

ROOT = Path(__file__).resolve().parents[2]
SENTENCES = ["the dog sees a cat.", "a small red house and the old tree"]
ROWS = toy.tokenizer().encode_ids(SENTENCES)


def test_without_dropout_the_usual_cut(tiny_tokenizer: Tokenizer) -> None:
    assert BpeDropout(tiny_tokenizer, 0.0)(ROWS, 1) == ROWS


@given(st.text(max_size=60))
def test_without_dropout_sentencepieces_cut_of_any_text(text: str) -> None:
    tokenizer = Tokenizer.load(FOLDER / "everyday-en-de" / "tokenizer.model")
    rows = tokenizer.encode_ids([text])
    assert BpeDropout(tokenizer, 0.0)(rows, 1) == rows


def test_with_every_merge_left_out_single_characters(tiny_tokenizer: Tokenizer) -> None:
    cut = BpeDropout(tiny_tokenizer, 1.0)(ROWS, 1)
    assert [len(row) for row in cut] == [len(" " + text) + 1 for text in SENTENCES]


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
def test_other_pieces_but_the_same_text(tiny_tokenizer: Tokenizer, dropout: float) -> None:
    cut = BpeDropout(tiny_tokenizer, dropout)
    found = [cut(ROWS, seed) for seed in range(8)]
    assert len({str(rows) for rows in found}) > 1
    for rows in found:
        assert [tiny_tokenizer.decode(row) for row in rows] == SENTENCES
        assert {row[-1] for row in rows} == {EOS_ID}


def test_how_often_a_single_merge_is_left_out() -> None:
    """The word "a" with its space is one merge: left out in about a third of many draws."""
    tokenizer = toy.tokenizer()
    word = tokenizer.encode_ids(["a"])[0]
    assert len(word) == 2
    cut = BpeDropout(tokenizer, 1 / 3)
    split = sum(len(row) == 3 for row in cut([word] * 3000, 1)) / 3000
    drawn = sum(len(cut._cut(tuple(word[:-1]), number)) == 2 for number in range(CUTS)) / CUTS
    assert split == pytest.approx(drawn, abs=0.05)
    assert drawn == pytest.approx(1 / 3, abs=0.2)


def test_unknown_characters_stay(tiny_tokenizer: Tokenizer) -> None:
    rows = tiny_tokenizer.encode_ids(["the 狗 dog", ""])
    cut = BpeDropout(tiny_tokenizer, 0.9)(rows, 3)
    assert cut[0].count(UNK_ID) == rows[0].count(UNK_ID) == 1
    assert cut[1] == [EOS_ID]


def test_the_same_in_every_process() -> None:
    """What a resumed run and many processes build on."""
    code = (
        "from tests import toy; from model.bpe_dropout import BpeDropout;"
        f"print(BpeDropout(toy.tokenizer(), 0.5)({ROWS!r}, 7))"
    )
    other = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == str(BpeDropout(toy.tokenizer(), 0.5)(ROWS, 7))
