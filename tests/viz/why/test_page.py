"""The page Why: its views, its word, its addresses, and what it says of questions without an answer."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from attenscope.attribution.methods import ATTRIBUTION_METHODS
from attenscope.attribution.target import AttributionError
from attenscope.experiments.ablation import ablate_heads_for_word
from attenscope.experiments.patching import MinimalPair, read_minimal_pairs
from attenscope.language import current_language, use_language
from attenscope.translate import Translator
from attenscope.viz.export.parts import Chart, Component, flatten_parts
from attenscope.viz.export.share_menu import OFFERED_VIEW
from attenscope.viz.figures.figure_style import DARK, LIGHT, quote_token
from attenscope.viz.page_setup import SHARE_MENU
from attenscope.viz.traces import session
from attenscope.viz.ui import cache as ui_cache
from attenscope.viz.ui.addresses.why import WHY_VIEWS, AttentionCell, format_attention_cell, parse_attention_cell
from attenscope.viz.web.page_components import COLLECTED_VIEWS
from attenscope.viz.why import cache as why_cache
from attenscope.viz.why import controls, layers, texts
from attenscope.viz.why.cache import ReadingKey, WordKey
from attenscope.viz.why.controls import find_pinned_word_pieces, name_contrast_candidates
from attenscope.viz.why.heads import find_strongest_cell
from tests.viz.why.conftest import OTHER, SAME, SENTENCE, Open, captions, infos

PAIR = {"second": OTHER, "control": SAME}


def saved(app: AppTest) -> Any:
    """What the view that is shown offers to save."""
    views: list[Any] = []
    app.session_state[COLLECTED_VIEWS] = views
    app.run()
    assert not app.exception
    return views[-1]


def said(view: str, reading: ReadingKey, word: WordKey) -> list[str]:
    """What a view says of "Hund" in SENTENCE, worked out anew."""
    target, second = why_cache.load_explained_target(word), ReadingKey(reading.model, OTHER)
    every, parts = why_cache.compute_attributions_by_method(word), why_cache.compute_logit_parts(word)
    trace = ui_cache.compute_translation_with_changes(*reading).trace
    cell = strongest_of(word)
    pair, patched = (
        why_cache.compute_sentence_pair_contrast(reading, second),
        why_cache.compute_patch_map(reading, second, "encoder stream"),
    )
    same = why_cache.compute_control_patch_map(reading, second, ReadingKey(reading.model, SAME), "encoder stream")
    return {
        "source words": [
            texts.describe_leave_one_out_answer(why_cache.compute_words_left_out(word)),
            texts.describe_target_value(target, why_cache.compute_target_value(word)),
            texts.describe_method_agreement(every),
        ],
        "deletion": [
            texts.describe_top_two_pieces_deletion(why_cache.compute_deletion_curves(word), every["leave-one-out"])
        ],
        "heads": [texts.describe_logit_sum(parts), texts.describe_largest_head(parts), parts.exactness],
        "score": [
            texts.describe_attention_score(why_cache.compute_score_parts(reading, cell), trace.maps[cell.kind], cell)
        ],
        "source or prefix": [texts.describe_word_shares(why_cache.compute_source_shares(reading), target)],
        "two sentences": [
            texts.describe_translation_divergence(pair),
            texts.describe_patched_word(pair, patched, layers.make_patch_column_names(pair, patched)),
            texts.describe_largest_patch(patched, layers.make_patch_column_names(pair, patched)),
            texts.describe_control_patch_map(same),
        ],
        "layers": [texts.describe_encoder_lens(why_cache.compute_decoder_lens(reading), word.position)],
    }[view]


def strongest_of(word: WordKey) -> AttentionCell:
    part = next(one.part for one in why_cache.compute_logit_parts(word).parts_by_size if one.part.head is not None)
    assert part.kind in ("decoder", "cross")
    assert part.layer is not None
    assert part.head is not None
    row = (
        ui_cache.compute_translation_with_changes(*word.reading)
        .trace.maps[part.kind]
        .weights[part.layer, part.head, word.position]
    )
    return AttentionCell(part.kind, part.layer, part.head, word.position, int(row.argmax()))


@pytest.mark.parametrize("view", WHY_VIEWS)
def test_every_view_is_drawn_explained_and_saved(
    open_page: Open, reading: ReadingKey, word: WordKey, view: str
) -> None:
    pair = PAIR if view == "two sentences" else {}
    app = open_page(why=view, methods=True, pin=f"target.{word.position + 1}", **pair)
    assert not app.info
    for sentence in said(view, reading, word):
        assert sentence in captions(app)
    found = saved(app)
    assert isinstance(found.numbers(), pd.DataFrame)
    for palette in (LIGHT, DARK):
        charts = [part for part in flatten_parts(found.parts(palette)) if isinstance(part, Chart)]
        assert charts or view == "source words"  # whose scene is the words alone
        assert all(one.figure.layout.paper_bgcolor == palette.background for one in charts)
        assert all(one.alt for one in charts)


def test_the_methods_are_computed_for_who_unfolds_them(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a word of 200 letters they take a minute, and the answer above them a moment."""
    asked: list[WordKey] = []
    compute = why_cache.compute_attributions_by_method

    def compute_and_note(key: WordKey) -> Any:
        asked.append(key)
        return compute(key)

    monkeypatch.setattr(why_cache, "compute_attributions_by_method", compute_and_note)
    app = open_page()
    assert "Without " in captions(app)
    assert not asked
    app.session_state["methods-fold"] = True
    app.run()
    assert asked
    assert app.selectbox(key="attribution").value == "leave-one-out"
    assert open_page(attribution="alti").selectbox(key="attribution").value == "alti"


