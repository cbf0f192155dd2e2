"""A small atlas of a toy model, built once."""

from __future__ import annotations

import pytest

from attenscope.atlas.build import Corpus, build_atlas
from attenscope.atlas.query import Atlas, open_atlas
from attenscope.translate import Translator
from tests import toy


@pytest.fixture(scope="session")
def atlas(toy_translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Atlas:
    folder = tmp_path_factory.mktemp("atlas' of quotes")  # a path may hold the sign that ends a string in SQL
    for name, side in (("a.en", 0), ("a.de", 1)):
        text = "".join(f"{pair[side]}\n" for pair in toy.sentences(30, seed=5))
        (folder / name).write_text(text, encoding="utf-8")
    build_atlas(toy_translator, Corpus.read(folder / "a.en", folder / "a.de", 20), folder / "out")
    return open_atlas(folder / "out", toy_translator.name, toy_translator.checkpoint.hash)
