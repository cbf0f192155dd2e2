"""What is set of the notebook widget from Python: it is drawn at once, or refused and all stays as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from attenscope.trace import AttentionTrace
from tests.viz.fakes import FakeTranslator
from tests.viz.notebook.test_views import flat, unpacked

pytest.importorskip("anywidget")
from attenscope.viz.notebook.widget import AttentionWidget, show

TraitError = pytest.importorskip("traitlets").TraitError
RESULT = FakeTranslator().translate("one two three")  # cross: 4 rows and columns
DECODER_ALONE = AttentionTrace(decoder=RESULT.trace.decoder)
ENCODER = RESULT.trace.maps["encoder"]
UNEQUAL = replace(RESULT.trace, encoder=replace(ENCODER, weights=ENCODER.weights[:1]))  # of one layer, the others of 3


def drawn_pins(widget: AttentionWidget) -> list[Any]:
    """The pinned cell of the heatmap that the notebook was sent last, and what a screen reader is told of it."""
    header, body = unpacked(widget.content)
    (at,) = [part["at"] for part in flat(header["slide"]["parts"]) if part.get("name") == "heatmap"]
    heatmap, _ = unpacked(body[at[0] : at[0] + at[1]])
    return [heatmap["pinned"], "looks at" in heatmap["alt"]]


def values(widget: AttentionWidget) -> tuple[Any, ...]:
    return widget.view, widget.kind, widget.layer, widget.head, list(widget.pinned), widget.content


def test_a_cell_that_is_pinned_from_python_is_drawn() -> None:
    widget = show(RESULT, "heatmap")
    for pinned, is_row in (([2, 1], True), ([None, 3], False), ([None, None], False)):
        widget.pinned = pinned
        assert drawn_pins(widget) == [pinned, is_row]
    widget.pinned = [3, 3]
    widget.kind = "encoder"
    assert drawn_pins(widget) == [[None, None], False]


@pytest.mark.parametrize(
    ("what", "view", "name", "value", "says"),
    [
        (RESULT, "heatmap", "pinned", [99, 0], "The cross map has rows 0 to 3: 99 is none of them."),
        (RESULT, "heatmap", "pinned", [0, 4], "The cross map has columns 0 to 3: 4 is none of them."),
        (RESULT, "heatmap", "pinned", [-1, None], "The cross map has rows 0 to 3: -1 is none of them."),
        (RESULT, "heatmap", "pinned", ["a", 0], ""),
        (RESULT, "heatmap", "pinned", [1], ""),
        (RESULT, "heatmap", "layer", 3, "The cross map has layers 0 to 2: 3 is none of them."),
        (DECODER_ALONE, "links", "view", "joint", "There is no view 'joint': choose one of overview, heatmap, links"),
        (DECODER_ALONE, "links", "view", "decode", "needs the steps of a decoding"),
        (UNEQUAL, "joint", "layer", 1, "The encoder map has layers 0 to 0: 1 is none of them."),
    ],
)
def test_what_cannot_be_shown_is_refused_and_all_stays_as_it_was(
    what: Any, view: Any, name: str, value: Any, says: str
) -> None:
    widget = show(what, view)
    before = values(widget)
    with pytest.raises(TraitError) as refused:
        setattr(widget, name, value)
    assert says in str(refused.value)
    assert values(widget) == before
    widget.head = 1
    assert widget.content != before[-1]


def test_the_joint_view_is_offered_where_all_maps_have_the_head() -> None:
    widget = show(UNEQUAL, "heatmap", kind="cross", layer=1)
    assert "joint" not in unpacked(widget.content)[0]["views"]
    with pytest.raises(TraitError, match="There is no view 'joint'"):
        widget.view = "joint"
    widget.layer = 0
    assert "joint" in unpacked(widget.content)[0]["views"]
    widget.view = "joint"


@pytest.mark.parametrize("more", [{"view": "joint"}, {"view": "nothing"}, {"kind": "cross"}, {"layer": 3}], ids=str)
def test_nothing_is_shown_of_what_the_trace_has_not(more: dict[str, Any]) -> None:
    with pytest.raises(TraitError):
        show(DECODER_ALONE, **more)
