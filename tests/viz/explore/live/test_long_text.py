"""A text that is too long for whole maps, on Explore and on the other pages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attenscope.hugging_face.load import FolderModel
from attenscope.viz.explore.long_text_page import make_pooled_map, render_strongest_keys
from attenscope.viz.figures.figure_style import LIGHT
from attenscope.viz.figures.long_text import find_strongest_keys, plot_attention_row, split_passage
from attenscope.viz.ui import cache
from tests import folders
from tests.viz.explore.live.conftest import Start
from tests.viz.page_texts import captions

pytestmark = pytest.mark.timeout(600)  # a busy machine takes a minute to import transformers
TEXT = " ".join(folders.TEXT * 8)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    base = tmp_path_factory.mktemp("models")
    folders.llama(base / "llama", max_position_embeddings=2048)
    return base


def test_pooled_maps_and_the_row_of_a_query_are_drawn(start: Start) -> None:
    app = start("llama", sentence=TEXT)
    assert not app.exception
    model = cache.load_runnable_model("llama")
    assert isinstance(model, FolderModel)
    encoded = model.encode_long_text(TEXT)
    assert encoded is not None
    tokens, block = len(encoded.ids), -(-len(encoded.ids) // 64)
    said = " ".join(captions(app))
    assert f"This text has {tokens:,} tokens" in said
    assert f"the largest weight of {block} × {block} tokens" in said
    assert app.number_input(key="long-text-query").value == tokens
    app.number_input(key="long-text-query").set_value(tokens // 2).run()
    assert not app.exception
    found = cache.compute_attention_row("llama", TEXT, tokens // 2 - 1)
    row = found.rows[tokens // 2 - 1][0, 0]
    whole = model.read_long_text(encoded.ids, (tokens // 2 - 1,)).rows[tokens // 2 - 1][0, 0]
    np.testing.assert_allclose(row, whole, atol=1e-6)
    assert any(render_strongest_keys(row, encoded.tokens) in getattr(one, "body", "") for one in app.get("html"))


def test_other_pages_say_where_it_is_shown(start: Start) -> None:
    app = start("llama", sentence=TEXT)
    app.switch_page("viz/pages/decode.py").run()
    assert not app.exception
    assert "Explore shows texts of up to 2,048 tokens in pooled maps." in app.info[0].value.replace("\\", "")


def test_blocks_are_named_by_their_positions(start: Start) -> None:
    start("llama", sentence=TEXT)
    pooled = cache.compute_pooled_attention("llama", TEXT)
    drawn = make_pooled_map(pooled)
    assert drawn.key_tokens[:2] == (f"1–{pooled.block}", f"{pooled.block + 1}–{2 * pooled.block}")
    assert drawn.key_tokens[-1].endswith(f"–{pooled.tokens}")
    assert drawn.mask.tolist() == np.tri(len(drawn.key_tokens), dtype=bool).tolist()
    assert drawn.layer_masks is None


def test_the_strongest_keys_stand_in_their_passages() -> None:
    weights = np.array([0.1, 0.5, 0.0, 0.4, np.nan], np.float32)
    assert find_strongest_keys(weights) == [1, 3, 0]
    assert split_passage(["a", " b", " c", " d"], 1) == ("a", " b", " c d")
    many = [f" {number}" for number in range(30)]
    before, token, after = split_passage(many, 20)
    assert (before[:4], token, after[-4:]) == ("… 12", " 20", " 28…")
    assert "<script>" not in render_strongest_keys(np.ones(1), ["<script>"])
    curves = plot_attention_row(weights, ["a", " b", " c", " d", " e"], 3, 0, 1, LIGHT)
    expected = [[1, 0.1], [2, 0.5], [3, 0.0], [4, 0.4], [5, np.nan]]
    np.testing.assert_allclose(curves.marks[0].points, expected, rtol=1e-6)
