"""Pieces: special ids, the text of what is unknown, and tokens that join to the sentence."""

from __future__ import annotations

import io
import unicodedata
from functools import cache
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from attenscope.network.config import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from attenscope.text.tokenizer import Tokenizer, TokenizerError
from tests import toy


def test_special_pieces_stand_first(tiny_tokenizer: Tokenizer) -> None:
    assert (PAD_ID, UNK_ID, BOS_ID, EOS_ID) == (0, 1, 2, 3)
    assert [tiny_tokenizer.token(number) for number in range(4)] == ["<pad>", "<unk>", "<s>", "</s>"]
    assert len(tiny_tokenizer) == toy.VOCABULARY


def test_byte_pairs_by_hand() -> None:
    """In "aab aab aab" the pair (a, b) is as frequent as (a, a); whatever is merged, pieces join to the words."""
    tokenizer = Tokenizer.train(["low lower lowest low low", "new newer newest new new"], 20)
    encoded = tokenizer.encode("low newer")
    assert encoded.tokens[0] == " low"
    assert "".join(encoded.tokens[1:-1]) == " newer"
    assert [tokenizer.token(one) for one in encoded.ids] == list(encoded.tokens)


def test_a_known_sentence(tiny_tokenizer: Tokenizer) -> None:
    encoded = tiny_tokenizer.encode("the dog sees a cat.")
    assert encoded.tokens == (" the", " dog", " sees", " a", " cat", ".", "</s>")
    assert encoded.ids[-1] == EOS_ID
    assert encoded.unknown == ()
    assert tiny_tokenizer.decode(encoded.ids) == "the dog sees a cat."
    assert tiny_tokenizer.encode_ids(["the dog sees a cat.", ""]) == [list(encoded.ids), [EOS_ID]]


def test_other_pieces_of_the_same_text(tiny_tokenizer: Tokenizer) -> None:
    texts = ["the dog sees a cat.", "", "a cat sees the dog"] * 5
    plain, dropped = tiny_tokenizer.encode_ids(texts), tiny_tokenizer.encode_ids_with_dropout(texts, 0.3, seed=1)
    assert [tiny_tokenizer.decode(ids) for ids in dropped] == texts
    assert (
        dropped
        == tiny_tokenizer.encode_ids_with_dropout(texts, 0.3, seed=1)
        != tiny_tokenizer.encode_ids_with_dropout(texts, 0.3, seed=2)
    )
    assert sum(map(len, dropped)) > sum(map(len, plain))
    assert tiny_tokenizer.encode_ids_with_dropout(texts, 0.0, seed=1) == plain
    assert max(map(len, tiny_tokenizer.encode_ids_with_dropout(["dogs"], 1.0, seed=1))) == 6  # " ", d, o, g, s, </s>


def test_decoding_leaves_special_tokens_out(tiny_tokenizer: Tokenizer) -> None:
    dog = tiny_tokenizer.encode("dog").ids[0]
    assert tiny_tokenizer.decode([BOS_ID, dog, EOS_ID, PAD_ID]) == "dog"


def test_decoding_shows_that_a_piece_was_unknown(tiny_tokenizer: Tokenizer) -> None:
    dog = tiny_tokenizer.encode("dog").ids[0]
    assert tiny_tokenizer.decode([dog, UNK_ID]) == "dog \u2047 "


def test_every_piece_is_found_by_what_people_read(tiny_tokenizer: Tokenizer) -> None:
    every = range(len(tiny_tokenizer))
    known = [one for one in every if one != UNK_ID]
    assert [tiny_tokenizer.piece_id(tiny_tokenizer.token(one)) for one in known] == known
    assert tiny_tokenizer.piece_id(" dog") != tiny_tokenizer.piece_id("dog")
    assert any(tiny_tokenizer.token(one).startswith(" ") for one in every)
    assert tiny_tokenizer.decode([]) == ""


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("the 😀 dog", ("😀",)),
        ("狗看见猫", ("狗看见猫",)),
        ("dog狗cat", ("狗",)),
        ("كلب", ("كلب",)),
        ("the <script> dog", ("<",)),
    ],
)
def test_unknown_pieces_keep_their_text(tiny_tokenizer: Tokenizer, text: str, unknown: tuple[str, ...]) -> None:
    encoded = tiny_tokenizer.encode(text)
    found = [one for one in encoded.unknown if one in unknown]
    assert tuple(found) == unknown
    assert len(encoded.unknown) == encoded.ids.count(UNK_ID)
    assert "".join(encoded.tokens[:-1]).strip() == text
    assert "<unk>" not in encoded.tokens