def test_a_scene_has_the_sentence_once(open_page: Open, word: WordKey) -> None:
    app = open_page(why="source words", pin=f"target.{word.position + 1}")
    parts = list(flatten_parts(saved(app).parts(LIGHT)))
    assert not any(part.role == "sentence" for part in parts)
    assert any(isinstance(part, Component) and part.name == "signed_text" for part in parts)
    assert any(part.role == "sentence" for part in flatten_parts(saved(open_page(why="deletion")).parts(LIGHT)))


def test_the_word_is_that_of_the_pinned_piece_or_the_longest() -> None:
    pieces = (" der", " neben", "an", " wohnt", ".", "</s>")
    assert find_pinned_word_pieces(pieces, 2) == range(1, 3)
    assert find_pinned_word_pieces(pieces, 5) == range(5, 6)
    assert find_pinned_word_pieces(pieces, None) == find_pinned_word_pieces(pieces, 99) == range(1, 3)
    assert find_pinned_word_pieces(("</s>",), None) == range(1)


def test_a_click_on_a_head_leads_to_explore(open_page: Open, word: WordKey, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, dict[str, str]]] = []

    def switch(page: str, query_params: dict[str, str]) -> None:
        opened.append((page, query_params))

    monkeypatch.setattr("streamlit.switch_page", switch)
    app = open_page(methods=True, pin=f"target.{word.position + 1}")
    app.button(key="strongest-head").click().run()
    cell = strongest_of(word)
    assert Path(opened[0][0]).name == "explore.py"
    assert opened[0][1]["pin"] == f"target.{word.position + 1}"
    state = app.session_state
    assert (state["kind"], state["layer"], state["head"]) == (cell.kind, cell.layer + 1, cell.head + 1)


@pytest.mark.parametrize("against", ["", "Katze"])
def test_each_head_is_switched_off_for_the_word(
    open_page: Open, toy_translator: Translator, word: WordKey, against: str
) -> None:
    address = {"heads-by": "switched off", "against": against} if against else {"heads-by": "switched off"}
    app = open_page(why="heads", pin=f"target.{word.position + 1}", **address)
    assert not app.info
    chosen = toy_translator.tokenizer.encode(against).ids[0] if against else None
    target = why_cache.load_explained_target(word._replace(against=chosen))
    found = ablate_heads_for_word(toy_translator.model, target)
    assert texts.describe_largest_head_effect(found.effects, target) in captions(app)
    table = saved(app).numbers()
    (kind, layer, head), change = found.effects.strongest()[0]
    assert table.iloc[0].tolist() == [kind, layer + 1, head + 1, pytest.approx(-change, abs=1e-6)]


def test_a_word_is_compared_with_another(open_page: Open, toy_translator: Translator, word: WordKey) -> None:
    pin = f"target.{word.position + 1}"
    app = open_page(methods=True, pin=pin, against="Katze")
    assert not app.info
    against = toy_translator.tokenizer.encode("Katze").ids[0]
    target = why_cache.load_explained_target(word._replace(against=against))
    assert texts.describe_target_value(
        target, why_cache.compute_target_value(word._replace(against=against))
    ) in captions(app)
    assert "logit “\u2068Hund\u2069” − logit “\u2068Katze\u2069”" in captions(app)
    app.selectbox(key="rather-than").set_value("—").run()
    assert "against" not in app.query_params
    assert "log p(“\u2068Hund\u2069”)" in captions(app)


