"""Backends compared on the page: what is said of each way, its mask, and a folder's model from end to end."""

from __future__ import annotations

import base64
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attenscope.mask_tests.backends import BackendComparison, BackendResult
from attenscope.viz.figures.figure_style import LIGHT
from attenscope.viz.figures.masks import THUMBNAIL_SIDE, make_mask_thumbnail, mask_colours
from attenscope.viz.masks import backends
from attenscope.viz.masks import cache as masks_cache
from attenscope.viz.ui import cache
from tests import folders
from tests.viz.page_texts import captions

APP = Path(__file__).resolve().parents[3] / "app.py"
SAME = BackendResult("eager", "same", difference=2e-6, noise=1e-5)
EXACT = BackendResult("packed", "same", noise=1e-5)
PARTS = BackendResult("cache", "parts", "", "layers.1", 1, 2, 0.5, 1e-4)
LEFT_OUT = BackendResult("flex", "not run", "the model has no <b>flex</b>")


def test_what_came_of_each_way() -> None:
    assert backends.describe_result(SAME) == "the same, up to 2.0e−06"
    assert backends.describe_result(EXACT) == "the same, to the last bit"
    assert backends.describe_result(PARTS) == "parts at layers.1, sample 2, token 3, by 0.5: 5,000 times the noise"
    nan = replace(PARTS, difference=math.nan)
    said = "parts at layers.1, sample 2, token 3: outputs of this layer are NaN or infinite"
    assert backends.describe_result(nan) == said
    assert (
        backends.describe_agreement(BackendComparison((SAME, EXACT)))
        == "All 2 ways that ran give the same, within noise."
    )
    said = backends.describe_agreement(BackendComparison((SAME, PARTS, LEFT_OUT)))
    assert said == "1 of 2 ways that ran parts from the model as it is: cache; 1 could not run."
    shown = backends.render_results_table(BackendComparison((SAME, PARTS, LEFT_OUT)))
    assert shown.count("<tr>") == 4
    assert "&lt;b&gt;flex" in shown
    found = backends.tabulate_results(BackendComparison((SAME, PARTS)))
    assert found.loc["cache", "token"] == 3
    assert found["token"].isna().tolist() == [True, False]


def test_a_thumbnail_has_every_open_cell() -> None:
    mask = np.random.default_rng(0).random((5, 8)) < 0.5
    image = make_mask_thumbnail(mask, mask_colours(LIGHT), 'a "mask"')
    assert 'alt="a &quot;mask&quot;"' in image
    assert f'width="{THUMBNAIL_SIDE}"' in image
    svg = base64.b64decode(re.findall(r"base64,([^\"]+)", image)[0]).decode()
    drawn = np.zeros_like(mask)
    for x, y, width in re.findall(r'<rect x="(\d+)" y="(\d+)" width="(\d+)" height="1"/>', svg):
        drawn[int(y), int(x) : int(x) + int(width)] = True
    np.testing.assert_array_equal(drawn, mask)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")  # of torch itself, when flex_attention runs uncompiled
def test_a_folder_on_the_page_and_why_a_model_of_this_project_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    folders.FOLDERS["llama"](tmp_path / "llama")
    monkeypatch.setattr(sys, "argv", ["app.py", "--models", str(tmp_path)])
    cache._find_command_line_model_folders.clear()
    app = AppTest.from_file(str(APP), default_timeout=150)
    for name, value in {"model": "llama", "sentence": folders.SENTENCE}.items():
        app.query_params[name] = value
    app.run()
    app.switch_page("viz/pages/masks.py").run()
    app.button(key="view backends").click().run()
    assert not app.exception
    assert any("All 9 ways that ran give the same" in one.value for one in app.markdown)
    assert any("padded at the right" in one for one in captions(app))
    app.text_area(key="sentence").set_value("a").run()
    assert not app.exception
    app.selectbox(key="model").set_value("everyday-en-de").run()
    assert any("Kernels and caches are compared of models of Hugging Face" in one.value for one in app.info)
    for one in (
        cache._find_command_line_model_folders,
        cache._load_model_or_error,
        cache._load_model_from_spec,
        cache._load_model_on_device,
        masks_cache.compute_backend_comparison,
    ):
        one.clear()
