"""The page Masks: cells, edits, verdicts in words, and the page itself without a browser."""

from __future__ import annotations

import csv
import dataclasses
import gc
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attenscope import viz
from attenscope.gallery.exhibits import PRINTED_EXAMPLES
from attenscope.language import use_language
from attenscope.mask_tests.outcomes import compute_layer_reach
from attenscope.masks.arrays import DiagnosisError
from attenscope.masks.attention_call_origin import AttentionCall
from attenscope.masks.diagnose import diagnose
from attenscope.masks.read_files import MapContents
from attenscope.masks.read_text import read_printed_tensors
from attenscope.masks.softmax import softmax
from attenscope.trace import AttentionMap, AttentionTrace
from attenscope.untrusted_trace import open_trace
from attenscope.viz.figures.figure_style import DARK, LIGHT, Look
from attenscope.viz.figures.masks import PipelineStage, mask_colours, plot_mask_pipeline
from attenscope.viz.masks import entry_controls
from attenscope.viz.masks.mask_input import Edits, MaskInput
from attenscope.viz.masks.pictures import (
    build_panels,
    classify_cells_by_intended_mask,
    classify_weights,
    compute_output_dependence,
    find_uniform_rows,
    mark_additive_fills,
    slice_judgement,
)
from attenscope.viz.masks.verdict import (
    FIX_API_KEY,
    describe_further_findings,
    describe_headline,
    describe_place,
    format_findings_csv,
    format_verdict_json,
    judge_with_edits,
    sort_findings,
)
from attenscope.viz.serving.middleware import MEGABYTE
from attenscope.viz.talk.attachments import ArraysFile
from attenscope.viz.traces.session import build_opened_file_session_values
from attenscope.viz.traces.upload_store import ArrayBytesCounter, get_upload_store
from attenscope.viz.web.mask_editor import CellMark, CellState, MaskPanel, encode_mask_editor
from tests.viz.page_texts import ISOLATES, as_read, captions
from tests.viz.web.test_packing import unpack

PAGES = Path(viz.__file__).parent / "pages"
APP = """
import streamlit as st
from attenscope.viz.masks.judge import draw_judge_view
draw_judge_view()
"""
CAUSAL = np.tri(4, dtype=bool)
SCORES = np.random.default_rng(0).normal(size=(4, 4))
LEAKY = softmax(SCORES)


def mask_input(**arrays: np.ndarray) -> MaskInput:
    return MaskInput("one", arrays, editable=frozenset({"meant"}))


def test_cells_against_what_was_meant() -> None:
    open_cells = np.array([[True, True], [False, False]])
    meant = np.array([[True, False], [True, False]])
    assert classify_cells_by_intended_mask(open_cells, meant).tolist() == [
        [CellState.ALLOWED, CellState.LEAK],
        [CellState.OVER, CellState.BLOCKED],
    ]
    assert classify_cells_by_intended_mask(open_cells, None).tolist() == [
        [CellState.ALLOWED, CellState.ALLOWED],
        [CellState.BLOCKED, CellState.BLOCKED],
    ]


def test_what_blocks_a_cell_is_told_apart() -> None:
    bias = np.array([[0, -np.inf], [-1e9, 0]])
    allowed = bias == 0
    assert mark_additive_fills(bias, allowed).tolist() == [
        [CellMark.NONE, CellMark.INFINITE],
        [CellMark.FINITE, CellMark.NONE],
    ]
    ones = np.array([[1.0, 0], [1, 1]])
    assert mark_additive_fills(ones, ones > 0).tolist() == [
        [CellMark.ADDED, CellMark.NONE],
        [CellMark.ADDED, CellMark.ADDED],
    ]
    assert not mark_additive_fills(None, allowed).any()


def test_nan_uniform_rounded_and_padding_rows_look_each_their_own() -> None:
    weights = np.array([[np.nan] * 3, [1 / 3] * 3, [1, 0, 0], [0.5, 0.5, 0]])
    meant = np.array([[False] * 3, [False] * 3, [True] * 3, [True, True, False]])
    states, marks = classify_weights(weights, meant, np.array([0, 0, 1, 0], bool), np.array([0, 0, 0, 1], bool))
    assert (states[0] == CellState.NAN).all()
    assert (marks[1] == CellMark.UNIFORM).all()
    assert (states[2] == CellState.ALLOWED).all()  # zeros that may be rounding
    assert states[3].tolist() == [CellState.DIM, CellState.DIM, CellState.BLOCKED]
    assert find_uniform_rows(weights, None).tolist() == [False, True, False, False]