def test_control_characters_between_letters_are_dropped(tiny_tokenizer: Tokenizer) -> None:
    assert tiny_tokenizer.encode("the d\x07o\x1bg").tokens == tiny_tokenizer.encode("the dog").tokens


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Co", "Cn"]), max_size=40))
def test_tokens_join_to_the_sentence(text: str) -> None:
    """As SentencePiece normalises it: compatibility forms folded (NFKC), runs of spaces to one."""
    encoded = toy.tokenizer().encode(text)
    assert len(encoded.ids) == len(encoded.tokens)
    joined = "".join(encoded.tokens[:-1])
    folded = unicodedata.normalize("NFKC", text).replace("\u2581", " ")
    assert unicodedata.normalize("NFKC", joined).split() == folded.split()


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_gives_one_token_an_id(text: str) -> None:
    encoded = toy.tokenizer().encode(text)
    assert len(encoded.ids) == len(encoded.tokens)
    assert encoded.tokens[-1] == "</s>"
    assert encoded.ids.count(EOS_ID) == 1
    assert [toy.tokenizer().encode_ids([text])] == [[list(encoded.ids)]]


@cache
def byte_tokenizer() -> Tokenizer:
    text = [side for pair in toy.sentences(60) for side in pair] + ["it's 2024 or 2025"]
    return Tokenizer.train(text, 340, byte_fallback=True, split_digits=True)


def test_characters_without_a_piece_are_spelled_in_bytes_that_people_can_tell() -> None:
    tokenizer = byte_tokenizer()
    encoded = tokenizer.encode("the Łdog😀狗.")
    assert encoded.tokens[:4] == (" the", " ", "<0xC5>", "<0x81>")
    assert encoded.tokens[-6:] == ("<0x80>", "<0xE7>", "<0x8B>", "<0x97>", ".", "</s>")
    assert encoded.unknown == ("Ł", "😀", "狗")
    assert UNK_ID not in encoded.ids
    assert tuple(map(tokenizer.token, encoded.ids)) == encoded.tokens
    assert tokenizer.decode(encoded.ids) == "the Łdog😀狗."
    assert tokenizer.encode_ids(["the Łdog😀狗."]) == [list(encoded.ids)]


def test_bytes_that_make_no_character_still_decode() -> None:
    tokenizer = byte_tokenizer()
    whole = tokenizer.encode("the 😀 dog")
    half = [one for one, token in zip(whole.ids, whole.tokens, strict=True) if token != "<0x80>"]
    assert tokenizer.decode(half).startswith("the �")
    assert tokenizer.decode(half).endswith(" dog")


def test_a_byte_typed_by_a_person_is_only_text() -> None:
    tokens = byte_tokenizer().encode("<0xE4>").tokens
    assert "<0xE4>" not in tokens
    assert byte_tokenizer().decode(byte_tokenizer().encode("<0xE4>").ids) == "<0xE4>"


def test_every_digit_is_a_piece_of_its_own_and_a_phones_apostrophe_has_one() -> None:
    assert byte_tokenizer().encode("2024").tokens[1:-1] == ("2", "0", "2", "4")
    assert "’" in byte_tokenizer().encode("it’s").tokens
    assert byte_tokenizer().encode("it’s").unknown == ()


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Co", "Cn"]), max_size=20))
def test_with_bytes_any_text_comes_back(text: str) -> None:
    """As SentencePiece normalises it; only the sign it uses for a space does not."""
    folded = " ".join(unicodedata.normalize("NFKC", text).replace("\u2581", " ").split())
    found = byte_tokenizer().decode(byte_tokenizer().encode(text).ids)
    assert unicodedata.normalize("NFKC", found).split() == folded.split()


def test_special_pieces_typed_by_a_person_are_only_text(tiny_tokenizer: Tokenizer) -> None:
    ids = tiny_tokenizer.encode("<s> </s> <pad> <unk>").ids
    assert BOS_ID not in ids
    assert PAD_ID not in ids
    assert ids.count(EOS_ID) == 1


def test_training_is_deterministic_and_saved_models_load(tmp_path: Path) -> None:
    text = [side for pair in toy.sentences(60) for side in pair]
    one, two = (Tokenizer.train(text, 60) for _ in range(2))
    assert one.model == two.model
    path = tmp_path / "tokenizer.model"
    path.write_bytes(one.model)
    assert Tokenizer.load(path).encode("the dog").tokens == one.encode("the dog").tokens


@pytest.mark.parametrize("data", [b"", b"not a model", b"\x00" * 100])
def test_other_files_are_refused_with_a_sentence(data: bytes) -> None:
    with pytest.raises(TokenizerError, match="tokenizer"):
        Tokenizer(data)


def test_a_model_with_other_special_ids_is_refused() -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(["a b c d e f"] * 5), model_writer=model, vocab_size=14, model_type="bpe", minloglevel=2
    )
    with pytest.raises(TokenizerError, match=r"special pieces at \[.*\], not at \[0, 1, 2, 3\]"):
        Tokenizer(model.getvalue())


def test_a_vocabulary_larger_than_the_text_is_refused_with_a_sentence() -> None:
    with pytest.raises(TokenizerError, match="No vocabulary of 5000 pieces can be learned from this text"):
        Tokenizer.train(["a short text"], 5000)
