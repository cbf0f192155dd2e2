"""Text in, translation and trace out; and a clear sentence for what cannot be translated."""

from __future__ import annotations

import dataclasses
import io
import unicodedata
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attenscope.__main__ import main
from attenscope.capture.attention import capture_attention
from attenscope.checkpoint.load import CheckpointError
from attenscope.network.attention import force_attention_path
from attenscope.network.config import BOS_ID, EOS_ID
from attenscope.runnable_model import InputError
from attenscope.translate import Translator
from tests import toy
from tests.model.network.test_hooks import hooks_on

SENTENCE, GERMAN = "the old dog sees a tree today.", "der alte Hund sieht ein Baum heute."


@cache
def with_random_weights() -> Translator:
    return Translator(toy.checkpoint(toy.random_model()))


@pytest.fixture
def random_translator() -> Translator:
    """For what does not need to be right."""
    return with_random_weights()


def test_a_typed_sentence_is_translated(toy_translator: Translator) -> None:
    result = toy_translator.translate(SENTENCE)
    assert result.text == GERMAN
    assert result.source == SENTENCE
    assert result.stop_reason == "eos"
    assert result.target_ids[-1] == EOS_ID
    assert "".join(result.target_tokens[:-1]).strip() == GERMAN
    assert "".join(result.source_tokens[:-1]).strip() == SENTENCE
    assert result.unknown == ()
    assert result.seconds > 0
    assert result.log_prob == pytest.approx(sum(step.log_prob for step in result.steps))
    assert result.log_prob > -1
    assert all(step.candidates[0].token == step.token for step in result.steps)


def test_every_sentence_of_the_toy_language(toy_translator: Translator) -> None:
    pairs = toy.sentences(60, seed=77)
    assert toy_translator.translate_batch([english for english, _ in pairs]) == [german for _, german in pairs]


@pytest.mark.slow
def test_the_toy_language_can_be_learned_again() -> None:
    learned = Translator(toy.checkpoint(toy.train_model()))
    pairs = toy.sentences(50, seed=99)
    assert learned.translate_batch([english for english, _ in pairs]) == [german for _, german in pairs]


def test_the_trace_says_where_it_came_from(toy_translator: Translator) -> None:
    result = toy_translator.translate(SENTENCE)
    trace = result.trace
    assert (trace.source, trace.target, trace.model) == (SENTENCE, GERMAN, "toy-en-de")
    assert trace.model_hash == toy_translator.checkpoint.hash
    assert trace.settings["device"] == "cpu"
    shapes = {kind: one.weights.shape for kind, one in trace.maps.items()}
    source, target = len(result.source_ids), len(result.steps)
    assert shapes == {
        "encoder": (2, 2, source, source),
        "decoder": (2, 2, target, target),
        "cross": (2, 2, target, source),
    }
    for one in trace.maps.values():
        np.testing.assert_allclose(one.weights.sum(-1), 1, rtol=1e-5)


def test_a_model_that_translates_word_by_word_looks_at_the_word(toy_translator: Translator) -> None:
    """Some cross-attention head reads the source word of the token it predicts."""
    cross = toy_translator.translate("the dog sees a cat.").trace.cross
    assert cross is not None
    columns = cross.weights[:, :, :5].argmax(-1)
    assert (columns == np.arange(5)).mean(-1).max() >= 0.6


def test_capturing_changes_nothing_of_the_translation(toy_translator: Translator) -> None:
    with_trace, without = (toy_translator.translate(SENTENCE, capture=capture) for capture in (True, False))
    assert with_trace.steps == without.steps
    assert without.captured is None
    with pytest.raises(ValueError, match="capture=False and has no trace"):
        _ = without.trace
    assert hooks_on(toy_translator.model) == 0


def test_cut_off_at_the_limit_is_said(toy_translator: Translator) -> None:
    result = toy_translator.translate(SENTENCE, max_tokens=3)
    assert result.stop_reason == "length"
    assert result.text == "der alte Hund"
    assert result.trace.decoder is not None
    assert result.trace.decoder.predicted_tokens == (" der", " alte", " Hund")


@pytest.mark.parametrize(
    "text", ["", " ", "\t\n  \r\n", "\u200b", "\u2581", "\x00", "\x00\x01\x07\x1b", "\xad", "\u202e \ufeff"]
)
def test_nothing_to_translate_is_a_sentence(random_translator: Translator, text: str) -> None:
    with pytest.raises(InputError, match="nothing to translate yet: please type a sentence"):
        random_translator.translate(text)


def test_half_a_character_is_a_sentence(random_translator: Translator) -> None:
    """A lone surrogate cannot be written as UTF-8; bytes of another encoding in an argument arrive as such."""
    with pytest.raises(InputError, match="not valid Unicode"):
        random_translator.translate("the dog \ud83d sees")