def test_pieces_that_read_alike_are_offered_apart(toy_translator: Translator) -> None:
    step = toy_translator.translate(SENTENCE).steps[0]
    first, second, third = step.candidates[1:4]
    alike = (replace(first, token=" bringen"), replace(second, token="bringen"), replace(third, token="wer"))
    offered = name_contrast_candidates(replace(step, candidates=(step.candidates[0], *alike)))
    assert offered == {"bringen": first.token_id, "…bringen": second.token_id, "wer": third.token_id}


def test_another_word_forgets_what_it_was_compared_with(open_page: Open, word: WordKey) -> None:
    app = open_page(pin=f"target.{word.position + 1}", against="Katze")
    app.session_state["pins"] = {"target": 0}
    app.run()
    assert not app.info
    assert "against" not in app.query_params


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ({"against": "der alte Hund"}, "several pieces"),
        ({"against": "Ω"}, "does not hold"),
        ({"against": "Hund"}, "the same piece"),
        ({"changes": "cross.9.9:off"}, "9"),
        ({"changes": "nonsense"}, "nonsense"),
        ({"why": "two sentences", "second": SENTENCE}, "the same translation"),
        ({"why": "two sentences", "second": "the dog sees a cat."}, "pieces"),
        ({"why": "two sentences", "second": OTHER, "control": OTHER}, "another answer"),
        ({"why": "two sentences", "second": "x" * 400}, "pieces"),
        ({"why": "score", "cell": "cross.9.1.1.1"}, "no layer 9"),
        ({"why": "score", "cell": "decoder.1.1.1.99"}, "column 99"),
        ({"sentence": " "}, "nothing to translate"),
    ],
)
def test_a_question_without_an_answer_gets_a_sentence(
    open_page: Open, word: WordKey, address: dict[str, str], sentence: str
) -> None:
    app = open_page(**{"pin": f"target.{word.position + 1}"} | address)
    assert sentence in infos(app)


def test_a_piece_that_is_not_there_gets_a_sentence(open_page: Open) -> None:
    assert "There is no piece 99" in captions(open_page(pin="target.99"))


@pytest.mark.parametrize("view", WHY_VIEWS)
@pytest.mark.parametrize("address", [{"sentence": "dog"}, {"pin": "target.1"}, {"changes": "cross.1.1:off"}])
def test_the_smallest_questions_have_an_answer(open_page: Open, view: str, address: dict[str, str]) -> None:
    app = open_page(why=view, methods=True, **address)
    if "pin" in address and view == "source words":
        assert "Nothing was written before this word" in captions(app)
    if "changes" in address:
        assert "Of the changed model: cross.1.1:off." in captions(app)


@pytest.mark.parametrize("view", ["source words", "deletion", "heads", "score"])
def test_a_probability_of_zero_gets_a_sentence(open_page: Open, monkeypatch: pytest.MonkeyPatch, view: str) -> None:
    def none(*_: object) -> float:
        return -math.inf

    monkeypatch.setattr("attenscope.attribution.methods.compute_target_value", none)
    assert "is zero in this model" in infos(open_page(why=view))


