"""Scores of translations fit the language: BLEU counts what are words in it, and so do the lengths of sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
import sacrebleu

from attenscope.checkpoint.recipe import Recipe
from attenscope.cli.train import _measure_bleu
from attenscope.evaluation.quality import evaluate_translator, measure_int8_quality
from attenscope.translate import Translator
from tests import toy

PAIRS = {
    "zh": [("We go to Beijing tomorrow.", "我们明天坐火车去北京。"), ("He likes tea.", "他非常喜欢喝绿茶。")],
    "de": [("We go to Berlin tomorrow.", "Wir fahren morgen nach Berlin."), ("He likes tea.", "Er trinkt gern Tee.")],
}
WRITTEN = {
    "zh": ["我们明天坐火车去上海。", "他非常喜欢喝红茶。"],
    "de": ["Wir fahren morgen nach Köln.", "Er trinkt gern Kaffee."],
}
TOKENISATION = {"zh": "zh", "de": "13a"}


@pytest.mark.parametrize("language", PAIRS)
def test_every_measurement_splits_text_as_its_language_does(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Chinese sentence has no spaces: by the tokenisation of others it is one word, right or wrong."""
    checkpoint = toy.checkpoint(toy.random_model())
    translator = Translator(dataclasses.replace(checkpoint, card={"target_language": language}))
    monkeypatch.setattr(Translator, "translate_batch", lambda *_: WRITTEN[language])
    pairs = PAIRS[language]
    sources, references = (list(side) for side in zip(*pairs, strict=True))
    score = sacrebleu.corpus_bleu(WRITTEN[language], [references], tokenize=TOKENISATION[language]).score
    assert score > 20
    found, _ = evaluate_translator(translator, sources, references)
    assert found.bleu == pytest.approx(score, abs=0.01)
    assert f"tok:{TOKENISATION[language]}" in found.bleu_signature
    int8 = measure_int8_quality(translator, pairs, "tests")
    assert (int8.half, int8.int8) == pytest.approx((score, score), abs=0.01)
    recipe = Recipe("toy", "en", language)
    assert _measure_bleu(checkpoint.model, checkpoint.tokenizer, pairs, recipe) == pytest.approx(score)


@pytest.mark.parametrize(
    ("sources", "lengths"),
    [
        (["A dog, it seems, runs.", "Don't - (please) - go!"], ["1 to 5"]),
        (["我明天去北京。", "你好，world and peace!"], ["1 to 5", "6 to 10"]),
        (["我明天和我的朋友们一起坐火车去北京。"], ["16 to 25"]),
    ],
)
def test_the_length_of_a_sentence_without_spaces_is_that_of_its_characters(
    sources: Sequence[str], lengths: list[str], toy_translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Translator, "translate_batch", lambda *_: list(sources))
    found, _ = evaluate_translator(toy_translator, sources, sources)
    assert [words for words, *_ in found.by_length] == lengths
