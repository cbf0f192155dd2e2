"""Models of pictures and sounds on Explore: a file of their folder, an uploaded one, and what is said elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attenscope.text.patches import Patches
from attenscope.trace import AttentionMap
from attenscope.viz import page_setup
from attenscope.viz.explore.media_page import find_sharpest_head
from attenscope.viz.traces.session import UPLOADED_FILE_KEY, UploadedFile
from tests import folders
from tests.viz.explore.live.conftest import Start
from tests.viz.page_texts import ISOLATES, as_read, captions

pytestmark = pytest.mark.timeout(600)  # a busy machine takes a minute to import transformers


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    base = tmp_path_factory.mktemp("models")
    for name in ("vit", "trocr", "whisper", "marian"):
        folders.FOLDERS[name](base / name)
    return base


def read_captions(app: AppTest) -> list[str]:
    return [one.translate(ISOLATES) for one in captions(app)]


def test_a_picture_is_opened_on_the_row_over_it(start: Start) -> None:
    app = start("vit", layer="")
    assert app.segmented_control(key="view").value == "picture"
    assert app.selectbox(key="file").options == ["garden.png"]
    assert (app.query_params["view"], app.query_params["layer"]) == ("picture", "2")
    assert any("“[CLS]” looks at" in one and "of the row lies on tokens" in one for one in read_captions(app))
    app.segmented_control(key="view").set_value("heatmap").run()
    assert app.query_params["view"] == "heatmap"  # so that the same address shows the same again
    again = start("vit", view="heatmap")
    assert again.segmented_control(key="view").value == "heatmap"


def test_the_kind_and_the_head_of_a_picture_are_not_those_of_the_next_model(start: Start) -> None:
    """The page has chosen them, not the visitor."""
    app = start("vit", layer="")
    app.selectbox(key="model").set_value("marian").run()
    assert not app.exception
    assert "kind" not in app.query_params
    assert "pin" in app.query_params  # of the telling word, at the head that shows it


def test_what_the_address_asks_for_is_shown(start: Start) -> None:
    app = start("vit", view="picture", head="2", pin="source.9")
    assert any("“2,2” looks at" in one for one in read_captions(app))
    assert app.query_params["head"] == "2"


def test_a_picture_lies_below_the_cross_attention_alone(start: Start) -> None:
    app = start("trocr", kind="cross", view="picture")
    assert any("drawn over the picture" in one for one in captions(app))
    app = start("trocr", kind="decoder", view="picture")
    assert [one for one in app.info if "no patches of a picture" in one.value]


def test_an_uploaded_picture_is_read_and_one_of_another_session_is_asked_for(start: Start, tmp_path: Path) -> None:
    folders.write_picture(tmp_path / "mine.png", 40, 80)
    own = UploadedFile("mine <b>1</b>.png", (tmp_path / "mine.png").read_bytes())
    assert own.address.startswith("upload-")
    app = start("vit", file=own.address)
    assert as_read(one.value for one in app.info) == [
        "This address names a file that was uploaded, and files stay with their visitor: upload it here."
    ]
    app.session_state[UPLOADED_FILE_KEY] = own
    app.run()
    assert not app.exception
    assert not app.info
    assert app.selectbox(key="file").options == [own.name, "garden.png"]
    assert app.query_params["file"] == own.address


def test_a_file_that_is_gone_gives_way_to_one_that_is_there(start: Start) -> None:
    app = start("whisper", file="gone.wav", kind="cross")
    assert app.selectbox(key="file").value == "speech.wav"
    assert not app.info


def test_the_stage_shows_a_file_of_the_folder(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address names it; what a visitor has handed over is asked for under another name."""
    monkeypatch.setattr(page_setup, "is_presenting", lambda: True)
    app = start("vit", file="garden.png", present="1")
    assert not app.info
    assert app.selectbox(key="file").value == "garden.png"
    app = start("vit", file="garden.png", present="1", kept="A" * 32)
    assert "no longer kept" in app.info[0].value


def test_a_folder_without_files_asks_for_one(start: Start, directory: Path) -> None:
    moved = (directory / "vit" / "garden.png").rename(directory / "garden.png")
    try:
        app = start("vit")
        assert as_read(one.value for one in app.info) == [
            "vit reads pictures: upload a PNG, JPEG or WebP file, or put one into its folder."
        ]
    finally:
        moved.rename(directory / "vit" / "garden.png")


@pytest.mark.parametrize(("model", "reads"), [("vit", "reads pictures"), ("whisper", "reads sound")])
def test_other_pages_say_why_they_are_empty(model: str, reads: str, start: Start) -> None:
    app = start(model)
    for page in ("why", "heads", "decode"):
        app.switch_page(f"viz/pages/{page}.py").run()
        assert not app.exception
        said = as_read(one.value for one in app.info)
        assert any((reads if page == "why" else "only reads") in one for one in said), said


def test_the_head_that_looks_most_at_one_patch_is_opened() -> None:
    weights = np.full((1, 3, 5, 5), 0.2, np.float32)
    weights[0, 1, 0] = (0.9, 0.02, 0.03, 0.02, 0.03)  # at [CLS], which is nowhere in the picture
    weights[0, 2, 0] = (0.1, 0.7, 0.1, 0.05, 0.05)
    names = Patches(2, 2)
    attention = AttentionMap("encoder", weights, tuple(names), tuple(names), np.ones((5, 5), bool))
    assert find_sharpest_head(attention, names) == 2