def test_deletion_of_a_long_source_gets_a_sentence(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attenscope.evaluation.attribution.MOST_DELETED_PIECES", 3)
    app = open_page(why="deletion")
    assert "Deletion takes a source of at most 3 pieces" in infos(app)
    assert not app.exception


def test_a_given_translation_is_explained(open_page: Open) -> None:
    app = open_page(forced="true", given="der alte Katze.", pin="target.3")
    assert "“\u2068Katze\u2069”" in captions(app)
    assert "Log-probability" in captions(app)


def test_an_opened_trace_is_said_to_have_no_model(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attenscope.viz.why.controls.get_open_trace", lambda: object())
    assert texts.OPENED_TRACE_NOTE in captions(open_page())
    assert session.get_open_trace() is None


@pytest.mark.parametrize(
    "text", ["cross.1.1.1", "cross.0.1.1.1", "cross.1.1.1.x", "other.1.1.1.1", "cross.1.1.1.-1", "cross.1.1.1.1.1"]
)
def test_what_is_no_cell_is_no_cell(text: str) -> None:
    with pytest.raises(ValueError, match="no cell"):
        parse_attention_cell(text)


def test_a_cell_is_written_as_it_is_read() -> None:
    cell = AttentionCell("decoder", 2, 0, 4, 1)
    assert format_attention_cell(cell) == "decoder.3.1.5.2"
    assert parse_attention_cell(format_attention_cell(cell)) == cell
    assert format_attention_cell(None) == ""


def test_a_cell_is_chosen_by_its_controls(open_page: Open) -> None:
    app = open_page(why="score", cell="cross.1.1.2.3")
    app.selectbox(key="cell-query").set_value(3).run()
    assert app.query_params["cell"] in ("cross.1.1.4.3", ["cross.1.1.4.3"])
    app.selectbox(key="cell-key").set_value(0).run()
    assert app.query_params["cell"] in ("cross.1.1.4.1", ["cross.1.1.4.1"])


def test_two_sentences_open_on_a_pair_that_can_be_patched(
    open_page: Open, reading: ReadingKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer = MinimalPair("number", SENTENCE, f"{OTHER} {OTHER}", SENTENCE)
    pair = MinimalPair("number", SENTENCE, OTHER, SENTENCE)
    assert count_source_tokens(reading.model, SENTENCE) == count_source_tokens(reading.model, OTHER)
    monkeypatch.setattr(controls, "read_minimal_pairs", lambda: (longer, pair))
    app = open_page(why="two sentences")
    found = why_cache.compute_sentence_pair_contrast(
        ReadingKey(reading.model, pair.first), ReadingKey(reading.model, pair.second)
    )
    assert texts.describe_translation_divergence(found) in captions(app)
    assert app.text_area(key="sentence").value == SENTENCE


def count_source_tokens(model: str, sentence: str) -> int:
    return len(ui_cache.compute_translation(model, sentence).source_tokens)


def test_without_a_pair_two_sentences_ask_for_one(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controls, "read_minimal_pairs", lambda: ())
    assert texts.NO_SECOND_SENTENCE in infos(open_page(why="two sentences"))


@pytest.mark.sweep
def test_a_pair_of_the_project_fills_the_fields(open_page: Open) -> None:
    app = open_page(why="two sentences")
    pair = read_minimal_pairs()[1]
    app.selectbox(key="pair").set_value(1).run()
    assert not app.exception
    assert app.text_input(key="second").value == pair.second
    assert app.text_input(key="control").value == pair.control
    assert app.text_area(key="sentence").value == pair.first


def explained(app: AppTest) -> tuple[int, list[int]]:
    """The piece and the word that are marked above the pictures of a saved view."""
    data = next(part.data for part in flatten_parts(saved(app).parts(LIGHT)) if isinstance(part, Component))
    assert isinstance(data, dict)
    return data["pinned"], data["word"]


def test_two_sentences_explain_the_piece_that_they_patch(open_page: Open, reading: ReadingKey, word: WordKey) -> None:
    target = why_cache.compute_sentence_pair_contrast(reading, ReadingKey(reading.model, OTHER)).target
    other = 1 + word.position + len(target.tokens)
    assert other != target.position
    app = open_page(why="two sentences", pin=f"target.{other + 1}", **PAIR)
    assert explained(app) == (target.position, [target.position])
    assert target.against is not None
    assert f"Why {quote_token(target.word)} rather than {quote_token(target.against)}" in captions(app)
    assert not [one for one in app.selectbox if one.key == "rather-than"]
    app.button(key="view heads").click().run()
    assert explained(app)[0] == other


def test_a_score_is_that_of_the_word_explained(open_page: Open) -> None:
    app = open_page(why="score", cell="cross.1.1.2.3", pin="target.5")
    assert explained(app)[0] == 1
    app.selectbox(key="cell-query").set_value(3).run()
    assert explained(app)[0] == 3
    app = open_page(why="score", cell="encoder.1.1.4.3", pin="target.5")
    assert explained(app)[0] == 4


def test_another_method_is_explained_in_its_own_unit(open_page: Open, word: WordKey) -> None:
    app = open_page(methods=True, pin=f"target.{word.position + 1}")
    app.selectbox(key="attribution").set_value("alti").run()
    assert texts.describe_attribution_unit("alti", why_cache.load_explained_target(word)) in captions(app)


def test_slow_methods_wait_until_they_are_asked_for(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attenscope.viz.why.source_words.LONG_PIECES", 3)
    app = open_page(methods=True)
    assert "attribution" not in [one.key for one in app.selectbox]
    (name,) = [one.label for one in app.expander if "slow" in one.label]
    app.session_state[f"methods-fold-{re.findall('[0-9]+', name)[0]}"] = True
    app.run()
    assert app.selectbox(key="attribution").value == "leave-one-out"


@pytest.mark.parametrize(("method", "found"), [("attention-x-gradient", "leave-one-out"), ("rollout", "rollout")])
def test_the_menu_saves_a_method_that_there_is_for_the_model(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, method: str, found: str
) -> None:
    monkeypatch.setattr("attenscope.viz.why.source_words.LONG_PIECES", 3)  # so that the methods stay folded
    app = open_page(attribution=method)
    app.session_state[SHARE_MENU] = True
    app.run()
    assert not app.exception
    assert app.session_state[OFFERED_VIEW].facts["method"] == found
    assert "Interactive page (HTML)" in [one.proto.label for one in app.get("download_button")]


def test_a_method_that_needs_blocks_is_not_in_force_without_them(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attenscope.viz.why.source_words.LONG_PIECES", 3)

    def refuse() -> None:
        raise AttributionError("no blocks")

    monkeypatch.setattr(why_cache, "run_attention_pass", lambda *_: SimpleNamespace(stacks=refuse))
    app = open_page(attribution="alti")
    assert app.session_state[OFFERED_VIEW].facts["method"] == "leave-one-out"
    assert "attribution" not in app.query_params


def test_what_is_saved_holds_every_score(open_page: Open, word: WordKey) -> None:
    app = open_page(pin=f"target.{word.position + 1}")
    table = saved(app).numbers()
    every = why_cache.compute_attributions_by_method(word)
    for name in ATTRIBUTION_METHODS:
        assert table[name].dropna().tolist() == pytest.approx(every[name].scores.tolist())
    assert (table["of"] == "source").sum() == len(every["alti"].source)


def test_the_strongest_cell_is_of_the_strongest_head(
    open_page: Open, word: WordKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[AttentionCell] = []
    keep: Callable[..., AttentionCell] = find_strongest_cell

    def watched(question: Any) -> AttentionCell:
        seen.append(keep(question))
        return seen[-1]

    monkeypatch.setattr("attenscope.viz.why.heads.find_strongest_cell", watched)
    open_page(why="score", pin=f"target.{word.position + 1}")
    assert seen == [strongest_of(word)]


def test_the_changed_model_leaves_nothing_of_the_unchanged_one_behind(reading: ReadingKey) -> None:
    """What other visitors share is the unchanged model's, whichever question comes first."""
    own = {text: ui_cache.compute_translation(reading.model, text) for text in (SENTENCE, OTHER, SAME)}
    ui_cache.compute_translation.clear()
    off = "cross.1.1:off,cross.1.2:off"
    keys = [ReadingKey(reading.model, text, "", off) for text in (SENTENCE, OTHER, SAME)]
    with contextlib.suppress(AttributionError):
        why_cache.compute_control_patch_map(keys[0], keys[1], keys[2], "encoder stream")
    for text, found in own.items():
        again = ui_cache.compute_translation(reading.model, text)
        assert [step.log_prob for step in again.steps] == [step.log_prob for step in found.steps]


def test_what_cannot_be_computed_is_said_in_the_language_of_each_visitor(
    monkeypatch: pytest.MonkeyPatch, word: WordKey
) -> None:
    monkeypatch.setattr(why_cache, "_run_with_changes", lambda _: contextlib.nullcontext((None, None)))
    monkeypatch.setattr(why_cache, "load_explained_target", lambda _: None)
    monkeypatch.setattr(why_cache, "attribute_available_methods", lambda *_: ({}, current_language()))
    monkeypatch.setattr(ui_cache, "find_encoder_only_model", lambda _: "a model")
    monkeypatch.setattr(why_cache, "attribute_any_model", lambda *_: ((), current_language()))
    for language in ("en", "de", "zh"):
        with use_language(language):
            assert why_cache.describe_refused_methods(word) == language
            assert why_cache.describe_missing_user_model_methods("a model", SENTENCE, 0) == language