def test_too_many_tokens_are_a_sentence(random_translator: Translator) -> None:
    with pytest.raises(
        InputError, match=r"This text has \d+ tokens\. This model reads 64 tokens at most, about 42 words"
    ):
        random_translator.translate("dog " * 80)
    with pytest.raises(InputError, match=r"This text has 10,000,000 characters\. .*please shorten the text"):
        random_translator.translate("x" * 10_000_000)


def test_a_text_of_exactly_the_limit_passes(random_translator: Translator) -> None:
    result = random_translator.translate("dog " * 63)
    assert len(result.source_ids) == 64
    assert len(result.steps) <= 63


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("狗看见猫。", True),
        ("الكلب يرى قطة", True),
        ("👩‍👩‍👧 sees a 🐶", True),
        ("<script>alert(1)</script>", True),
        ("</s> <s> <pad>", True),
        ("the dog\x07 sees\x1b a cat.", False),
        ("THE DOG", True),
        ("e\u0301", True),
        ("\u202ethe dog", True),
    ],
)
def test_any_script_gives_a_trace(random_translator: Translator, text: str, unknown: bool) -> None:
    result = random_translator.translate(text, max_tokens=3)
    assert bool(result.unknown) == unknown
    assert "<unk>" not in result.source_tokens
    assert result.trace.encoder is not None
    assert result.trace.encoder.query_tokens == result.source_tokens
    assert result.source_ids[-1] == EOS_ID


@given(st.text(max_size=30))
def test_any_text_gives_a_translation_or_a_sentence(text: str) -> None:
    visible = any(not one.isspace() and unicodedata.category(one) not in ("Cc", "Cf") for one in text)
    try:
        result = with_random_weights().translate(text, max_tokens=2)
    except InputError as refused:
        assert "please" in str(refused)  # noqa: PT017  (either outcome may be right)
    else:
        assert visible
        assert 1 <= len(result.steps) <= 2


def test_a_batch_keeps_the_order_and_names_the_line_that_cannot_be(toy_translator: Translator) -> None:
    texts = [SENTENCE, "a cat finds the house.", "the red child likes a tree and the small dog here."]
    assert toy_translator.translate_batch(texts) == [toy.translation(text) for text in texts]
    assert toy_translator.translate_batch([]) == []
    with pytest.raises(InputError, match="Line 2: There is nothing to translate yet"):
        toy_translator.translate_batch([SENTENCE, " "])


def test_both_paths_translate_alike(toy_translator: Translator) -> None:
    with force_attention_path("fused"):
        fused = toy_translator.translate(SENTENCE, capture=False)
    assert fused.target_ids == toy_translator.translate(SENTENCE).target_ids


def test_the_trace_is_that_of_one_forward_pass(toy_translator: Translator) -> None:
    """Captured step by step with a cache; the same model fed the finished translation at once gives the same."""
    result = toy_translator.translate(SENTENCE)
    target = torch.tensor([[BOS_ID, *result.target_ids[:-1]]])
    with torch.no_grad(), capture_attention(toy_translator.model) as capture:
        toy_translator.model(torch.tensor([result.source_ids]), target)
    for kind, one in capture.trace.maps.items():
        np.testing.assert_allclose(result.trace.maps[kind].weights, one.weights, atol=1e-5)
        np.testing.assert_array_equal(result.trace.maps[kind].mask, one.mask)


def test_translators_load_by_folder_and_refuse_what_is_none(toy_checkpoint: Path, tmp_path: Path) -> None:
    translator = Translator.load(toy_checkpoint, device="cpu")
    assert translator.name == "toy-en-de"
    assert translator.card["source_language"] == "en"
    assert translator.device == torch.device("cpu")
    with pytest.raises(CheckpointError, match="no checkpoint"):
        Translator.load(tmp_path / "absent")


def test_a_translation_is_frozen(toy_translator: Translator) -> None:
    result = toy_translator.translate(SENTENCE, capture=False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.text = ""  # type: ignore[misc]


@pytest.mark.parametrize(("text", "lines"), [("", 0), (f"{SENTENCE}\n\n{SENTENCE}", 3), (f"{SENTENCE}\u2028\n", 1)])
def test_the_command_line_writes_a_line_for_every_line(
    toy_checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    lines: int,
) -> None:
    """And only line feeds part lines, so that line N stays the translation of line N."""
    monkeypatch.setattr("sys.stdin", io.StringIO(text, newline="\n"))
    assert main(["translate", "--checkpoint", str(toy_checkpoint), "--device", "cpu"]) == 0
    written = capsys.readouterr().out.split("\n")[:-1]
    assert len(written) == lines
    assert [one for one in written if one] == [GERMAN] * sum(1 for one in text.split("\n") if one)