def test_pictures_agree_with_the_verdict() -> None:
    one = mask_input(weights=LEAKY, meant=CAUSAL)
    found = judge_with_edits(one, Edits("one"))
    assert [finding.code for finding in found.diagnosis.findings] == ["future-visible"]
    drawn = {panel.name: panel for panel in build_panels(one, found, slice_judgement(found, 0, 0, 0), 1)}
    assert drawn["given"].states is None
    for name in ("effect", "depends"):
        states = drawn[name].states
        assert states is not None
        np.testing.assert_array_equal(states == CellState.LEAK, ~CAUSAL)
    mended = judge_with_edits(one, Edits("one", fixes=("future-visible",)))
    assert mended.diagnosis.sound
    assert "blocked" in mended.done[0]
    assert not mended.before.sound


def test_a_cell_turned_over_changes_what_is_judged() -> None:
    one = MaskInput("one", {"mask": CAUSAL, "meant": CAUSAL}, editable=frozenset({"given", "meant"}))
    assert judge_with_edits(one, Edits("one")).diagnosis.sound
    given = judge_with_edits(one, Edits("one", cells=frozenset({("given", 0, 1, 3)})))
    assert not given.diagnosis.sound
    both = judge_with_edits(one, Edits("one", cells=frozenset({("given", 0, 1, 3), ("meant", 0, 1, 3)})))
    assert both.diagnosis.sound
    added = MaskInput("one", {"mask": np.where(CAUSAL, 0.0, -1e9), "meant": CAUSAL})
    assert not judge_with_edits(added, Edits("one", cells=frozenset({("given", 0, 3, 0)}))).diagnosis.sound


def test_dependence_follows_the_mask_through_layers() -> None:
    found = judge_with_edits(MaskInput("one", {"mask": CAUSAL, "meant": CAUSAL}), Edits("one"))
    moved = compute_output_dependence(slice_judgement(found, 0, 0, 0), 2)
    assert moved is not None
    np.testing.assert_array_equal(moved > 0, compute_layer_reach(CAUSAL, 2))


def test_the_verdict_in_words() -> None:
    found = diagnose(np.stack([LEAKY, softmax(np.where(CAUSAL, SCORES, -np.inf))])[:, None], meant="causal")
    bad = sort_findings(found)

    def headline(mended: bool = False, of: str = "", **arrays: np.ndarray) -> str:
        units = {
            name: array.astype(float if name == "weights" else bool)[None, None, None] for name, array in arrays.items()
        }
        one = judge_with_edits(replace(mask_input(**units), map=of), Edits("one"))
        return describe_headline(replace(one, done=("mended",)) if mended else one)

    eye, late = np.eye(3), np.where(CAUSAL, 1 / np.arange(1, 5)[:, None], 0)
    late[2, 3] = 0.2
    assert headline(weights=LEAKY, meant=CAUSAL) == "Faulty: 1 error"
    assert headline(mended=True, weights=eye, meant=eye > 0) == "✓ Sound, once mended"
    assert headline(mended=True, weights=eye) == "Mended: no contradiction left"
    assert headline(weights=eye) == "What was meant? No contradiction so far."
    assert headline(weights=late / late.sum(1, keepdims=True)) == "What was meant? If it was causal, 1 cell leaks."
    assert headline(weights=LEAKY, of="decoder") == "1 question: was causal meant?"
    assert describe_place(bad[0], (2, 1, 1)) == "sample 1, queries 1-3, keys 2-4"
    told = json.loads(format_verdict_json(found))
    assert told["verdict"] == "faulty"
    assert told["findings"][0]["code"] == "future-visible"
    assert told["unknown"]
    (row,) = csv.DictReader(io.StringIO(format_findings_csv(found)))
    assert row["queries"] == "0 1 2"


