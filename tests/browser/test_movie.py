"""Films: what moves, as WebM and GIF, by the command and by the menu Save; their pictures are those of the stage."""

from __future__ import annotations

import base64
import io
from datetime import date
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from PIL import Image, ImageSequence
from playwright.sync_api import Page

from attenscope.analysis.attention_steps import compute_attention_steps
from attenscope.trace import AttentionMap
from attenscope.viz.export.browser_recording import record_slide_film
from attenscope.viz.export.offline_html import build_talk_page
from attenscope.viz.export.parts import Chart, Component, Slide, View
from attenscope.viz.figures.figure_style import LIGHT, Look
from attenscope.viz.web.charts import PIPELINE_STEPS, encode_attention_pipeline
from tests.browser.steps import download, open_menu, open_page

pytestmark = [pytest.mark.sweep, pytest.mark.timeout(600)]
CLOSE = 38.0
"""The least ratio of signal to noise, in decibels, of a picture of a film: VP9 halves the resolution of colours."""
SEEN = """async ([address, seconds]) => {
    const video = document.createElement("video");
    Object.assign(video, { muted: true, src: address });
    await new Promise((done, fail) => {
        Object.assign(video, { onloadedmetadata: done, onerror: () => fail(video.error.message) });
    });
    const drawn = [];
    for (const time of [0.05, seconds - 0.05]) {
        video.currentTime = time;
        await new Promise((done) => (video.onseeked = done));
        const canvas = new OffscreenCanvas(video.videoWidth, video.videoHeight);
        canvas.getContext("2d").drawImage(video, 0, 0);
        const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
        drawn.push(bytes.toBase64?.() ?? btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join("")));
    }
    return [video.duration, ...drawn];
}"""
"""How long a film plays, its first picture and its last."""


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=np.float64)


def noise(one: np.ndarray, other: np.ndarray) -> float:
    """Ratio of signal to noise in decibels."""
    return float(10 * np.log10(255**2 / max(np.square(one - other).mean(), 1e-9)))


@pytest.fixture
def steps_page() -> str:
    """A talk's page of one slide: the steps of one query, computed from numbers drawn at random."""
    drawn = np.random.default_rng(1)
    q, k, v = (drawn.normal(size=(1, 1, 4, 8)).astype(np.float32) for _ in range(3))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(8)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    tokens = ("He", " reads", " a", " book")
    tensors = {"q": q, "k": k, "v": v, "scores": scores, "masked_scores": scores}
    shown = AttentionMap("encoder", weights, tokens, tokens, np.ones((4, 4), dtype=bool), tensors=tensors)
    data = encode_attention_pipeline(
        compute_attention_steps(shown, 0, 0, 1), " reads", Look(), 0, "One query, step by step."
    )
    view = View("Step by step", [Component("pipeline", data)])
    return build_talk_page("Step by step", [Slide("Step by step", view)], LIGHT, date(2026, 11, 26))


def test_a_film_begins_and_ends_with_the_pixels_of_the_stage(steps_page: str, disk: Page) -> None:
    frames, film = record_slide_film(steps_page, "webm", 4 / 3)
    assert len(frames) == PIPELINE_STEPS
    assert len({frame.png for frame in frames}) == PIPELINE_STEPS
    seconds = sum(frame.seconds for frame in frames)
    disk.goto("about:blank")
    address = f"data:video/webm;base64,{base64.b64encode(film).decode()}"
    played, *shown = disk.evaluate(SEEN, [address, seconds])
    assert played == pytest.approx(seconds, abs=0.11)
    for picture, frame in zip(shown, (frames[0], frames[-1]), strict=True):
        seen = pixels(base64.b64decode(picture))
        assert seen.shape == (720, 1280, 3)
        assert noise(seen, pixels(frame.png)) > CLOSE
        assert noise(seen, pixels(frames[3].png)) < noise(seen, pixels(frame.png)) - 3


@pytest.mark.slow
def test_a_chart_that_moves_is_filmed_and_stands_still_at_its_own_picture() -> None:
    figures = [go.Figure(go.Heatmap(z=[[at, 3 - at], [at / 2, 1]], zmin=0, zmax=3), {"height": 400}) for at in range(4)]
    view = View("Layer by layer", [Chart(figures[-1], "A map", moments=figures)])
    page = build_talk_page("Layer by layer", [Slide("Layer by layer", view)], LIGHT, date(2026, 11, 26))
    frames, film = record_slide_film(page, "gif", 4 / 3)
    assert len({frame.png for frame in frames}) == len(frames) == len(figures)
    still = View("Layer by layer", [Chart(figures[-1], "A map")])
    alone = build_talk_page("Layer by layer", [Slide("Layer by layer", still)], LIGHT, date(2026, 11, 26))
    (stage,), _ = record_slide_film(alone, "gif", 4 / 3)
    np.testing.assert_array_equal(pixels(frames[-1].png), pixels(stage.png))
    assert sum(1 for _ in ImageSequence.Iterator(Image.open(io.BytesIO(film)))) == len(figures)


@pytest.mark.slow
def test_a_gif_has_every_picture_for_its_time(steps_page: str) -> None:
    frames, film = record_slide_film(steps_page, "gif", 4 / 3)
    pictures = ImageSequence.Iterator(Image.open(io.BytesIO(film)))
    for shown, frame in zip(pictures, frames, strict=True):
        assert shown.info["duration"] == round(1000 * frame.seconds)
        assert noise(np.asarray(shown.convert("RGB"), dtype=np.float64), pixels(frame.png)) > CLOSE


def test_a_view_that_moves_is_saved_as_a_film(page: Page, tmp_path: Path) -> None:
    open_page(page, "/decode?sentence=He+reads+a+book.")
    menu = open_menu(page, "share")
    film = download(menu.get_by_role("button", name="Save as WebM"), tmp_path)
    assert film.read_bytes()[:4] == bytes.fromhex("1a45dfa3")
    gif = download(menu.get_by_role("button", name="Save as GIF"), tmp_path)
    pictures = ImageSequence.Iterator(Image.open(io.BytesIO(gif.read_bytes())))
    assert sum(1 for _ in pictures) > 4  # A picture a token, and </s>.
    open_page(page, "/?sentence=He+reads+a+book.&view=flow")
    flow = download(open_menu(page, "share").get_by_role("button", name="Save as GIF"), tmp_path)
    layers = sum(1 for _ in ImageSequence.Iterator(Image.open(io.BytesIO(flow.read_bytes()))))
    assert layers == 4  # As many as the model has.
    open_page(page, "/?sentence=He+reads+a+book.&view=flow&through=1")
    assert open_menu(page, "share").get_by_role("button", name="Save as GIF").is_hidden()
    open_page(page, "/positions?sentence=He+reads+a+book.")
    assert open_menu(page, "share").get_by_role("button", name="Save as GIF").is_hidden()
