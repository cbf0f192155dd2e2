"""What a diagnosis says, in the language of who reads it; its codes are the same in all of them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from attenscope.language import PSEUDO_LANGUAGE, use_language
from attenscope.masks.arrays import ARRAY_NAMES, DiagnosisError, guess_role
from attenscope.masks.diagnose import diagnose
from attenscope.masks.fault_catalogue import FAULTS
from attenscope.masks.findings import Diagnosis
from attenscope.masks.read_text import describe_axes
from attenscope.masks.softmax import softmax
from attenscope.masks.structure import Structure

CAUSAL = np.tri(6, dtype=bool)
KEEP = np.array([[1, 1, 1, 1, 0, 0], [1] * 6], bool)
SCORES = np.random.default_rng(0).normal(size=(2, 2, 6, 6))
NAMED = "|".join(sorted(map(re.escape, (*FAULTS, *ARRAY_NAMES)), key=len, reverse=True))
PLAIN = re.compile(r"\b[a-z]*[aeiou][a-z]{2,}\b", re.IGNORECASE)
"""A word without an accent: the pseudo-language has one on nearly every letter."""
CASES: list[dict[str, Any]] = [
    {"weights": softmax(SCORES), "mask": CAUSAL},
    {"weights": softmax(SCORES), "key_keep": KEEP, "meant": "causal+padding"},
    {"weights": softmax(np.where(~CAUSAL, SCORES, -np.inf)), "meant": "causal"},
    {"weights": softmax(np.where(CAUSAL, SCORES, -6.0)), "meant": "causal"},
    {"weights": softmax(SCORES) * CAUSAL, "meant": "causal"},
    {"weights": softmax(SCORES.swapaxes(-1, -2)).swapaxes(-1, -2), "scores": SCORES},
    {"scores": SCORES, "mask": CAUSAL.astype(np.float32)},
    {"weights": softmax(np.where(CAUSAL & np.triu(CAUSAL, -2), SCORES, -np.inf)), "map": "decoder"},
]


def texts(found: Diagnosis) -> list[str]:
    messages = [one.message for one in found.findings] + [one.text for one in found.unknown]
    return [re.sub(NAMED, "", text) for text in (*messages, found.meaning)]


@pytest.mark.parametrize("case", CASES)
def test_every_word_is_the_readers_and_no_code_is(case: dict[str, Any]) -> None:
    english = diagnose(**case)
    with use_language(PSEUDO_LANGUAGE):
        found = diagnose(**case)
        read = texts(found)
    assert [one.code for one in found.findings] == [one.code for one in english.findings]
    assert found.verdict == english.verdict
    assert all(PLAIN.search(text) for text in texts(english))
    assert not [text for text in read if PLAIN.search(text)]


def test_a_place_begins_with_a_capital_in_english_and_stands_where_the_language_puts_it() -> None:
    case: dict[str, Any] = {"weights": softmax(SCORES), "meant": "causal", "map": "decoder"}
    assert diagnose(**case).findings[0].message.startswith("Decoder, everywhere: queries attend to keys after")
    with use_language("zh"):
        assert diagnose(**case).findings[0].message.startswith("解码器，所有位置：")


def test_a_structure_in_words() -> None:
    structure = Structure(-3, 0, sinks=2, spans=((1, 4),), starts=(5,))
    text = "a causal window of 4, with 1 span read in both directions, beside the first 2 keys, in 2 packed documents"
    assert structure.words() == text
    assert Structure(sinks=1).words() == "every key, beside the first key"
    assert Structure(hi=-2).words() == "causal, 2 slots before the end"
    with use_language("de"):
        assert Structure(-3, 0, chunk=4).words() == "ein kausales Fenster von 4, in Blöcken von 4"


def test_axes_are_counted_in_the_readers_language() -> None:
    with use_language("de"):
        read = describe_axes("weights", (1, 5, 7), (2, 1, 4, 5, 7))
    assert (
        read == "Ihre weights (1, 5, 7) wurden gelesen als 1 Head × 5 Queries × 7 Keys; geteilt von allen 2 Samples "
        "und allen 4 Heads."
    )


def test_a_name_is_reason_enough_in_every_language() -> None:
    with use_language("de"):
        assert guess_role(KEEP, "key_keep").by_name
        assert not guess_role(CAUSAL).by_name
        with pytest.raises(DiagnosisError, match="Die Gewichte enthalten negative Werte"):
            diagnose(-np.ones((3, 3)))