def test_findings_far_below_are_named_beside_the_worst() -> None:
    weights = softmax(np.stack([np.where(CAUSAL, SCORES, -np.inf), SCORES]))[:, None]
    weights[0, 0, 3] *= 1.5
    two = judge_with_edits(mask_input(weights=weights, meant=np.broadcast_to(CAUSAL, weights.shape)), Edits("one"))
    worst, other = sort_findings(two.diagnosis)
    assert (worst.code, other.code) == ("future-visible", "dropout-on")
    assert describe_further_findings(two) == "Also, below the pictures: ▲ dropout-on (sample 1, query 4, keys 1-4)."
    weights[0, 0, 3] /= 1.5
    one = judge_with_edits(mask_input(weights=weights, meant=np.broadcast_to(CAUSAL, weights.shape)), Edits("one"))
    assert len(sort_findings(one.diagnosis)) == 1
    assert describe_further_findings(one) == ""


def test_what_goes_to_the_browser() -> None:
    states = np.full((2, 3), CellState.LEAK)
    sums = (0.9999, 0.1249, 0.9946, -0.2, np.nan, np.inf)
    data = encode_mask_editor(
        [MaskPanel("a", "A", "", states, row_sums=sums), MaskPanel("b", "B", "no")], mask_colours(LIGHT), ((), ())
    )
    header, body = unpack(data)
    assert (header["rows"], header["columns"]) == (2, 3)
    assert [panel["drawn"] for panel in header["panels"]] == [True, False]
    assert header["panels"][0]["rowSums"] == ["1", "0.12", "0.99", "−0.20", "NaN", "∞"]
    assert len(body) == 6 * (4 + 1 + 1)
    assert body[24:30] == bytes([CellState.LEAK] * 6)


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_the_steps_show_fills_and_nan(palette: object) -> None:
    masked = np.where(CAUSAL, SCORES, -np.inf)
    stages = [
        PipelineStage("Scores", SCORES, False),
        PipelineStage("After the mask", masked, False, ~CAUSAL),
        PipelineStage("Weights", LEAKY * np.nan, True),
    ]
    figure = plot_mask_pipeline(stages, "", Look(DARK if palette is DARK else LIGHT))
    texts = [text for trace in figure.data if trace.type == "scatter" for text in trace.text]
    assert texts.count("−∞") == int((~CAUSAL).sum())
    assert texts.count("NaN") == 16


def page() -> AppTest:
    return AppTest.from_string(APP, default_timeout=30)


def test_every_example_is_broken_and_its_first_fix_mends_it() -> None:
    app = page().run()
    for name in PRINTED_EXAMPLES:
        app.button(key=f"broken-{name}").click().run()
        assert not app.exception
        assert any("Faulty" in one.value for one in app.markdown), name
        next(one for one in app.button if one.label == "Apply this fix").click().run()
        mended = "Sound, once mended" if "meant" in PRINTED_EXAMPLES[name]() else "Mended: no contradiction left"
        assert mended in told(app), name
    app.button(key="undo-fix").click().run()
    assert any("Faulty" in one.value for one in app.markdown)


def test_a_fix_is_written_for_the_interface_that_is_chosen() -> None:
    app = page().run()
    app.button(key="broken-The future shows").click().run()
    given = app.code[0].value
    app.selectbox(key=FIX_API_KEY).select("flex_attention").run()
    assert not app.exception
    assert app.code[0].value.startswith("mask_mod = lambda b, h, i, j: ")
    app.selectbox(key=FIX_API_KEY).select("").run()
    assert app.code[0].value == given
    app.button(key="broken-NaN rows").click().run()
    assert not app.exception


def test_bad_text_gets_a_sentence_and_stays() -> None:
    app = page().run()
    for text, says in (
        ("[[1, 2], [3]]", "rows of different lengths"),
        ("tensor([[1., ..., 0.]])", "Print it whole"),
        ("a = [1]\nb = [2]", "needs the axes (queries, keys)"),
        ("[1, 0]\nx", "“x”, which is not a number"),
        ("3", "needs the axes (queries, keys)"),
        ("[[[[[[[1]]]]]]]", "at most five axes"),
    ):
        app.text_area(key="mask_text").set_value(text).run()
        assert not app.exception
        assert [says in one.value.replace("\\", "") for one in app.error] == [True], text
        assert app.text_area(key="mask_text").value == text


def told(app: AppTest) -> str:
    """All that stands there, as it is read."""
    return " ".join(as_read(one.value for one in (*app.markdown, *app.caption))).translate(ISOLATES)


def test_who_has_only_a_picture_is_led_to_the_gallery() -> None:
    app = page().run()
    app.button(key="by-sight").click().run()
    assert not app.exception
    assert app.session_state["part"] == "gallery"


