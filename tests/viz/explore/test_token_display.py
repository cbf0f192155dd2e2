"""What is shown of a map, and the way back to what was captured."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from attenscope.text.words import RowLabel, select_tokens
from attenscope.trace import AttentionMap, AttentionTrace
from attenscope.viz.explore.texts import describe_attention_sink, describe_chat_role_bands
from attenscope.viz.explore.view_data import DisplayOptions, Scene, TokenDisplay, display_tokens, find_special_tokens
from attenscope.viz.figures.figure_style import Look

SOURCE = (" the", " old", "est", " house", ".", "</s>")
PREDICTED = (" das", " älte", "ste", " Haus", ".", "</s>")
FED = ("<s>", *PREDICTED[:-1])


@pytest.fixture
def cross() -> AttentionMap:
    weights = np.random.default_rng(0).dirichlet(np.ones(len(SOURCE)), (2, 3, len(FED))).astype(np.float32)
    return AttentionMap("cross", weights, FED, SOURCE, np.ones((len(FED), len(SOURCE)), bool), PREDICTED)


def test_as_captured_every_token_stands_for_itself(cross: AttentionMap) -> None:
    shown = display_tokens(cross, "predicted", merge=False, hide=False)
    assert shown.attention is cross
    assert [shown.row(position) for position in range(6)] == list(range(6))
    assert not shown.hides_keys
    assert not shown.joins_pieces


def test_hiding_keeps_the_weights_and_says_how_much_was_hidden(cross: AttentionMap) -> None:
    shown = display_tokens(cross, "predicted", merge=False, hide=True)
    np.testing.assert_array_equal(shown.attention.weights, cross.weights[:, :, :5, :5])
    assert shown.whole is cross
    assert shown.whole_rows == (0, 1, 2, 3, 4)
    assert shown.hides_keys
    assert shown.hidden_attention_share == pytest.approx(cross.weights[:, :, :5, 5].mean(), rel=1e-5)
    np.testing.assert_allclose(shown.sum_whole_rows(1, 2), np.ones(5), rtol=1e-5)
    assert shown.column(5) is None
    assert shown.row(5) is None


def test_hiding_by_the_token_fed_in_takes_out_another_row(cross: AttentionMap) -> None:
    shown = display_tokens(cross, "fed", merge=False, hide=True)
    assert shown.row(0) is None
    assert shown.row(5) == 4
    assert shown.whole_rows == (1, 2, 3, 4, 5)


@pytest.mark.parametrize(("rows", "special"), [("predicted", ((5,), (5,))), ("fed", ((0,), (5,)))])
def test_special_places_are_what_hiding_takes_away(cross: AttentionMap, rows: RowLabel, special: object) -> None:
    assert find_special_tokens(cross, rows) == special
    assert find_special_tokens(display_tokens(cross, rows, merge=False, hide=True).attention, rows) == ((), ())


def test_words_know_their_pieces(cross: AttentionMap) -> None:
    shown = display_tokens(cross, "predicted", merge=True, hide=True)
    assert shown.attention.key_tokens == (" the", " oldest", " house", ".")
    assert shown.keys == ((0,), (1, 2), (3,), (4,))
    assert shown.queries == ((0,), (1, 2), (3,), (4,))
    assert shown.column(2) == 1
    assert shown.joins_pieces
    np.testing.assert_allclose(shown.whole.weights.sum(-1), 1, rtol=1e-5)
    assert shown.whole.key_tokens == (" the", " oldest", " house", ".", "</s>")


def test_the_hidden_share_is_of_the_rows_that_are_shown(cross: AttentionMap) -> None:
    """With pieces merged a row is the mean of a word's pieces, so that a word of two pieces counts as one."""
    masses = cross.weights[..., 5].astype(np.float64)
    rows = [masses[..., 0], masses[..., [1, 2]].mean(-1), masses[..., 3], masses[..., 4]]
    shown = display_tokens(cross, "predicted", merge=True, hide=True)
    assert shown.hidden_attention_share == pytest.approx(np.mean(rows), rel=1e-6)
    assert shown.hidden_attention_share != pytest.approx(masses[..., :5].mean(), rel=1e-3)


@pytest.fixture
def decoder() -> AttentionMap:
    """One without a token that stands for no text, but for those of a chat, whose first token is a sink in head 2.1."""
    fed = ("<|im_start|>", " the", " old", "est", " house", "<|im_end|>")
    mask = np.tri(6, dtype=bool)
    weights = np.random.default_rng(1).dirichlet(np.ones(6), (2, 3, 6)).astype(np.float32) * mask
    weights[1, 0, :, 1] += 30
    weights *= mask
    predicted = (*fed[1:], " !")
    special = frozenset({"<|im_start|>", "<|im_end|>"})
    return AttentionMap(
        "decoder", weights / weights.sum(-1, keepdims=True), fed, fed, mask, predicted, special_tokens=special
    )


def test_what_is_special_is_what_the_tokenizer_says(decoder: AttentionMap) -> None:
    assert find_special_tokens(decoder, "fed") == ((0, 5), (0, 5))
    shown = display_tokens(decoder, "fed", merge=True, hide=True)
    assert shown.attention.key_tokens == (" the", " oldest", " house")
    assert shown.keys == ((1,), (2, 3), (4,))
    plain = dataclasses.replace(decoder, special_tokens=frozenset())
    assert find_special_tokens(plain, "fed") == ((), ())


