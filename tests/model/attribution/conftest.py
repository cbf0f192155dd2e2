"""A translation of the toy model and models of every norm order."""

from __future__ import annotations

from typing import Any

import pytest

from attenscope.attribution.target import Target, make_piece_target
from attenscope.runnable_model import Translation
from attenscope.translate import Translator
from tests import toy

SENTENCE = "the old dog sees a red cat here."
PRESETS: dict[str, dict[str, Any]] = {
    "pre": {},
    "pre, no final norm": {"final_norm": False},
    "post": {"norm_order": "post", "final_norm": False},
    "post, final norm": {"norm_order": "post"},
    "std_eps": {"norm_form": "std_eps", "norm_eps": 1e-6, "tied_generator": False, "generator_bias": True},
    "no biases": {"norm_order": "post", "final_norm": False, "qkv_bias": False, "output_bias": False},
    "unscaled": {"scale_scores": False, "scale_embedding": False, "positions": "learned"},
    "pad_row": {"positions": "sinusoidal_pad_row", "norm_order": "post", "norm_form": "std_eps", "final_norm": False},
}


@pytest.fixture(params=list(PRESETS.values()), ids=list(PRESETS))
def any_translator(request: pytest.FixtureRequest) -> Translator:
    """Random weights of every norm order and form."""
    return Translator(toy.checkpoint(toy.random_model(**request.param)))


@pytest.fixture(scope="session")
def toy_translation(toy_translator: Translator) -> Translation:
    return toy_translator.translate(SENTENCE, capture=False)


@pytest.fixture(scope="session")
def toy_target(toy_translator: Translator, toy_translation: Translation) -> Target:
    """A piece in the middle of the translation."""
    return make_piece_target(toy_translator, toy_translation, 4)


def read(translator: Translator, source: str = "a small dog.", target: str = "ein kleine Hund.") -> Translation:
    """A translation that is given, so that a random model has one too."""
    return translator.force(source, target, capture=False)