def test_what_attention_it_is_decides_what_is_right() -> None:
    app = page().run()
    app.text_area(key="mask_text").set_value(f"weights = {np.full((4, 4), 0.25).tolist()}").run()
    assert "What was meant? No contradiction so far." in told(app)
    kind = next(one for one in app.selectbox if one.label == "Attention")
    kind.select("decoder").run()
    assert "? Question · future-visible" in told(app)
    assert "Faulty" not in told(app)
    app.button(key="meant-Yes: causal").click().run()
    assert "Faulty: 1 error" in told(app)
    app.selectbox(key="meant").set_value(None).run()
    kind = next(one for one in app.selectbox if one.label == "Attention")
    kind.select("cross").run()
    assert "No contradiction so far" in told(app)
    app.button(key="meant-Yes: full").click().run()
    assert "Nothing wrong" in told(app)


def test_the_pictures_go_where_the_worst_finding_goes_until_a_place_is_chosen() -> None:
    weights = softmax(np.stack([np.where(CAUSAL, SCORES, -np.inf), SCORES]))
    weights[0, 3] *= 1.5
    app = page().run()
    app.text_area(key="mask_text").set_value(f"weights = {weights[:, None].tolist()}").run()
    assert app.selectbox(key="mask_sample").value == 1
    app.button(key="meant-causal").click().run()
    assert "future-visible" in told(app)
    assert app.selectbox(key="mask_sample").value == 2
    app.selectbox(key="mask_sample").set_value(1).run()
    app.button(key="apply-0").click().run()
    assert not app.exception
    assert app.selectbox(key="mask_sample").value == 1


def test_the_pictures_go_to_the_first_of_several_faulty_maps() -> None:
    weights = softmax(np.stack([np.where(CAUSAL, SCORES, -np.inf), SCORES, SCORES]))[:, None]
    (finding,) = diagnose(weights=weights, meant="causal").findings
    assert (finding.sample, finding.first_map) == (None, (1, 0, 0))
    assert (weights[1, 0][list(finding.queries)][:, list(finding.keys)] > 0).any()
    app = page().run()
    app.text_area(key="mask_text").set_value(f"weights = {weights.tolist()}").run()
    app.button(key="meant-causal").click().run()
    assert app.selectbox(key="mask_sample").value == 2
    app.selectbox(key="mask_sample").set_value(1).run()
    app.button(key="show-0").click().run()
    assert not app.exception
    assert app.selectbox(key="mask_sample").value == 2


def test_a_trace_opened_on_explore_is_judged_here_its_faulty_map_first() -> None:
    app = page()
    causal = AttentionMap("decoder", np.full((2, 3, 3, 3), 1 / 3), ("▁a", "b", "c"), ("▁a", "b", "c"), np.tri(3) > 0)
    whole = AttentionMap("cross", np.full((2, 3, 3, 2), 0.5), ("▁a", "b", "c"), ("x", "y"), np.ones((3, 2), bool))
    app.session_state["opened"] = open_trace("mine", AttentionTrace(decoder=causal, cross=whole))
    app.run()
    assert not app.exception
    assert "mask-ignored" in told(app)
    assert "1 sample × 2 layers × 3 heads × 3 queries × 3 keys" in told(app)
    app.segmented_control(key="mask-trace-map").set_value("cross").run()
    assert "No contradiction so far" in told(app)
    app.segmented_control(key="from").set_value("paste").run()
    assert not app.exception
    del app.session_state["opened"]
    app.run()
    assert "opened trace" not in app.segmented_control(key="from").options


def test_a_finding_of_a_trace_says_where_in_the_code() -> None:
    paths, file = ("layers.0.attn", "layers.1.attn"), "/home/me/<b>model</b>.py"
    calls = tuple(AttentionCall(path, "Attn", "softmax", file, 31, {"mask": "None"}).as_json() for path in paths)
    names = ("a", "b", "c")
    leaky = AttentionMap("decoder", np.full((2, 3, 3, 3), 1 / 3), names, names, np.tri(3) > 0, layer_calls=calls)
    app = page()
    app.session_state["opened"] = open_trace("mine", AttentionTrace(decoder=leaky))
    app.run()
    said = f"Where: layers.0.attn (Attn), {file}:31, calls softmax; none arrived: mask=None; and 1 more layer."
    assert said in told(app)