def test_the_first_token_is_left_out_where_it_is_text(decoder: AttentionMap) -> None:
    text = select_tokens(decoder, range(1, 6), range(1, 6))
    shown = display_tokens(text, "fed", merge=False, hide=True, hide_first=True)
    assert shown.attention.key_tokens == (" old", "est", " house")
    assert shown.whole_rows == (1, 2, 3)  # The first row may attend to the first token alone.
    rows = text.weights[:, :, 1:4].astype(np.float64)
    assert shown.hidden_first_token_share == pytest.approx(rows[..., 0].sum() / rows.sum(), rel=1e-6)
    assert shown.hidden_attention_share - shown.hidden_first_token_share == pytest.approx(
        rows[..., 4].sum() / rows.sum(), abs=1e-6
    )
    assert (shown.hides_first, shown.has_hidden_special_keys) == (True, True)
    named = display_tokens(text, "predicted", merge=False, hide=False, hide_first=True)
    assert named.whole_rows == (0, 1, 2, 3, 4)  # The first row is named by the second token.
    assert (named.hides_first, named.has_hidden_special_keys) == (True, False)


def test_a_first_token_that_is_special_is_hidden_as_such(decoder: AttentionMap) -> None:
    for hide in (True, False):
        shown = display_tokens(decoder, "fed", merge=False, hide=hide, hide_first=True)
        assert not shown.hides_first
        assert shown.attention.key_tokens == display_tokens(decoder, "fed", merge=False, hide=hide).attention.key_tokens
    encoder = AttentionMap("encoder", *vars_of(select_tokens(decoder, range(1, 5), range(1, 5))))
    assert not display_tokens(encoder, "fed", merge=False, hide=True, hide_first=True).hides_first


def vars_of(one: AttentionMap) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...], np.ndarray]:
    return one.weights, one.query_tokens, one.key_tokens, one.mask


def test_a_sink_is_found_whether_it_is_shown_or_left_out(decoder: AttentionMap) -> None:
    rows = decoder.weights[1, 0, 1:5].astype(np.float64)
    found = display_tokens(decoder, "fed", merge=False, hide=True).find_head_sink(1, 0)
    assert found is not None
    sink, shown = found
    assert (sink.key, shown) == (1, True)
    assert sink.share == pytest.approx(rows[:, 1].sum() / rows.sum(), rel=1e-6)
    text = select_tokens(decoder, range(1, 5), range(1, 5))
    left_out = display_tokens(text, "fed", merge=False, hide=True, hide_first=True).find_head_sink(1, 0)
    assert left_out is not None
    assert (left_out[0].key, left_out[1]) == (0, False)


def make_scene(tokens: TokenDisplay, rows: RowLabel, trace: AttentionTrace) -> Scene:
    source: Any = dataclasses.make_dataclass("Source", ["trace"])(trace)
    display = DisplayOptions(Look(), rows, merge=False, hide=False, hide_first=False, numbers=False)
    return Scene(source, tokens, 1, 0, display)


@pytest.mark.parametrize("hide_first", [True, False])
def test_a_sink_is_named_with_what_it_holds(decoder: AttentionMap, hide_first: bool) -> None:
    text = select_tokens(decoder, range(1, 5), range(1, 5))
    tokens = display_tokens(text, "fed", merge=False, hide=True, hide_first=hide_first)
    rows = text.weights[1, 0, int(hide_first) :].astype(np.float64)
    said = describe_attention_sink(make_scene(tokens, "fed", AttentionTrace(decoder=text)))
    assert said.startswith(
        "The column “\u2068the\u2069”" + (", which is left out, is a sink" if hide_first else " is a sink")
    )
    assert f"{rows[:, 0].sum() / rows.sum():.0%} of the weight of this head's rows" in said
    other = dataclasses.replace(make_scene(tokens, "fed", AttentionTrace(decoder=text)), layer=0)
    assert describe_attention_sink(other) == ""


@pytest.mark.parametrize("rows", ["fed", "predicted"])
def test_a_row_has_the_role_of_the_token_that_names_it(decoder: AttentionMap, rows: RowLabel) -> None:
    settings = {"roles": [["user", 1, 3], ["assistant", 5, 7], ["<b>", 0, 1], ["user", 6, 99], "x"]}
    trace = AttentionTrace(decoder=decoder, settings=settings)
    scene = make_scene(display_tokens(decoder, rows, merge=False, hide=False), rows, trace)
    fed = ("", "user", "user", "", "", "assistant")
    assert scene.roles == (fed if rows == "fed" else (*fed[1:], "assistant"), fed)
    assert "(user, assistant)" in describe_chat_role_bands(scene.roles)
    plain = make_scene(scene.tokens, rows, AttentionTrace(decoder=decoder))
    assert (plain.roles, describe_chat_role_bands(plain.roles)) == (((), ()), "")


def test_no_position_is_in_no_row(cross: AttentionMap) -> None:
    assert display_tokens(cross, "fed", merge=True, hide=False).row(None) is None
