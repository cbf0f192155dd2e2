"""The switchboard's address, its words, and that a nonsense address is only a sentence."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from attenscope.experiments.ablation import Comparison
from attenscope.interventions.changes import format_changes, parse_changes
from attenscope.text.words import WordChange
from attenscope.viz.explore.controls import replace_turned_off_heads
from attenscope.viz.explore.texts import describe_changes, render_word_diff
from attenscope.viz.ui import cache
from tests.viz.explore.live.test_page import captions
from tests.viz.fakes import FakeTranslator


def again(name: str, text: str, changes: str, given: str) -> Comparison:
    found = FakeTranslator().translate(text)
    return Comparison(found, found, parse_changes(changes), (WordChange("same", found.text),), (-1.0,), (-1.5,))


@pytest.fixture
def switched(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setattr(cache, "compute_intervention_comparison", again)
    return app


def test_turning_a_head_off_and_back(switched: AppTest) -> None:
    switched.query_params["layer"] = "1"
    switched.session_state["trials after 0"] = True
    switched.run()
    switched.selectbox(key="switch-cross-0-0").set_value("off").run()
    assert switched.query_params["changes"] == "cross.1.1:off"
    assert "With cross layer 1 head 1 off." in captions(switched)
    assert "(−0.50)" in captions(switched)
    switched.selectbox(key="switch-cross-0-0").set_value("head.3").run()
    assert switched.query_params["changes"] == "cross.1.1:head.3"
    switched.selectbox(key="switch-cross-0-0").set_value("unchanged").run()
    assert "changes" not in switched.query_params


def test_the_address_brings_changes(switched: AppTest) -> None:
    switched.query_params["changes"] = "cross.2.3:uniform"
    switched.run()
    assert "With cross layer 2 head 3 uniform." in captions(switched)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ("cross.2.3:off", ["cross layer 2 head 3 off"]),
        ("cross.2.3:off,cross.2.1:off", ["cross layer 2 heads 1 and 3 off"]),
        (
            ",".join(f"encoder.1.{head}:off" for head in (1, 2, 3, 4, 7, 8)) + ",encoder.1.5:uniform,decoder.1.1:off",
            [
                "encoder layer 1 heads 1 to 4, 7 and 8 off",
                "encoder layer 1 head 5 uniform",
                "decoder layer 1 head 1 off",
            ],
        ),
    ],
)
def test_many_changes_are_told_in_few_words(changes: str, words: list[str]) -> None:
    assert describe_changes(parse_changes(changes)) == words


def test_nonsense_in_the_address_is_told(switched: AppTest) -> None:
    switched.query_params["changes"] = "everything:off"
    switched.run()
    assert not switched.exception
    assert "is no change to a model" in switched.info[0].value.replace("\\", "")


def test_words_of_a_difference_are_data() -> None:
    assert (
        render_word_diff([WordChange("removed", " <b>"), WordChange("added", " &")])
        == "<del> &lt;b&gt;</del><ins> &amp;</ins>"
    )


def test_the_board_turns_off_what_it_is_told_and_keeps_other_changes() -> None:
    made = parse_changes("cross.1.1:off, encoder.2.1:uniform, decoder.1.2:head.1, mask.cross.*.*.4:block")
    found = replace_turned_off_heads(made, [("encoder", 1, 0), ("decoder", 0, 0)])
    assert format_changes(found) == "decoder.1.2:head.1,mask.cross.*.*.4:block,encoder.2.1:off,decoder.1.1:off"
    assert format_changes(replace_turned_off_heads(found, [])) == "decoder.1.2:head.1,mask.cross.*.*.4:block"