def test_what_was_passed_to_a_captured_call_stands_beside_what_took_effect() -> None:
    given = ("attn_mask, True = may attend", "")
    calls = tuple(AttentionCall("a", "Attn", "softmax", "m.py", 3, {}, words).as_json() for words in given)
    names, causal = ("a", "b", "c"), np.tri(3) > 0
    passed = np.stack([causal, causal | True])[:, None]
    weights = np.full((2, 1, 3, 3), 1 / 3)
    open_map = AttentionMap("decoder", weights, names, names, causal | True, layer_calls=calls, passed_masks=passed)
    app = page()
    app.session_state["opened"] = open_trace("mine", AttentionTrace(decoder=open_map))
    app.run()
    assert not app.exception
    labels = [one.label for one in app.expander]
    assert "Passed and in force: they differ in layer 1 of 2" in labels
    assert "none of the 3 cells that it blocks is blocked in force" in told(app)
    assert "No mask arrived, and none is in force." in told(app)
    old = dataclasses.replace(open_map, layer_calls=())
    app.session_state["opened"] = open_trace("old", AttentionTrace(decoder=old))
    app.run()
    assert not any(one.label.startswith("Passed") for one in app.expander)


def test_a_pasted_mask_is_read_in_the_convention_that_a_person_chooses() -> None:
    app = page().run()
    app.text_area(key="mask_text").set_value(str(CAUSAL)).run()
    assert any("read this way it is causal" in one for one in captions(app))
    assert any("4 queries × 4 keys" in one for one in captions(app))
    app.button(key="meant-Yes: causal").click().run()
    assert any("Nothing wrong" in one.value for one in app.markdown)
    role = next(one for one in app.selectbox if one.label == "Read as")
    role.select("mask blocks").run()
    assert any("Faulty" in one.value for one in app.markdown)


def test_the_stage_shows_what_was_pasted_and_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page().run()
    handed = get_upload_store().get(app.session_state["stage-key"])
    app.text_area(key="mask_text").set_value(f"weights = {LEAKY.tolist()}\nmeant = {CAUSAL.tolist()}").run()
    judged = get_upload_store().get(app.session_state["stage-key"])
    monkeypatch.setattr("attenscope.viz.masks.judge.is_presenting", lambda: True)
    monkeypatch.setattr("attenscope.viz.masks.judge.is_on_stage", lambda: True)
    stage = page()
    for name, value in build_opened_file_session_values(judged).items():
        stage.session_state[name] = value
    stage.run()
    assert not stage.exception
    assert not stage.text_area
    assert "Faulty: 1 error" in told(stage)
    assert "Faulty: 1 error" in told(app)
    empty = page()
    for name, value in build_opened_file_session_values(handed).items():
        empty.session_state[name] = value
    assert [one.value for one in empty.run().info] == ["Nothing is judged yet: paste, upload or build a mask first."]


def test_a_pasted_mask_is_kept_as_a_text_beside_the_talk() -> None:
    app = AppTest.from_file(str(PAGES / "masks.py"), default_timeout=60)
    app.query_params["from"] = "paste"
    app.session_state["share"] = True
    app.run().button(key="add-this-view").click().run()
    assert "talk" not in app.session_state
    text = f"weights = {LEAKY.tolist()}\nmeant = {CAUSAL.tolist()}"
    app.text_area(key="mask_text").set_value(text).run().button(key="add-this-view").click().run()
    assert not app.exception
    (talk, _) = app.session_state["talk"]
    (scene,) = talk.scenes
    assert (scene.page, scene.arrays, scene.query()["from"]) == ("masks", "pasted.txt", "upload")
    kept_text = get_upload_store().get(app.session_state["talk-files"]["pasted.txt"])
    assert isinstance(kept_text, ArraysFile)
    assert kept_text.data == text.encode()
    stage = AppTest.from_file(str(PAGES / "masks.py"), default_timeout=60)
    for name, value in build_opened_file_session_values(kept_text).items():
        stage.session_state[name] = value
    stage.query_params.update(scene.query())
    assert "Faulty: 1 error" in told(stage.run())
    assert "Faulty: 1 error" in told(app)


