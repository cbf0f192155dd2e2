"""The drawing of the Transformer in which attention is chosen: what its script is given."""

from __future__ import annotations

import pytest

from attenscope.trace import Kind
from attenscope.viz.web.maps import transformer_data

NAMES: dict[Kind, str] = {"encoder": "encoder", "cross": "cross", "decoder": "decoder"}


def test_words_enter_and_leave_a_whole_transformer() -> None:
    data = transformer_data({"encoder": 6, "cross": 4, "decoder": 4}, ("cross", 3, 0), NAMES, 8)
    assert [(one["kind"], one["layers"]) for one in data["stacks"]] == [("encoder", 6), ("cross", 4), ("decoder", 4)]
    assert [one["title"] for one in data["stacks"]] == [
        "Encoder self-attention",
        "Cross-attention",
        "Decoder self-attention",
    ]
    assert data["chosen"] == {"kind": "cross", "layer": 3, "head": 0}
    assert data["heads"] == 8
    assert (data["enters"], data["written"], data["leaves"]) == ("the sentence", "written so far", "next word")


@pytest.mark.parametrize("kinds", [("encoder",), ("decoder",), ("encoder", "cross")])
def test_what_is_no_whole_transformer_is_not_drawn_as_one(kinds: tuple[Kind, ...]) -> None:
    data = transformer_data(dict.fromkeys(kinds, 2), (kinds[0], 0, 0), NAMES, 0)
    assert [one["kind"] for one in data["stacks"]] == list(kinds)
    assert not any(data[name] for name in ("enters", "written", "leaves"))
