"""The page's logic with a fake translator; what only a browser can tell stands in tests/browser."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attenscope.analysis.telling_word import pick_telling_word, weigh_words
from attenscope.runnable_model import Translation
from attenscope.trace import AttentionMap, AttentionTrace
from attenscope.viz.explore import model_page
from attenscope.viz.explore.examples import load_examples
from attenscope.viz.explore.view_data import RunKey
from attenscope.viz.figures.text_alternatives import describe_word_attention
from attenscope.viz.ui import cache
from attenscope.viz.ui.addresses.shared import PIN
from tests.viz import page_texts
from tests.viz.fakes import FakeTranslator
from tests.viz.web.test_packing import unpack


def title(app: AppTest) -> str:
    return unpack(heatmaps(app)[0].proto.bytes)[0]["title"]


def heatmaps(app: AppTest) -> list[Any]:
    return [one for one in app.get("bidi_component") if one.proto.component_name.endswith("heatmap")]


def captions(app: AppTest) -> str:
    """All captions, without the escapes and the direction isolates that keep tokens plain text."""
    return " ".join(page_texts.captions(app)).translate(page_texts.ISOLATES)


def cross_of(app: AppTest) -> AttentionMap:
    cross = FakeTranslator().translate(app.text_area(key="sentence").value or "").trace.cross
    assert cross is not None
    return cross


def begins_at(app: AppTest) -> str:
    """The title of the head of the telling word, with which a page begins where nothing was chosen."""
    telling = pick_telling_word(cross_of(app))
    assert telling is not None
    return f"Cross-attention · layer {telling.layer + 1}, head {telling.head + 1}"


def read_sentence(app: AppTest) -> str:
    """What the page says of the pinned word."""
    (own,) = (one for one in app.get("bidi_component") if one.proto.component_name.endswith("attenscope_sentence"))
    header = unpack(own.proto.bytes)[0]
    side = "target" if header["pinned"]["target"] is not None else "source"
    return str(header[side]["says"][header["pinned"][side]])


def test_every_sentence_opens_on_its_telling_word(app: AppTest) -> None:
    app.run()
    for text in ("", "Another one here", "Two words", "One"):
        if text:
            app.text_area(key="sentence").set_value(text).run()
        assert not app.exception
        cross = cross_of(app)
        telling, words = pick_telling_word(cross), weigh_words(cross)
        assert telling is not None
        assert words is not None
        assert begins_at(app) in title(app)
        assert read_sentence(app) == describe_word_attention(words, telling)


def test_a_head_that_was_chosen_stays_with_another_sentence(app: AppTest) -> None:
    app.session_state["trials after 0"] = True
    app.run()
    chosen = "2.2" if "layer 2, head 2" not in title(app) else "2.3"
    app.text_input(key="typed").set_value(chosen).run()
    app.text_area(key="sentence").set_value("Another one here").run()
    assert f"layer 2, head {chosen[-1]}" in title(app)
    assert f"head {chosen}" in read_sentence(app)
    app.text_area(key="sentence").set_value("And a third of them").run()
    assert f"layer 2, head {chosen[-1]}" in title(app)


OWN_SENTENCE = "The old dog sleeps near a tree"


class Reversed(FakeTranslator):
    """Another model, whose heads show other words."""

    name = "reversed"

    def translate(self, text: str) -> Translation:
        whole = super().translate(text)
        maps = {kind: replace(one, weights=one.weights[..., ::-1, ::-1]) for kind, one in whole.trace.maps.items()}
        return replace(whole, captured=AttentionTrace(**maps))  # type: ignore[arg-type]


@pytest.fixture
def both(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    models = {one.name: one for one in (FakeTranslator(), Reversed())}
    monkeypatch.setattr(cache, "list_checkpoint_names", lambda: list(models))
    monkeypatch.setattr(cache, "load_runnable_model", models.__getitem__)
    app.query_params["sentence"] = OWN_SENTENCE
    return app


def find_telling_pin(model: FakeTranslator, text: str) -> dict[str, str]:
    """What stands in the address of the word and the head with which a page of a model begins."""
    cross = model.translate(text).trace.cross
    assert cross is not None
    telling, words = pick_telling_word(cross), weigh_words(cross)
    assert telling is not None
    assert telling.row is not None
    assert words is not None
    pin = f"target.{words.rows[telling.row].start + 1}"
    return {"pin": pin, "layer": str(telling.layer + 1), "head": str(telling.head + 1)}


def test_a_word_that_the_page_has_pinned_is_picked_anew_with_another_model(both: AppTest) -> None:
    both.run()
    for model in (FakeTranslator(), Reversed(), FakeTranslator()):
        both.selectbox(key="model").set_value(model.name).run()
        expected = find_telling_pin(model, OWN_SENTENCE)
        assert {name: both.query_params[name] for name in expected} == expected
        assert [one.label for one in both.expander if one.label.startswith("More about")]  # and no card is open


def test_a_word_that_the_visitor_has_pinned_stays_with_another_model(both: AppTest) -> None:
    both.run()
    assert "target.1" not in {find_telling_pin(model, OWN_SENTENCE)["pin"] for model in (FakeTranslator(), Reversed())}
    both.session_state[PIN.key] = {"target": 0}
    both.run()
    both.selectbox(key="model").set_value("reversed").run()
    assert both.query_params["pin"] == "target.1"


def test_all_heads_are_in_the_range_until_one_is_chosen(app: AppTest) -> None:
    """Of a longer sentence a head may look farther back than any of a shorter one does."""
    app.query_params["order"] = "distance"
    app.session_state["trials after 0"] = True
    app.run()
    tops = []
    for text in ("Two words", "word " * 40):
        app.text_area(key="sentence").set_value(text).run()
        (shown,) = app.slider
        assert shown.value == (0.0, shown.max)
        tops.append(shown.max)
    assert tops[0] < tops[1]
    app.slider[0].set_value((0.0, 1.0)).run()
    assert app.slider[0].value == (0.0, 1.0)


def test_a_click_on_a_word_brings_the_head_that_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rest = [[0.0, 0.1, 0.9], [0.0, 0.9, 0.1], [0.1, 0.0, 0.9]]
    shown = [[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.0, 0.1, 0.9]]
    tokens = (" A", " B", "</s>")
    weights = np.array([[rest, shown]], np.float32)
    cross = AttentionMap("cross", weights, ("<s>", " A", " B"), tokens, np.ones((3, 3), bool), tokens)
    state: dict[str, Any] = {}
    monkeypatch.setattr(model_page, "toggle_pins", lambda _, cell: state.update(pin=cell))
    monkeypatch.setattr(model_page, "get_pin", lambda *_: state["pin"].get("target"))
    monkeypatch.setattr(model_page, "get_chosen_cross_head", lambda _: (0, 0))
    monkeypatch.setattr(model_page, "set_layer_and_head", lambda *place: state.update(place=place))
    monkeypatch.setattr(model_page, "remember_auto_selected_head", lambda *_: None)
    monkeypatch.setattr(model_page.explore_controls, "list_changed_heads", lambda _: ())
    run = RunKey("fake-en-de", "a b")
    model_page.pin_word(run, cross, "target", 1)
    assert state == {"pin": {"target": 1}}  # The shown head shows it.
    model_page.pin_word(run, cross, "target", 0)
    assert state == {"pin": {"target": 0}, "place": (0, 1)}


def test_the_address_restores_sentence_kind_layer_and_head(app: AppTest) -> None:
    app.query_params.update({"sentence": "Two words", "kind": "decoder", "layer": "2", "head": "3"})
    app.run()
    assert not app.exception
    assert app.text_area(key="sentence").value == "Two words"
    assert "Decoder self-attention · layer 2, head 3" in title(app)


def test_a_layer_that_no_model_has_falls_back(app: AppTest) -> None:
    app.query_params["layer"] = "99"
    app.run()
    assert not app.exception
    assert "Cross-attention · layer 1, head 1" in title(app)


@pytest.mark.parametrize("wrong", [{"head": "0"}, {"head": "x"}, {"kind": "sideways"}, {"model": "../etc"}])
def test_nonsense_in_the_address_says_nothing(app: AppTest, wrong: dict[str, str]) -> None:
    app.query_params.update(wrong)
    app.run()
    assert not app.exception
    assert begins_at(app) in title(app)


def test_heatmap_and_links_stand_ready_together_unless_they_are_large(app: AppTest) -> None:
    def drawn() -> set[str]:
        names = {one.proto.component_name.rpartition("attenscope_")[2] for one in app.get("bidi_component")}
        return names & {"heatmap", "links", "text", "pipeline"}

    app.query_params["view"] = "links"
    app.run()
    assert drawn() == {"heatmap", "links"}
    app.text_area(key="sentence").set_value("word " * 150).run()
    assert drawn() == {"links"}


@pytest.mark.parametrize("typed", ["3.4", "3 4", "L3 H4", " l3h4 "])
def test_a_head_is_typed(app: AppTest, typed: str) -> None:
    app.session_state["trials after 0"] = True
    app.run()
    app.text_input(key="typed").set_value(typed).run()
    assert not app.toast
    assert "layer 3, head 4" in title(app)
    assert (app.query_params["layer"], app.query_params["head"]) == ("3", "4")


@pytest.mark.parametrize("typed", ["", "0.1", "9.1", "1.99", "head", "²", "1.2.3"])
def test_a_head_that_is_not_there_is_refused_with_a_sentence(app: AppTest, typed: str) -> None:
    app.query_params.update({"layer": "2", "head": "1"})
    app.session_state["trials after 0"] = True
    app.run()
    app.text_input(key="typed").set_value(typed).run()
    assert "such as 2.5" in app.toast[0].value
    assert "layer 2, head 1" in title(app)
    assert app.text_input(key="typed").value == "2.1"


def test_a_model_with_fewer_heads_starts_at_one_it_has(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    class Small(FakeTranslator):
        name = "small"

        def translate(self, text: str) -> Translation:
            whole = super().translate(text)
            cut = {kind: replace(one, weights=one.weights[:1, :2]) for kind, one in whole.trace.maps.items()}
            return replace(whole, captured=AttentionTrace(**cut))  # type: ignore[arg-type]

    models = {one.name: one for one in (FakeTranslator(), Small())}
    monkeypatch.setattr(cache, "list_checkpoint_names", lambda: list(models))
    monkeypatch.setattr(cache, "load_runnable_model", models.__getitem__)
    app.query_params.update({"layer": "3", "head": "4"})
    app.run()
    assert "layer 3, head 4" in title(app)
    app.selectbox(key="model").set_value("small").run()
    assert not app.exception
    assert "layer 1, head 1" in title(app)


def test_the_pinned_row_is_said_and_forgotten_with_the_sentence(app: AppTest) -> None:
    app.query_params.update({"sentence": "The old dog sleeps.", "pin": "target.2"})
    app.run()
    assert "Pinned: “OLD”" in captions(app)
    app.text_area(key="sentence").set_value("Another one").run()
    assert "“OLD”" not in captions(app)  # Another word is pinned, of the sentence that is read now.


def test_an_input_error_is_shown_as_its_sentence(app: AppTest) -> None:
    app.run()
    app.text_area(key="sentence").set_value("  ").run()
    assert not app.exception
    assert "nothing to translate" in app.info[0].value
    assert not heatmaps(app)


def test_earlier_sentences_can_be_gone_back_to(app: AppTest) -> None:
    app.run()
    app.text_area(key="sentence").set_value("First *one*").run()
    app.text_area(key="sentence").set_value("Second one").run()
    app.button(key="earlier-0").click().run()
    assert app.text_area(key="sentence").value == "First *one*"


def test_an_example_replaces_the_sentence(app: AppTest) -> None:
    app.query_params["sentence"] = "He reads a book."
    app.run()
    next(button for button in app.button if button.key and button.key.startswith("example-")).click().run()
    assert app.text_area(key="sentence").value == load_examples()[0].sentence


def test_hints_for_another_language_and_unknown_pieces(app: AppTest) -> None:
    app.run()
    app.text_area(key="sentence").set_value("Ich habe das Buch nicht gelesen 😀").run()
    assert "looks like German" in captions(app)
    assert "😀" in captions(app)


def test_without_a_checkpoint_the_page_says_what_to_do(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "list_checkpoint_names", list)
    app.run()
    assert not app.exception
    assert "python -m model train" in app.info[0].value


def test_a_model_that_names_its_own_sentences_offers_them(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTranslator()
    monkeypatch.setattr(fake, "card", {**fake.card, "examples": "Two dogs run. | A man sleeps."}, raising=False)
    monkeypatch.setattr(cache, "load_runnable_model", lambda name: fake)
    app.run()
    assert app.text_area(key="sentence").value == "Two dogs run."
    app.button(key="example-A man sleeps.").click().run()
    assert app.text_area(key="sentence").value == "A man sleeps."


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize(("flow", "said"), [("rollout", "could have drawn"), ("attention flow", "could pass")])
def test_a_flow_says_where_it_goes_beyond_its_paper(app: AppTest, kind: str, flow: str, said: str) -> None:
    app.query_params.update({"view": "flow", "flow": flow, "kind": kind, "layer": "2"})
    app.run()
    assert not app.exception
    assert said in captions(app)
    assert ("an extension made here" in captions(app)) == (kind != "encoder")


def test_the_cells_of_an_attention_flow_are_not_added_up(app: AppTest) -> None:
    app.query_params.update({"view": "flow", "flow": "attention flow", "hide": "true", "words": "true"})
    app.run()
    assert not app.exception
    assert "flows cannot be added up" in captions(app)
    assert "Special tokens are hidden" not in captions(app)
    app.segmented_control(key="flow").set_value("rollout").run()
    assert "flows cannot be added up" not in captions(app)
    assert "Special tokens are hidden" in captions(app)