def test_what_was_said_of_a_pasted_mask_is_in_its_scene() -> None:
    app = AppTest.from_file(str(PAGES / "masks.py"), default_timeout=60)
    app.query_params["from"] = "paste"
    app.session_state["share"] = True
    app.run().text_area(key="mask_text").set_value(f"weights = {LEAKY.tolist()}").run()
    assert "Faulty" not in told(app)
    app.button(key="meant-causal").click().run()
    next(one for one in app.selectbox if one.label == "Attention").select("decoder").run()
    assert "Faulty: 1 error" in told(app)
    app.button(key="add-this-view").click().run()
    (talk, _) = app.session_state["talk"]
    (scene,) = talk.scenes
    assert scene.view == {"meant": "causal", "attention": "decoder"}
    assert scene.title == "Masks, causal"
    kept = get_upload_store().get(app.session_state["talk-files"]["pasted.txt"])
    stage = AppTest.from_file(str(PAGES / "masks.py"), default_timeout=60)
    for name, value in build_opened_file_session_values(kept).items():
        stage.session_state[name] = value
    stage.query_params.update(scene.query())
    assert "Faulty: 1 error" in told(stage.run())


def test_a_mask_that_is_built_has_no_meaning_of_one_that_was_brought() -> None:
    app = AppTest.from_file(str(PAGES / "masks.py"), default_timeout=60)
    app.query_params["from"] = "paste"
    app.session_state["share"] = True
    app.run().text_area(key="mask_text").set_value(f"weights = {LEAKY.tolist()}").run()
    app.button(key="meant-causal").click().run()
    app.session_state["from"] = "build"
    app.run().button(key="add-this-view").click().run()
    (scene,) = app.session_state["talk"][0].scenes
    assert "meant" not in scene.view
    assert "causal" not in scene.title


def test_a_mask_changed_by_hand_is_no_scene() -> None:
    app = AppTest.from_file(str(PAGES / "masks.py"), default_timeout=60)
    app.query_params["from"] = "paste"
    app.session_state["share"] = True
    app.run().text_area(key="mask_text").set_value(f"weights = {LEAKY.tolist()}\nmeant = {CAUSAL.tolist()}").run()
    fix = next(one for one in app.button if one.label == "Apply this fix")
    fix.click().run()
    app.button(key="add-this-view").click().run()
    assert "talk" not in app.session_state
    app.button(key="undo-fix").click().run()
    app.button(key="add-this-view").click().run()
    assert len(app.session_state["talk"][0].scenes) == 1


@pytest.mark.parametrize("samples", [1, 2, 3])
def test_rows_of_padding_queries_are_no_leaks_against_the_guess(samples: int) -> None:
    keep = np.ones((samples, 6), bool)
    keep[-1, :2] = False
    scores = np.random.default_rng(samples).normal(size=(samples, 6, 6))
    filled = np.where(np.tri(6, dtype=bool) & keep[:, None, :], scores, -1e9)  # Rows without a key become uniform.
    app = page().run()
    app.text_area(key="mask_text").set_value(f"weights = {softmax(filled)[:, None].tolist()}").run()
    assert "What was meant? No contradiction so far." in told(app)


def test_a_file_uploaded_second_is_the_one_that_is_judged() -> None:
    app = AppTest.from_string(APP, default_timeout=30)
    app.session_state["from"] = "upload"
    app.run()
    files = [("first.csv", b"1,0\n1,1\n", "text/csv")]
    app.file_uploader(key="mask_files").set_value(files).run()
    files.append(("attn_mask.csv", b"1,0,0\n1,1,0\n1,1,1\n", "text/csv"))
    app.file_uploader(key="mask_files").set_value(files).run()
    assert not app.exception
    assert app.selectbox(key="mask_file").value == "attn_mask.csv"
    assert "3 queries × 3 keys" in told(app)
    app.selectbox(key="mask_file").set_value("first.csv").run()
    assert app.selectbox(key="mask_file").value == "first.csv"


