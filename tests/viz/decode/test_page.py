"""What Decode sends to the browser, how its addresses are read, and how its versions are compared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from attenscope.decoding.greedy_and_sampling import Candidate, Constraints
from attenscope.experiments.mask_trial import CacheAgreement, measure_cache_agreement
from attenscope.language import format_number
from attenscope.runnable_model import Translation
from attenscope.trace import AttentionTrace
from attenscope.translate import Translator
from attenscope.viz.decode import panels
from attenscope.viz.decode.runs import DecodingRequest
from attenscope.viz.decode.texts import agreement_text, describe_problems, version_name
from attenscope.viz.figures.figure_style import Look
from attenscope.viz.ui import cache
from attenscope.viz.ui.addresses.decode import DECODE_BRANCH, DECODE_FORBIDDEN, format_id_sequences, format_token_ids
from attenscope.viz.ui.addresses.page_registry import PAGES
from attenscope.viz.ui.addresses.shared import CHANGES
from attenscope.viz.ui.controls import describe_given_translation
from attenscope.viz.web.charts import beam_tree_data
from attenscope.viz.web.component_scripts import FULL_BYTE, MASKED_BYTE
from attenscope.viz.web.players import PlayerStart, encode_decode_player
from tests.model.decoding.test_observer_check import scaling
from tests.viz.fakes import FakeTranslator
from tests.viz.page_texts import captions
from tests.viz.web.test_digits import printed
from tests.viz.web.test_packing import unpack

PAGE = Path(__file__).resolve().parents[3] / "viz" / "pages" / "decode.py"
SENTENCE = "the old dog sees a cat."
SHOWN = PlayerStart(step=2, cross="aligning", own="3.mean", aligning=(1, 2))


def translated(words: int) -> Translation:
    return FakeTranslator().translate(" ".join(f"word{i}" for i in range(words)))


@pytest.mark.parametrize("words", [31, 63, 127])
def test_the_decode_player_costs_at_most_1_45_bytes_a_weight(words: int) -> None:
    """In the size of the released models: four layers of eight heads, eight candidates a step.

    A byte for each of the eight heads and for their mean are 1.125; the rest are words and probabilities.
    """
    small = translated(words)
    maps = {
        kind: replace(one, weights=np.tile(one.weights[:2], (2, 2, 1, 1))) for kind, one in small.trace.maps.items()
    }
    eight = tuple(Candidate(7000 + number, -1.234567 * number, f" candidate{number}") for number in range(8))
    steps = tuple(replace(step, candidates=eight) for step in small.steps)
    result = replace(small, steps=steps, captured=AttentionTrace(**maps))  # type: ignore[arg-type]
    weights = maps["cross"].weights.size + maps["decoder"].weights.size
    assert maps["cross"].weights.shape[:2] == (4, 8)
    assert len(encode_decode_player(result, SHOWN, Look(), "1")) <= 1.45 * weights


def test_words_steps_and_bytes_of_the_decode_player() -> None:
    result = translated(3)
    header, sent = unpack(encode_decode_player(result, SHOWN, Look(), "7"))
    body = np.frombuffer(sent, np.uint8)
    cross, own = result.trace.cross, result.trace.decoder
    assert cross is not None
    assert own is not None
    assert [one["text"] for one in header["source"]] == ["word0", "word1", "word2", "</s>"]
    assert [one["text"] for one in header["target"]] == ["<s>", "WORD0", "WORD1", "WORD2", "</s>"]
    assert (header["id"], header["start"], header["aligning"]) == ("7", 2, [1, 2])
    assert header["steps"][2]["total"] == pytest.approx(sum(step.log_prob for step in result.steps[:3]))
    assert header["steps"][0]["candidates"][0] == {"id": 0, "text": "WORD0", "p": pytest.approx(0.4)}
    layers, heads = own.weights.shape[:2]
    seen = body[: layers * (heads + 1) * cross.mask.size].reshape(layers, heads + 1, *cross.mask.shape)
    ownbytes = body[seen.size :].reshape(layers, heads + 1, *own.mask.shape)
    np.testing.assert_allclose(seen[:, :-1] / FULL_BYTE, cross.weights, atol=1 / FULL_BYTE)
    assert printed(seen[:, -1] / FULL_BYTE, 2) == printed(cross.weights.mean(1, dtype=float), 2)
    assert (ownbytes[:, :, ~own.mask] == MASKED_BYTE).all()
    assert (ownbytes[:, :, own.mask] != MASKED_BYTE).all()


def test_a_step_beyond_the_end_is_the_last() -> None:
    assert (
        unpack(encode_decode_player(translated(3), PlayerStart(99, "aligning", "1.1", (0, 0)), Look(), "1"))[0]["start"]
        == 3
    )


@given(st.lists(st.integers(0, 7999), min_size=1, max_size=40))
def test_addresses_are_read_back(ids: list[int]) -> None:
    assert DECODE_BRANCH.value_of(format_token_ids(ids)) == tuple(ids)
    assert DECODE_FORBIDDEN.value_of(format_id_sequences([tuple(ids), (7,)])) == (tuple(ids), (7,))


@pytest.mark.parametrize("wrong", ["", "x", "1..2", "-1", "1.2.", "٣", "1" * 30, "<b>"])
def test_nonsense_in_an_address_is_nothing(wrong: str) -> None:
    assert DECODE_BRANCH.value_of(wrong) == ()
    assert DECODE_FORBIDDEN.value_of(f"{wrong}~12") == ((12,),)


def test_going_on_and_going_without(toy_translator: Translator) -> None:
    result = toy_translator.translate(SENTENCE)
    request = DecodingRequest(SENTENCE, "given", given="der Hund.", constraints=Constraints(forbidden=((9,),)))
    branch = request.branch(result, 2, 77)
    assert branch.constraints == Constraints((*result.target_ids[:2], 77), ((9,),))
    assert branch.method == "greedy"
    assert DecodingRequest(SENTENCE).forbid(5).forbid(5).constraints == Constraints((), ((5,),))


def test_misbehaviour_is_named(toy_translator: Translator) -> None:
    result = toy_translator.translate(SENTENCE)
    assert describe_problems(result, stopped=False) == []
    assert "best translation found until then" in describe_problems(result, stopped=True)[0]
    assert (
        "before the model had ended"
        in describe_problems(toy_translator.force(SENTENCE, result.target_ids[:2]), stopped=True)[0]
    )
    end = result.target_ids[-1]
    assert "ended at once" in describe_problems(toy_translator.force(SENTENCE, [end]), stopped=False)[0]
    looped = toy_translator.force(SENTENCE, [*result.target_ids[:2] * 4, end])
    assert "4 times in a row from step 1" in describe_problems(looped, stopped=False)[0]


def test_what_a_decoder_alone_writes_is_a_continuation(toy_translator: Translator) -> None:
    result = toy_translator.translate(SENTENCE)
    alone = AttentionTrace(decoder=result.trace.decoder)
    assert "best continuation found until then" in describe_problems(replace(result, captured=alone), stopped=True)[0]
    ended = toy_translator.force(SENTENCE, [result.target_ids[-1]])
    assert "continuation is empty" in describe_problems(replace(ended, captured=alone), stopped=False)[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ("cross.1.1:off,cross.1.2:uniform", "cross.1.1:off,cross.1.2:uniform"),
        ("cross.1.1:off,cross.1.2:off,encoder.1.1:off", "3 heads off"),
        ("cross.1.1:uniform,cross.1.2:uniform,mask.cross.*.*.4:block", "3 changes"),
        ("cross.1.1:off,cross.1.2:off,decoder.1.1:head.2", "3 changes"),
    ],
)
def test_a_version_is_named_by_its_changes(changes: str, said: str, toy_translator: Translator) -> None:
    run: Any = SimpleNamespace(request=DecodingRequest(SENTENCE, changes=changes))
    assert version_name(run, toy_translator.tokenizer).endswith(f" · {said}")


def test_a_given_translation_in_words(toy_translator: Translator) -> None:
    good = toy_translator.force(SENTENCE, "der alte Hund sieht ein Katze.")
    assert "Nothing surprised the model" in describe_given_translation(good.steps)
    bad = describe_given_translation(toy_translator.force(SENTENCE, "der alte Baum sieht ein Katze.").steps)
    assert re.search(r"Surprising: .+ was its choice no\. \d+ \([\d.]+%\), it would have written", bad)


def test_agreement_text(toy_translator: Translator) -> None:
    result = toy_translator.translate(SENTENCE)
    found = measure_cache_agreement(toy_translator, result.source_ids, result.target_ids)
    assert "The attention weights agree " in agreement_text(found)
    assert f"the largest difference is {format_number(found.largest, '.1e')}. ✓" in agreement_text(found)
    apart = CacheAgreement({("cached", "full"): {"cross": 2e-5, "decoder": 0.0}})
    assert "The attention weights differ " in agreement_text(apart)
    assert "the largest difference is 2.0e−05, and in float64 rounding explains 1e−06 at most" in agreement_text(apart)
    assert "✓" not in agreement_text(apart)


def test_the_beam_tree_draws_every_candidate_once(toy_translator: Translator) -> None:
    tree = toy_translator.search(SENTENCE, 3)
    best = tree.best[0].token_ids
    data = beam_tree_data(tree, best)
    places = [(node["column"], node["row"]) for node in data["nodes"]]
    assert places == [(node.position, node.place) for node in tree.nodes]
    assert len(set(places)) == len(places)
    assert tree.nodes[data["chosen"]].token_ids == best
    assert [node.token_ids[-1] for node, drawn in zip(tree.nodes, data["nodes"], strict=True) if drawn["best"]] == [
        *best
    ]
    for node, drawn in zip(tree.nodes, data["nodes"], strict=True):
        assert drawn["parent"] is None or tree.nodes[drawn["parent"]].token_ids == node.token_ids[:-1]
    assert beam_tree_data(tree, (9, 9))["chosen"] == -1


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, toy_translator: Translator) -> Callable[..., AppTest]:
    """Makes the page with what a link says."""
    monkeypatch.setattr(cache, "list_checkpoint_names", lambda: ["toy-en-de"])
    monkeypatch.setattr(cache, "load_runnable_model", lambda name: toy_translator)
    panels.compute_cache_agreement.clear()

    def open_decode(**link: str) -> AppTest:
        made = AppTest.from_file(str(PAGE), default_timeout=30)
        made.query_params.update({"sentence": SENTENCE} | link)
        return made

    return open_decode


@pytest.fixture
def app(opened: Callable[..., AppTest]) -> AppTest:
    return opened()


def header(app: AppTest) -> dict[str, Any]:
    found = [one.proto for one in app.get("bidi_component")]
    data = next(proto.bytes for proto in found if proto.component_name.endswith("decode_player"))
    return unpack(data)[0]


def words(app: AppTest) -> list[str]:
    return [one["text"] for one in header(app)["target"]]


def test_the_page_shows_the_greedy_translation_first(app: AppTest) -> None:
    app.run()
    assert not app.exception
    assert words(app)[0] == "<s>"
    assert "The attention weights agree" in " ".join(captions(app))


def test_the_agreement_is_that_of_the_model_that_is_shown(opened: Callable[..., AppTest]) -> None:
    app = opened(changes="cross.1.1:off").run()
    assert not app.exception
    assert "The attention weights of the changed model agree" in " ".join(captions(app))


def badge(app: AppTest) -> str:
    return next(one.proto.body for one in app.get("html") if 'class="more"' in one.proto.body)


@pytest.mark.parametrize("asked", [{}, {"method": "beam"}, {"changes": "cross.1.1:off,decoder.2.1:uniform"}], ids=str)
def test_the_badge_has_its_tick_where_looking_changed_nothing(
    opened: Callable[..., AppTest], asked: dict[str, str]
) -> None:
    app = opened(changes=asked.get("changes", ""))
    app.query_params.update(asked)
    app.run()
    assert not app.exception
    assert ("changed model" in " ".join(captions(app))) == ("changes" in asked)
    assert "outputs unchanged by looking</span> ✓" in badge(app)
    assert "bitwise equal" in badge(app)


@pytest.mark.parametrize("asked", [{}, {"method": "beam"}, {"changes": "cross.1.1:off"}], ids=str)
def test_the_badge_loses_its_tick_where_a_capture_changes_the_weights(
    opened: Callable[..., AppTest], asked: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened(changes=asked.get("changes", ""))
    monkeypatch.setattr("attenscope.capture.attention._make_output_recording_hook", scaling)
    app.query_params.update(asked)
    app.run()
    assert not app.exception
    assert "✓" not in badge(app)
    assert re.search(r"looking changed the outputs: log-probabilities moved by \d\.\de[+-]\d\d", badge(app))


def test_heads_that_are_off_are_said_and_switched_on_again(app: AppTest) -> None:
    app.query_params["changes"] = "cross.1.1:off"
    app.run()
    assert "Of the changed model: cross.1.1:off." in captions(app)
    app.button(key="undo").click().run()
    assert not app.exception
    assert "Of the changed model" not in " ".join(captions(app))


@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
def test_every_strategy_by_its_address(app: AppTest, method: str) -> None:
    app.query_params["method"] = method
    app.run()
    assert not app.exception
    assert words(app)[-1] == "</s>"


@pytest.mark.parametrize(
    ("early", "penalty", "said"),
    [
        ("false", "1.0", "could still enter this list, whatever length"),
        ("true", "2.0", "a length penalty of 2 a longer one might have"),
        ("true", "0.0", "could still enter this list, whatever length"),
    ],
)
def test_the_page_says_why_a_beam_search_ended(app: AppTest, early: str, penalty: str, said: str) -> None:
    app.query_params.update({"method": "beam", "early": early, "penalty": penalty})
    app.run()
    assert not app.exception
    assert said in " ".join(captions(app))


def test_a_given_translation_by_its_address(app: AppTest) -> None:
    app.query_params.update({"method": "given", "given": "der Hund."})
    app.run()
    assert not app.exception
    assert "Surprising" in " ".join(captions(app))
    app.text_input(key="given").set_value(" ").run()
    assert "Nothing surprised" in " ".join(captions(app))
    assert not app.info


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            {"branch": "x.y"},
            {"branch": "9999999"},
            {"seed": "1e999", "method": "sample"},
            {"without": "~~9999999"},
            {"changes": "cross.9:off"},
            {"step": "-1"},
        ),
        *({"cross": "77.1"}, {"own": "aligning"}, {"way": "1.2"}, {"step": "999999"}),
    ],
    ids=str,
)
def test_nonsense_in_the_address_is_left_out(app: AppTest, wrong: dict[str, str]) -> None:
    app.query_params.update(wrong)
    app.run()
    assert not app.exception
    assert words(app)[-1] == "</s>"


def test_a_head_the_model_does_not_have_gets_a_sentence(app: AppTest) -> None:
    app.session_state[CHANGES.key] = "cross.9.1:off"  # as Explore leaves it
    app.run()
    assert not app.exception
    assert "layers of cross attention" in app.info[0].value


def test_a_branch_is_a_link(app: AppTest, toy_translator: Translator) -> None:
    forced = toy_translator.encode("ein").ids[:-1]
    app.query_params.update({"branch": format_token_ids(forced), "step": "2"})
    app.run()
    assert not app.exception
    assert header(app)["start"] == 1
    assert words(app)[1 : 1 + len(forced)] == [toy_translator.tokenizer.token(one).strip() for one in forced]


def test_the_history_knows_what_makes_no_step_of_it_and_what_belongs_to_the_sentence(app: AppTest) -> None:
    found = [json.loads(one.proto.json) for one in app.run().get("bidi_component") if one.proto.json]
    (history,) = [one for one in found if isinstance(one, dict) and one.get("part") == "history"]
    assert history["scrubbed"] == ["step"]
    assert history["ofSentence"] == sorted(PAGES["decode"].sentence_parameter_names) != []
