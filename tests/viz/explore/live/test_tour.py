"""The tour: its steps show in the released model what they say, and can be walked, left and taken up again."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from streamlit.testing.v1 import AppTest

from attenscope.analysis.heads import describe_head_pattern
from attenscope.language import LANGUAGES, use_language
from attenscope.runnable_model import Translation
from attenscope.trace import AttentionMap
from attenscope.translate import Translator
from attenscope.viz.tour import TOUR_MODEL, TourStep, list_live_file_tour_steps, load_tour_steps
from attenscope.viz.ui import cache
from attenscope.viz.ui.addresses.explore import PAGE
from attenscope.viz.ui.addresses.shared import parse_pins
from tests.viz.fakes import FakeTranslator


@pytest.fixture(scope="module")
def result() -> Translation:
    return Translator.load("everyday-en-de").translate(load_tour_steps()[0].address["sentence"])


def head(result: Translation, step: TourStep, *, attempt: bool) -> tuple[AttentionMap, int, int, int | None]:
    """The map, the layer, the head and the pinned row that a step shows, or shows after its button."""
    address = {**step.address, **(step.attempt if attempt else {})}
    kind = address["kind"]
    row = parse_pins(address.get("pin", "")).get("source" if kind == "encoder" else "target")
    return result.trace.maps[kind], int(address["layer"]) - 1, int(address["head"]) - 1, row  # type: ignore[index]


def link(result: Translation, step: TourStep, *, attempt: bool) -> tuple[str, str]:
    """The pinned row's token and the key of its largest weight."""
    attention, layer, number, row = head(result, step, attempt=attempt)
    assert row is not None
    key = int(attention.weights[layer, number, row].argmax())
    return attention.rows("predicted")[row].strip(), attention.key_tokens[key].strip()


def habit(result: Translation, step: TourStep, *, attempt: bool) -> str:
    attention, layer, number, _ = head(result, step, attempt=attempt)
    claim = describe_head_pattern(attention, layer, number, "predicted")
    assert claim.value > 0.5
    return claim.habit


def test_every_address_of_the_tour_is_one_that_the_page_reads() -> None:
    for step in load_tour_steps():
        for name, text in {**step.address, **step.attempt}.items():
            assert PAGE.parameters[name].understands([text])
            if name not in ("sentence", "pin"):
                assert str(PAGE.parameters[name].value_of(text)) == text


def test_the_steps_say_what_the_released_model_shows(result: Translation) -> None:
    rows, tiles, encoder, decoder, *_ = load_tour_steps()
    assert link(result, rows, attempt=False) == ("Fahrrad", "bicycle")
    assert link(result, rows, attempt=True) == ("gekauft", "buy")
    assert habit(result, tiles, attempt=False) == "alignment fed in"
    assert habit(result, tiles, attempt=True) == "alignment"
    assert link(result, tiles, attempt=False)[1] == link(result, rows, attempt=False)[1]
    assert habit(result, encoder, attempt=False) == "previous"
    assert habit(result, encoder, attempt=True) == "same"
    attention, *_, row = head(result, decoder, attempt=False)
    assert row is not None
    assert attention.mask[row, : row + 1].all()
    assert not attention.mask[row, row + 1 :].any()


def test_the_tour_is_walked_and_left(app: AppTest) -> None:
    app.run()
    app.button(key="tour-begins").click().run()
    for at, step in enumerate(load_tour_steps(), start=1):
        assert not app.exception
        assert app.query_params["tour"] == str(at)
        assert app.session_state["kind"] == step.address["kind"]
        assert any(step.text in one.value.replace("\\", "") for one in app.markdown)
        assert app.button(key="tour-try").label == step.button
        if step.attempt:
            app.button(key="tour-try").click().run()
            for name in step.attempt.keys() & {"view", "order"}:
                assert app.session_state[name] == step.attempt[name]
        if at < len(load_tour_steps()):
            app.button(key="tour-next").click().run()
    assert not [one for one in app.button if one.key == "tour-next"]
    app.button(key="tour-back").click().run()
    assert app.query_params["tour"] == str(len(load_tour_steps()) - 1)
    app.button(key="tour-leave").click().run()
    assert "tour" not in app.query_params
    assert not [one for one in app.button if one.key == "tour-try"]


def test_a_step_says_nothing_of_a_sentence_that_it_is_not_about(app: AppTest) -> None:
    app.run()
    app.button(key="tour-begins").click().run()
    app.text_area(key="sentence").set_value("He reads a book.").run()
    step = load_tour_steps()[0]
    assert not any(step.text in one.value.replace("\\", "") for one in app.markdown)
    app.button(key="tour-try").click().run()
    assert app.text_area(key="sentence").value == step.address["sentence"]
    assert any(step.text in one.value.replace("\\", "") for one in app.markdown)


def test_a_model_of_other_languages_has_no_tour(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    class French(FakeTranslator):
        name = "fake-en-fr"
        card: ClassVar[dict[str, Any]] = {"source_language": "en", "target_language": "fr"}

    models = {one.name: one for one in (FakeTranslator(), French())}
    monkeypatch.setattr(cache, "list_checkpoint_names", lambda: list(models))
    monkeypatch.setattr(cache, "load_runnable_model", models.__getitem__)
    app.run()
    app.button(key="tour-begins").click().run()
    app.selectbox(key="model").set_value("fake-en-fr").run()
    assert not app.exception
    assert not [one for one in app.button if (one.key or "").startswith("tour-")]
    app.selectbox(key="model").set_value("fake-en-de").run()
    assert app.button(key="tour-try").label == load_tour_steps()[0].button


def test_the_tour_of_page_and_file_is_the_same_in_every_language() -> None:
    english = [(one.address, one.attempt) for one in load_tour_steps()]
    titles = set()
    for language in LANGUAGES:
        with use_language(language):
            assert [(one.address, one.attempt) for one in load_tour_steps()] == english
            titles |= {one["title"] for one in list_live_file_tour_steps(TOUR_MODEL)}
    assert len(titles) == len(LANGUAGES) * len(list_live_file_tour_steps(TOUR_MODEL))


def test_an_address_takes_the_tour_up_and_nonsense_does_not(app: AppTest) -> None:
    app.query_params["tour"] = "3"
    app.run()
    assert app.button(key="tour-try").label == load_tour_steps()[2].button
    app.query_params["tour"] = "99"
    other = AppTest.from_file(app._script_path, default_timeout=30)
    other.query_params["tour"] = "99"
    other.run()
    assert not other.exception
    assert not [one for one in other.button if one.key == "tour-try"]