def test_uploaded_files_stay_while_another_part_is_looked_at() -> None:
    app = AppTest.from_string(APP, default_timeout=30)
    app.session_state["from"] = "upload"
    app.run()
    app.file_uploader(key="mask_files").set_value([("first.csv", b"1,0\n1,1\n", "text/csv")]).run()
    for other in ("paste", "build"):
        app.session_state["from"] = other
        app.run()
        app.session_state["from"] = "upload"
        app.run()
        assert not app.exception
        assert app.file_uploader(key="mask_files").value == []
        assert "2 queries × 2 keys" in told(app)
    app.file_uploader(key="mask_files").set_value([("second.csv", b"1,0,0\n1,1,0\n1,1,1\n", "text/csv")]).run()
    assert app.selectbox(key="mask_file").value == "second.csv"
    next(one for one in app.button if one.key and one.key.startswith("remove ")).click().run()
    assert "3 queries × 3 keys" in told(app)
    assert [one.name for one in app.session_state["own mask files"]] == ["second.csv"]
    app.file_uploader(key="mask_files").set_value([]).run()
    assert app.session_state["own mask files"] == []
    assert "queries ×" not in told(app)


def test_arrays_of_files_that_are_replaced_or_refused_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = ArrayBytesCounter(of_one=20 * MEGABYTE, of_all=100 * MEGABYTE)
    monkeypatch.setattr("attenscope.viz.masks.entry_controls.get_array_bytes_counter", lambda: counted)

    def npz(*shape: int) -> bytes:
        file = io.BytesIO()
        np.savez_compressed(file, weights=np.full(shape, 1 / shape[-1], np.float32))
        return file.getvalue()

    app = AppTest.from_string(APP, default_timeout=60)
    app.session_state["from"] = "upload"
    app.run()

    def upload(*files: tuple[str, bytes]) -> int:
        app.file_uploader(key="mask_files").set_value([(*file, "application/zip") for file in files]).run()
        assert not app.exception
        gc.collect()
        return 20 * MEGABYTE - counted.count_free_bytes(app.session_state["unpacked-owner"])

    of_one = 12 * 1024**2
    assert upload(("first.npz", npz(3, 1024, 1024))) == of_one
    assert upload(("first.npz", npz(3, 1024, 1024)), ("second.npz", npz(3, 1024, 1024))) == of_one
    assert "unpacked\\: remove a file, then try again" in app.error[0].value
    assert upload(("third.npz", npz(1, 512, 512))) == 1024**2  # the others are gone
    assert upload(("large.npz", npz(1, 2048, 2049))) == 0
    assert "at most 4,194,304 are read" in app.error[0].value
    kept = app.session_state["mask_read"].values()
    assert all(isinstance(one, str) for _, one in kept)  # no error, which holds frames


def test_a_text_is_read_once_as_long_as_it_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def reading(text: str) -> dict[str, np.ndarray]:
        read.append(text)
        return read_printed_tensors(text)

    monkeypatch.setattr("attenscope.viz.masks.entry_controls.read_printed_tensors", reading)
    app = AppTest.from_string(APP, default_timeout=60)
    app.run()
    for text in ("[[1,0],[1,1]]", "x"):
        app.text_area(key="mask_text").set_value(text).run()
        app.run()
    assert read == ["[[1,0],[1,1]]", "x"]


def test_a_text_that_cannot_be_read_is_refused_in_the_language_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_controls.st, "session_state", {})
    said = []
    for language in ("en", "de", "zh"):
        with use_language(language), pytest.raises(DiagnosisError) as refused:
            entry_controls._read_pasted_arrays("x")
        said.append(str(refused.value))
    assert len(set(said)) == 3


def test_a_file_is_read_again_for_its_sentences_alone_in_another_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_controls.st, "session_state", {})
    whole = io.BytesIO()
    np.savez(whole, weights=np.eye(2), unknown=np.eye(2))
    files: Any = [
        ArraysFile("broken.npy", "1", b"nonsense"),
        ArraysFile("noted.npz", "2", whole.getvalue()),
        ArraysFile("plain.csv", "3", b"1,0\n1,1\n"),
    ]

    def read(language: str) -> tuple[str, str, MapContents]:
        with use_language(language):
            entry_controls._forget_outdated_readings(files)
            found, (refused,) = entry_controls._read_all_files(files)
        (note,) = found["noted.npz"].notes
        return refused, note, found["plain.csv"]

    english, german = read("en"), read("de")
    assert english[0] != german[0]
    assert english[1] != german[1]
    assert english[2] is german[2]
    assert read("de")[2] is german[2]


def test_padding_of_many_keys_is_not_made_a_mask() -> None:
    app = AppTest.from_string(APP, default_timeout=60)
    app.run()
    app.text_area(key="mask_text").set_value(f"key_keep = [{'1,' * 30_000}]").run()
    assert not app.exception
    assert "would have 900,000,000 cells" in app.error[0].value
