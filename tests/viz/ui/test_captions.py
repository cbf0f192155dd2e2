"""What a page says of a sentence before its pictures: another language, and a model that is unsure."""

from __future__ import annotations

import ast
import math
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from attenscope import viz
from attenscope.checkpoint.card import CheckpointSummary, summarise_checkpoint
from attenscope.checkpoint.load import find_checkpoint_folder
from attenscope.evaluation.in_domain_detection import DetectionRates, Familiarity
from attenscope.experiments.ablation import Comparison
from attenscope.interventions.changes import parse_changes
from attenscope.runnable_model import Translation
from attenscope.viz.ui import cache
from attenscope.viz.ui.captions import escape_message
from attenscope.viz.ui.controls import describe_model_changes, model_summary_text
from attenscope.viz.web.text_components import token_line_data
from tests.viz.explore.live.test_page import captions
from tests.viz.fakes import FakeTranslator


class Chinese(FakeTranslator):
    name = "fake-zh-en"


def test_changes_are_named_or_counted() -> None:
    assert describe_model_changes("cross.1.1:off") == "Of the changed model: cross.1.1:off."
    assert describe_model_changes("a,b,c,d") == "Of the changed model: 4 changes."
    assert describe_model_changes("") == "The changes are left out."


def test_a_sentence_in_another_language_offers_the_model_that_reads_it(
    app: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = {one.name: one for one in (FakeTranslator(), Chinese())}
    monkeypatch.setattr(cache, "list_checkpoint_names", lambda: list(models))
    monkeypatch.setattr(cache, "load_runnable_model", models.__getitem__)
    monkeypatch.setattr(cache, "load_source_languages", lambda: {"fake-en-de": "en", "fake-zh-en": "zh"})
    app.query_params["sentence"] = "我昨天在图书馆读了一本书。"
    app.run()
    assert "This looks like Chinese. The model reads English" in captions(app)
    app.button(key="use-other-model").click().run()
    assert not app.exception
    assert app.selectbox(key="model").value == "fake-zh-en"
    monkeypatch.setattr(cache, "load_source_languages", lambda: {"fake-en-de": "en"})
    app.selectbox(key="model").set_value("fake-en-de").run()
    assert not [one for one in app.button if one.key == "use-other-model"]


@pytest.mark.parametrize(("probabilities", "said"), [([0.59, 0.59, 0.9], True), ([0.59, 0.61, 0.9, 0.5], False)])
def test_a_model_unsure_of_most_pieces_is_said_to_be_so(
    app: AppTest, monkeypatch: pytest.MonkeyPatch, probabilities: list[float], said: bool
) -> None:
    class Unsure(FakeTranslator):
        def translate(self, text: str) -> Translation:
            found = super().translate(text)
            steps = zip(found.steps, probabilities, strict=True)
            return replace(found, steps=tuple(replace(step, log_prob=math.log(one)) for step, one in steps))

    unsure = Unsure()
    monkeypatch.setattr(cache, "load_runnable_model", lambda name: unsure)
    app.query_params["sentence"] = " ".join("word" for _ in probabilities[1:])
    app.run()
    assert not app.exception
    below = sum(one < 0.6 for one in probabilities)
    assert (f"it gave {below} of {len(probabilities)} a probability below 60%" in captions(app)) == said
    shown = token_line_data(unsure.translate(app.text_area(key="sentence").value or "").steps, None)["pieces"]
    assert [one["unsure"] for one in shown] == [one < 0.6 for one in probabilities]


@pytest.mark.parametrize(("threshold", "said"), [(-0.6, True), (-0.8, False)])
def test_where_a_model_was_measured_its_doubt_is_said_by_what_was_measured(
    app: AppTest, monkeypatch: pytest.MonkeyPatch, threshold: float, said: bool
) -> None:
    class Doubtful(FakeTranslator):
        def translate(self, text: str) -> Translation:
            found = super().translate(text)
            return replace(found, steps=tuple(replace(step, log_prob=-0.7) for step in found.steps))

    measured = Familiarity("fake", "", "a dev set", 500, threshold, DetectionRates(0.8, 0.3), DetectionRates(0.9, 0.9))
    monkeypatch.setattr(cache, "load_runnable_model", lambda name: Doubtful())
    monkeypatch.setattr(cache, "load_in_domain_score", lambda name: measured)
    app.query_params["sentence"] = "two words"
    app.run()
    assert not app.exception
    says = (
        "less sure of its own translation of this sentence than of its translations of 95% of 500 sentences of a dev "
        "set: the mean log-probability is −0.70"
    )
    assert (says in captions(app)) == said
    assert "unsure of most pieces" not in captions(app)


@pytest.mark.parametrize(("own", "said"), [(-0.1, False), (-0.8, True)])
def test_a_sentence_is_judged_by_the_unchanged_model(
    app: AppTest, monkeypatch: pytest.MonkeyPatch, own: float, said: bool
) -> None:
    def sure(found: Translation, log_prob: float) -> Translation:
        return replace(found, steps=tuple(replace(step, log_prob=log_prob) for step in found.steps))

    class Sure(FakeTranslator):
        def translate(self, text: str) -> Translation:
            return sure(super().translate(text), own)

    def changed(name: str, text: str, changes: str, given: str) -> Comparison:
        before = Sure().translate(text)
        other = -3.0 if own > -0.5 else -0.01
        return Comparison(before, sure(before, other), parse_changes(changes), (), (own,), (other,))

    monkeypatch.setattr(cache, "load_runnable_model", lambda name: Sure())
    monkeypatch.setattr(cache, "compute_intervention_comparison", changed)
    measured = Familiarity("fake", "", "a dev set", 500, -0.6, DetectionRates(0.8, 0.3), DetectionRates(0.9, 0.9))
    monkeypatch.setattr(cache, "load_in_domain_score", lambda name: measured)
    app.query_params["sentence"] = "two words"
    app.query_params["changes"] = "cross.1.1:off"
    app.run()
    assert not app.exception
    assert ("less sure of its own translation" in captions(app)) == said
    assert ("closer to its training text" in captions(app)) == said
    # What is underlined is the translation that is shown.
    assert ("Underlined: " in captions(app)) == (own > -0.5)


def test_the_list_of_models_says_size_and_score_and_chooses_one(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    found = summarise_checkpoint(find_checkpoint_folder("everyday-zh-en"))
    assert found.score is not None
    scored = f"{found.score.bleu:.1f} BLEU on {found.score.set}, beam {found.score.beam}."
    assert model_summary_text(found) == f"{found.title}. {found.parameters / 1e6:.1f} M parameters. {scored}"
    assert (
        model_summary_text(CheckpointSummary("bare", "", "", "", 1_500_000, None, preset=False)) == "1.5 M parameters."
    )
    models = {one.name: one for one in (FakeTranslator(), Chinese())}
    monkeypatch.setattr(cache, "list_checkpoint_names", lambda: list(models))
    monkeypatch.setattr(cache, "load_runnable_model", models.__getitem__)
    monkeypatch.setattr(cache, "load_model_summaries", lambda: [replace(found, name="fake-zh-en")])
    app.query_params["sentence"] = "Two words"
    app.session_state["settings"] = True
    app.run()
    assert "Chinese → English" in "".join(one.value for one in app.markdown)
    assert scored in captions(app)
    app.button(key="model fake-zh-en").click().run()
    assert not app.exception
    assert app.selectbox(key="model").value == "fake-zh-en"


@pytest.mark.parametrize(("model", "how"), [("everyday-en-de", "bytes"), ("preset-original", "an unknown token")])
def test_what_the_vocabulary_has_no_piece_for_is_said_with_what_is_read_there(model: str, how: str) -> None:
    def page(model: str) -> None:
        from attenscope.translate import Translator
        from attenscope.viz.ui.captions import draw_translation_warnings

        translator = Translator.load(model, "cpu")
        read = translator.translate("I like 狗.")
        draw_translation_warnings(translator, read, read)

    app = AppTest.from_function(page, args=(model,), default_timeout=60).run()
    assert not app.exception
    assert f"has no pieces for “狗”: the model reads {how} there." in captions(app)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0421, "42 ms"), (0.9994, "999 ms"), (0.9996, "1.0 s"), (12.345, "12.3 s")]
)
def test_a_long_time_takes_no_more_room_in_the_badge(
    app: AppTest, monkeypatch: pytest.MonkeyPatch, seconds: float, shown: str
) -> None:
    class Slow(FakeTranslator):
        def translate(self, text: str) -> Translation:
            return replace(super().translate(text), seconds=seconds)

    monkeypatch.setattr(cache, "load_runnable_model", lambda name: Slow())
    app.query_params["sentence"] = "two words"
    app.run()
    assert not app.exception
    assert any(f" · {shown}<" in one.proto.body for one in app.get("html"))


@pytest.mark.parametrize(
    ("message", "markdown"),
    [
        (
            "Run `python -m model atlas --output a_b` or *wait*.",
            r"Run `python -m model atlas --output a_b` or \*wait\*\.",
        ),
        ("A ` alone,\nand ` again", "A \\` alone,\nand \\` again"),
        ("``<b>`x`", "\\``<b>`x\\`"),
        ("<img src=x>", r"\<img src\=x\>"),
    ],
)
def test_a_command_in_a_message_is_code_and_nothing_else_in_it_is_markdown(message: str, markdown: str) -> None:
    assert escape_message(message) == markdown


def test_a_caption_is_escaped_once() -> None:
    """draw_caption escapes its text: one that is escaped already is read with its backslashes."""
    calls = [
        (path.name, call.lineno, ast.unparse(call))
        for path in Path(viz.__file__).parent.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "draw_caption"
    ]
    assert len(calls) > 50
    assert not [call for call in calls if "escape_" in call[2]]
