"""The one screen of Explore: a live run and its saved trace look the same, as far as a trace goes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attenscope.analysis.attention_steps import PROJECTION_NORM_EXPLANATION, VALUE_NORM_EXPLANATION
from attenscope.analysis.flow import compute_rollout
from attenscope.analysis.heads import ALIGNMENT_READINGS, rank_heads_by_alignment
from attenscope.analysis.telling_word import pick_telling_word, weigh_words
from attenscope.text.words import SPECIAL_TOKENS, group_tokens_into_words
from attenscope.trace import AttentionTrace
from attenscope.translate import Translator
from attenscope.untrusted_trace import OpenedTrace, open_trace, read_uploaded_trace
from attenscope.viz.explore.controls import ALL_HEADS_VIEWS
from attenscope.viz.explore.screen import SWITCHES_TEXT
from attenscope.viz.explore.view_data import display_tokens
from attenscope.viz.export.parts import Columns, Component, Words
from attenscope.viz.figures.figure_style import LIGHT
from attenscope.viz.figures.text_alternatives import describe_strongest_head_link
from attenscope.viz.ui import cache
from attenscope.viz.ui.addresses.explore import ExploreView
from attenscope.viz.web.page_components import COLLECTED_VIEWS
from tests.viz.fakes import FakeTranslator, attention, foreign_trace
from tests.viz.page_texts import captions as captions_of
from tests.viz.web.test_packing import unpack

SENTENCE = "the old dog sees a tree today."
WORD_OF_PIECES = "the oldest dog sees a tree today."
ABOVE = ("Underlined: ", "Click a word", "The model was unsure", "Masks: ")
"""Captions above the screen, of one source alone."""
CAPTURED = {"words": "false", "hide": "false"}
"""Every token as it was captured."""
PLACE = {"layer": "2", "head": "2", "order": "entropy", "with-head": "1", **CAPTURED}


@pytest.fixture
def translator(app: AppTest, monkeypatch: pytest.MonkeyPatch, toy_translator: Translator) -> Translator:
    """A model that really runs, in place of the fake one."""
    monkeypatch.setattr(cache, "list_checkpoint_names", lambda: [toy_translator.name])
    monkeypatch.setattr(cache, "load_runnable_model", lambda name: toy_translator)
    cache.compute_full_trace.clear()
    cache.compute_logit_lens.clear()
    return toy_translator


def components(app: AppTest) -> dict[str, bytes]:
    """What every component of the screen was drawn with, by name."""
    names = {
        one.proto.component_name.rpartition("attenscope_")[2]: one.proto.bytes for one in app.get("bidi_component")
    }
    return {name: data for name, data in names.items() if name in ("overview", "heatmap", "links", "text", "pipeline")}


def screen(app: AppTest) -> tuple[dict[str, bytes], list[Any], list[str]]:
    """Components, charts and captions."""
    assert not app.exception
    charts = [json.loads(one.proto.spec) for one in app.get("plotly_chart")]
    captions = [one for one in captions_of(app) if not one.startswith(ABOVE)]
    return components(app), charts, captions


def reopened(trace: AttentionTrace, folder: Path) -> OpenedTrace:
    """The trace as somebody opens it who was sent the file."""
    trace.save(folder / "trace.safetensors")
    return read_uploaded_trace("trace.safetensors", (folder / "trace.safetensors").read_bytes())


@pytest.mark.parametrize(
    ("fields", "titles"),
    [
        (["encoder", "decoder", "cross"], ["The translation, attending", "The translation so far"]),
        (["decoder"], ["The text, attending", "The text so far"]),
    ],
)
def test_the_text_of_a_decoder_alone_is_no_translation(app: AppTest, fields: list[str], titles: list[str]) -> None:
    maps: dict[str, Any] = {kind: getattr(foreign_trace(), kind) for kind in fields}
    app.session_state["opened"] = open_trace("one", AttentionTrace(**maps))
    app.query_params.update({"view": "text", "kind": "decoder"})
    app.run()
    assert not app.exception
    header, _ = unpack(components(app)["text"])
    assert [header[side]["title"] for side in ("query", "key")] == titles


@pytest.mark.parametrize(
    ("view", "kind"),
    [
        ("heatmap", "encoder"),
        ("heatmap", "decoder"),
        ("heatmap", "cross"),
        ("joint", "encoder"),
        ("flow", "cross"),
        ("compare", "decoder"),
    ],
)
def test_a_run_and_its_saved_trace_give_the_same_screen(
    app: AppTest, translator: Translator, tmp_path: Path, view: ExploreView, kind: str
) -> None:
    app.query_params.update({"sentence": SENTENCE, "view": view, "kind": kind, **PLACE})
    live = screen(app.run())
    app.session_state["opened"] = reopened(
        cache.compute_translation_with_changes(translator.name, SENTENCE).trace, tmp_path
    )
    static = screen(app.run())
    assert ("overview" in live[0]) == (view not in ALL_HEADS_VIEWS)
    assert without_switches(static) == without_switches(live)


def without_switches(found: tuple[dict[str, bytes], list[Any], list[str]]) -> tuple[Any, ...]:
    """A screen without what switches heads off, for which a trace has no model."""
    components, charts, captions = found
    drawn = {name: unpack(data) for name, data in components.items()}
    for header, _ in drawn.values():
        header.pop("switches", None)
    return drawn, charts, [one for one in captions if one != SWITCHES_TEXT]


def test_the_pipeline_of_a_saved_trace_is_that_of_the_run(app: AppTest, translator: Translator, tmp_path: Path) -> None:
    app.query_params.update({"sentence": SENTENCE, "view": "pipeline", **PLACE})
    live = screen(app.run())[0]["pipeline"]
    app.session_state["opened"] = reopened(cache.compute_full_trace(translator.name, SENTENCE), tmp_path)
    assert screen(app.run())[0]["pipeline"] == live


def test_value_norms_say_whether_the_output_projection_is_in_them(
    app: AppTest, translator: Translator, tmp_path: Path
) -> None:
    app.query_params.update({"sentence": SENTENCE, "view": "flow", "flow": "mean of all", "norms": "true", **PLACE})
    live = screen(app.run())
    assert any(PROJECTION_NORM_EXPLANATION in caption for caption in live[2])
    app.session_state["opened"] = reopened(cache.compute_full_trace(translator.name, SENTENCE), tmp_path)
    static = screen(app.run())
    assert any(VALUE_NORM_EXPLANATION in caption for caption in static[2])
    assert static[1] != live[1]
    app.session_state["opened"] = reopened(
        cache.compute_translation_with_changes(translator.name, SENTENCE).trace, tmp_path
    )
    app.run()
    assert "without the value vectors" in app.info[0].value


def test_the_lens_needs_the_model(app: AppTest, translator: Translator, tmp_path: Path) -> None:
    app.query_params.update({"sentence": SENTENCE, "view": "layers"})
    assert len(screen(app.run())[1]) == 2
    app.session_state["opened"] = reopened(
        cache.compute_translation_with_changes(translator.name, SENTENCE).trace, tmp_path
    )
    assert screen(app.run())[1] == []
    assert "needs a running model" in app.info[0].value


def test_the_kind_falls_back_to_one_that_the_trace_has(app: AppTest) -> None:
    tokens = (" a", " b")
    app.session_state["opened"] = open_trace("x", AttentionTrace(encoder=attention("encoder", tokens, tokens)))
    app.query_params["kind"] = "cross"
    app.run()
    assert not app.exception
    assert unpack(components(app)["heatmap"])[0]["title"].startswith("Encoder self-attention")
    app.button(key="close").click().run()
    assert not app.exception
    assert "kind" not in app.query_params
    assert unpack(components(app)["heatmap"])[0]["title"].startswith("Cross-attention")


def test_changes_to_the_model_are_not_marked_on_a_saved_trace(app: AppTest) -> None:
    trace = dataclasses.replace(FakeTranslator().translate("Two words").trace, target="ZWEI")
    app.session_state["opened"] = open_trace("x", trace)
    app.session_state[COLLECTED_VIEWS] = []
    app.query_params["changes"] = "cross.1.1:off"
    app.run()
    assert not app.exception
    assert unpack(components(app)["overview"])[0]["changed"] == []
    sentence, translation, columns = app.session_state[COLLECTED_VIEWS][0].parts(LIGHT)[:3]
    assert (sentence, translation) == (Words("Two words", "sentence", "large"), Words("ZWEI", "translation", "large"))
    assert isinstance(columns, Columns)
    (tiles,) = columns.columns[0]
    assert isinstance(tiles, Component)
    assert isinstance(tiles.data, bytes)
    assert unpack(tiles.data)[0]["changed"] == []


@pytest.mark.parametrize(
    ("view", "named"),
    [
        ("heatmap", ["cross"]),
        ("links", ["cross"]),
        ("text", ["cross"]),
        ("joint", ["encoder", "decoder", "cross"]),
        ("flow", ["rollout"]),
        ("pipeline", []),
        ("layers", []),
    ],
)
def test_only_what_a_view_did_to_its_own_maps_is_said(
    app: AppTest, translator: Translator, view: str, named: list[str]
) -> None:
    """Hidden tokens and merged pieces are told under pictures that hide and merge, with the share that they held."""
    for name, value in {"sentence": WORD_OF_PIECES, "view": view, "hide": "true", "words": "true"}.items():
        app.query_params[name] = value
    said = " ".join(captions_of(app.run()))
    assert ("Special tokens are hidden" in said) == ("Pieces are merged into words" in said) == bool(named)
    trace = translator.translate(WORD_OF_PIECES).trace
    for name in named:
        attention = compute_rollout(trace).cross if name == "rollout" else trace.maps[name]  # type: ignore[index]
        assert attention is not None
        end = [key for key, token in enumerate(attention.key_tokens) if token in SPECIAL_TOKENS]
        rows = [row for row, token in enumerate(attention.rows("predicted")) if token not in SPECIAL_TOKENS]
        assert end
        spans = group_tokens_into_words([attention.rows("predicted")[row] for row in rows])
        merged = np.stack([attention.weights[:, :, [rows[at] for at in span]].mean(2) for span in spans], 2)
        share = merged[..., end].sum() / merged.sum()
        label = f" ({name})" if len(named) > 1 else ""
        assert f"{share:.0%}{label}" in said


def test_a_model_is_shown_in_words_and_an_opened_trace_as_it_was_captured(
    app: AppTest, translator: Translator, tmp_path: Path
) -> None:
    """Until something is chosen; nothing of it stands in the address, and what is chosen holds for both."""
    app.query_params.update({"sentence": SENTENCE})
    trace = translator.translate(SENTENCE).trace
    cross = trace.cross
    assert cross is not None
    words = [
        "".join(cross.key_tokens[at] for at in span).strip()
        for span in group_tokens_into_words(cross.key_tokens)
        if cross.key_tokens[span.start] not in SPECIAL_TOKENS
    ]
    columns = lambda: unpack(screen(app.run())[0]["heatmap"])[0]["columns"]  # noqa: E731
    assert [one.strip() for one in columns()] == words
    assert not {"words", "hide"} & {*app.query_params}
    app.session_state["opened"] = reopened(trace, tmp_path)
    assert len(columns()) == len(cross.key_tokens) > len(words)
    app.query_params.update(CAPTURED)
    app.session_state["opened"] = None
    for one in ("words chosen", "hide chosen"):
        del app.session_state[one]
    assert len(columns()) == len(cross.key_tokens)


def test_a_sentence_on_a_head_counts_the_tokens_that_are_hidden(app: AppTest, translator: Translator) -> None:
    """The strongest link is that of the whole head, though a column of it is not drawn."""
    app.query_params.update({"sentence": SENTENCE, "layer": "1", "head": "1"})
    cross = translator.translate(SENTENCE).trace.cross
    assert cross is not None
    for layer, head in np.ndindex(*cross.weights.shape[:2]):
        app.session_state["layer"], app.session_state["head"] = layer + 1, head + 1
        whole = display_tokens(cross, "predicted", merge=True, hide=False).attention
        assert describe_strongest_head_link(whole, layer, head, "predicted") in " ".join(captions_of(app.run()))


def test_a_flow_begins_at_the_last_layer_whatever_head_is_chosen(app: AppTest, translator: Translator) -> None:
    layers = translator.config.decoder_layers
    app.query_params.update({"sentence": SENTENCE, "view": "flow", "layer": "1"})
    title = lambda charts: charts[0]["layout"]["title"]["text"]  # noqa: E731
    assert f"rollout through layer {layers}" in title(screen(app.run())[1])
    app.selectbox(key="through").set_value(1)
    assert "rollout through layer 1" in title(screen(app.run())[1])
    assert app.query_params["through"] == "1"
    app.segmented_control(key="flow").set_value("mean of all").run()
    assert not [one for one in app.selectbox if one.key == "through"]


def test_the_aligning_head_is_the_best_as_rows_are_named(app: AppTest, translator: Translator) -> None:
    app.query_params["sentence"] = SENTENCE
    app.session_state["trials after 0"] = True
    app.run()
    app.button(key="aligns").click().run()
    cross = translator.translate(SENTENCE).trace.cross
    assert cross is not None
    best, other = (rank_heads_by_alignment(cross, (reading,))[0] for reading in ALIGNMENT_READINGS)
    assert (app.session_state["layer"], app.session_state["head"]) == (best.layer + 1, best.head + 1)
    said = " ".join(captions_of(app))
    assert f"{best.sentence} Place 1 of {cross.layers * cross.heads}, read by the token " in said
    late = f"at the token just fed in, cross {other.layer + 1}.{other.head + 1} aligns better: {other.mass:.0%}."
    assert (late in said) == (other.mass > best.mass)
    assert f"In this sentence, cross {best.layer + 1}.{best.head + 1} aligns best: {best.mass:.0%}. Ordered by" in said
    words, others = weigh_words(cross), set(np.ndindex(cross.layers, cross.heads)) - {(best.layer, best.head)}
    telling = pick_telling_word(cross, frozenset(others))
    assert words
    assert telling
    assert telling.row is not None
    assert app.query_params["pin"] == f"target.{words.rows[telling.row].start + 1}"
