"""Views in the address: what a text means, what is nonsense, and what the session and the address say to each other."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from attenscope import viz
from attenscope.viz.ui.address import (
    AddressPage,
    ChoiceParameter,
    NumberParameter,
    Parameter,
    boolean_parameter,
    choice_parameter,
    number_parameter,
    text_parameter,
)
from attenscope.viz.ui.addresses import decode, explore, masks, shared
from attenscope.viz.ui.addresses.page_registry import PAGES

VIZ = Path(viz.__file__).parent
OWN = ("page_setup.py", "streamlit_internals.py", "web/page_components.py", "ui/address.py")
"""Files that read the address itself: `present` is a window's, not a view's."""
APART = {VIZ / name for name in OWN}
SOURCES = sorted({*VIZ.rglob("*.py")} - APART)
EVERY = [one for known in PAGES.values() for one in known.parameters.values()]
NONSENSE = [
    "1e999",
    "-1e999",
    "nan",
    "inf",
    "9" * 309,
    "9" * 5000,
    "1" * 20_000,
    "٣" * 400,
    "<b>",
    "\0",
    "~",
    ".",
    ",",
    "1.2.x",
]


def test_no_parameter_of_a_view_is_named_as_one_of_the_stage() -> None:
    stage = {"present", "scene", "live", "kept", "contrast", "embed"}
    assert {one.name for one in EVERY} & stage == set()


def test_sliders_alone_make_no_steps_of_the_history() -> None:
    ignored = {name: page.history_ignored_parameter_names for name, page in PAGES.items()}
    assert {name: names for name, names in ignored.items() if names} == {
        "explore": ["step"],
        "decode": ["step"],
        "heads": ["away"],
        "training": ["at"],
    }


@pytest.mark.parametrize("wrong", NONSENSE, ids=lambda text: text[:8])
def test_no_text_raises_and_every_value_can_be_written_again(wrong: str) -> None:
    for one in EVERY:
        value = one.value_of(wrong)
        if isinstance(one, NumberParameter) and value is not None:
            assert math.isfinite(value)
            assert one.low <= value <= one.high
        if isinstance(one, ChoiceParameter):
            assert value in one.options
        if one.understands([wrong]) and value != one.default:
            assert one.value_of(one.write(value)) == value


@given(st.text())
def test_no_typed_text_raises(typed: str) -> None:
    for one in EVERY:
        one.value_of(typed)
        one.understands([typed])


def test_a_number_is_whole_where_its_bounds_are_and_stays_between_them() -> None:
    whole, real = number_parameter("n", 5, 1, 10), number_parameter("x", 0.5, 0.0, 2.0)
    assert [whole.value_of(text) for text in ("7", "7.0", "0", "11", "x", "")] == [7, 7, 5, 5, 5, 5]
    assert [real.value_of(text) for text in ("1", "1.5", "2.1", "-0.1")] == [1.0, 1.5, 0.5, 0.5]
    assert isinstance(whole.value_of("7.0"), int)


def test_a_choice_is_named_by_what_a_person_reads() -> None:
    one = choice_parameter("side", ("both", "source"), labels={"source": "encoder side"})
    assert [one.value_of(text) for text in ("encoder side", "source", "both")] == ["source", "both", "both"]
    assert one.default == "both"
    assert not one.understands(["source"])
    assert one.understands([""])


def test_text_is_limited_and_a_switch_is_true_or_false() -> None:
    assert text_parameter("t", longest=3).value_of("four") == ""
    assert [boolean_parameter("s").value_of(text) for text in ("true", "TRUE", "1", "")] == [True, True, False, False]


def test_of_several_texts_the_last_counts_and_of_a_list_any() -> None:
    assert not number_parameter("n", 1, 1, 9).understands(["2", "x"])
    assert PAGES["positions"].parameters["dims"].understands(["0", "x"])
    assert not PAGES["positions"].parameters["dims"].understands(["x", "1e999"])


@given(st.dictionaries(st.sampled_from(shared.PIN_PLACES), st.integers(0, 9999)), st.sets(st.integers(0, 99)))
def test_pins_and_heads_are_read_back(pins: dict[shared.PinPlace, int], heads: set[int]) -> None:
    assert shared.PIN.value_of(shared.format_pins(pins)) == pins
    assert explore.EXPLORE_OTHER_HEADS.value_of(explore.format_head_list(tuple(sorted(heads)))) == tuple(sorted(heads))


@given(st.frozensets(st.tuples(*[st.integers(0, 998)] * 3), max_size=masks.MAX_MASK_CELLS))
def test_cells_are_read_back(cells: frozenset[masks.MaskCell]) -> None:
    assert masks.MASKS_CHANGED_CELLS.value_of(masks.format_mask_cells(cells)) == cells


@pytest.mark.parametrize("known", PAGES.values(), ids=lambda known: known.name)
def test_no_two_parameters_of_a_visitor_share_a_place_in_the_session(known: AddressPage) -> None:
    keys: dict[str, Parameter[Any]] = {}
    for one in EVERY:
        assert keys.setdefault(one.key, one) is one
    assert set(known.view.options if known.view else ()) >= {
        view for one in known.parameters.values() for view in one.views
    }


def list_fixed_keys(code: str) -> Iterator[str]:
    """The keys under which widgets, menus and components keep their values; a container keeps none."""
    for call in (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func).rpartition(".")[2]
        keys = [one.value for one in call.keywords if one.arg == "key" and name != "container"]
        for key in (*keys, *(call.args[1:2] if name == "draw_menu" else [])):
            if isinstance(key, ast.Constant):
                yield str(key.value)


def test_no_widget_or_menu_has_the_place_of_a_parameter_in_the_session() -> None:
    """What is bound or held takes its key from its parameter; any other would be read as its value."""
    places = {one.key for one in EVERY}
    found = {str(path.relative_to(VIZ)): [*list_fixed_keys(path.read_text(encoding="utf-8"))] for path in SOURCES}
    assert "what-if" in found["decode/controls.py"]
    assert [(name, key) for name, keys in found.items() for key in keys if key in places] == []


def test_only_what_is_declared_stands_in_the_address() -> None:
    codes = {str(path.relative_to(VIZ)): path.read_text(encoding="utf-8") for path in SOURCES}
    assert [name for name, code in codes.items() if re.search(r"\bst\.query_params|bind=", code)] == []


def test_a_scene_is_what_the_shown_view_can_read() -> None:
    address = {
        "sentence": "a",
        "view": "links",
        "threshold": "0.2",
        "step": "3",
        "seed": "1",
        "present": "1",
        "pin": "source.1",
    }
    assert PAGES["explore"].extract_view_parameters(address) == {
        "sentence": "a",
        "view": "links",
        "threshold": "0.2",
        "pin": "source.1",
    }
    assert PAGES["decode"].extract_view_parameters(address) == {"sentence": "a", "step": "3", "pin": "source.1"}


def test_a_comparison_reads_what_the_view_that_it_shows_twice_can_read() -> None:
    of_views = [one for one in PAGES["explore"].parameters.values() if {*one.views} & {*explore.EXPLORE_SINGLE_VIEWS}]
    assert [one.name for one in of_views if "compare" not in one.views] == []
    assert len(of_views) > 5


def test_pins_a_contrast_and_a_cell_say_nothing_of_another_sentence() -> None:
    assert {one.name for one in EVERY if one.of_sentence} == {"pin", "against", "cell"}
    assert [PAGES[name].sentence_parameter_names for name in ("explore", "decode")] == [["pin"]] * 2


# In the app.


def shows(script: Callable[[], None], **address: str) -> AppTest:
    app = AppTest.from_function(script, default_timeout=30)
    app.query_params.update(address)
    app.run()
    assert not app.exception
    return app


def numbers() -> None:
    from attenscope.viz.ui import controls
    from attenscope.viz.ui.address import AddressPage, clean_address, number_parameter, text_parameter

    size = number_parameter("size", 3, 1, 9)
    clean_address(AddressPage.build("test", size, text_parameter("word", "a", longest=5)))
    controls.number_input("Size", size)
    controls.text_input("Word", text_parameter("word", "a", longest=5))


@pytest.mark.parametrize("wrong", ["1e999", "-1e999", "nan", "9" * 309, "0", "10", "x"])
def test_nonsense_is_gone_before_a_widget_reads_it(wrong: str) -> None:
    app = shows(numbers, size=wrong, word="overlong", other="kept")
    assert app.number_input(key="size").value == 3
    assert app.text_input(key="word").value == "a"
    assert dict(app.query_params) == {"other": "kept"}


def test_what_makes_sense_is_kept() -> None:
    app = shows(numbers, size="7", word="b")
    assert app.number_input(key="size").value == 7
    assert dict(app.query_params) == {"size": "7", "word": "b"}


def held() -> None:
    import streamlit as st

    from attenscope.viz.ui.address import AddressPage, clean_address, number_parameter

    stop = number_parameter("stop", 1, 1, 9)
    clean_address(AddressPage.build(st.session_state.get("page", "one"), stop))
    st.session_state["found"] = stop.hold(of=st.session_state.get("of"))
    st.button("next", key="next", on_click=lambda: stop.set(stop.get() + 1, of=st.session_state.get("of")))


def test_a_held_value_stands_in_the_address_until_it_is_the_default() -> None:
    app = shows(held, stop="4")
    assert app.session_state["found"] == 4
    app.button(key="next").click().run()
    assert app.session_state["found"] == 5
    assert app.query_params["stop"] == "5"
    app.query_params["stop"] = "8"
    app.run()
    assert app.session_state["found"] == 5, "the session comes first"
    app.session_state["stop"] = 1
    app.run()
    assert "stop" not in app.query_params


def test_a_held_value_belongs_to_its_owner() -> None:
    app = shows(held, stop="4")
    app.session_state["of"] = "another"
    app.run()
    assert app.session_state["found"] == 1
    assert "stop" not in app.query_params
    app.session_state["of"] = None
    app.run()
    assert app.session_state["found"] == 4


def pinned() -> None:
    import streamlit as st

    from attenscope.viz.ui.address import (
        AddressPage,
        clean_address,
        number_parameter,
        release_former_sentence,
        text_parameter,
    )

    sentence = text_parameter("sentence")
    pin, size = number_parameter("pin", 0, 0, 9, of_sentence=True), number_parameter("size", 0, 0, 9)
    page = AddressPage.build("test", sentence, pin, size)
    clean_address(page)
    release_former_sentence(page, sentence)
    if (text := sentence.value_in_address()).strip():
        st.session_state["found"] = pin.hold(of=text), size.hold()


def test_a_pin_of_a_sentence_of_which_nothing_was_shown_is_not_that_of_the_next() -> None:
    app = shows(pinned, sentence=" ", pin="4", size="5")
    assert app.query_params["pin"] == "4"
    app.query_params["sentence"] = "Do you know him?"
    app.run()
    assert app.session_state["found"] == (0, 5)
    assert "pin" not in app.query_params


def test_a_pin_of_an_opened_address_is_that_of_its_sentence() -> None:
    app = shows(pinned, sentence="Do you know him?", pin="4")
    assert app.session_state["found"] == (4, 0)
    app.query_params["sentence"] = "He reads a book."
    app.query_params["pin"] = "2"
    app.run()
    assert app.session_state["found"] == (0, 0)
    app.query_params["sentence"] = "Do you know him?"
    app.run()
    assert app.session_state["found"] == (4, 0)


def test_what_belongs_to_another_owner_stays_in_the_session() -> None:
    def script() -> None:
        import streamlit as st

        from attenscope.viz.ui.address import number_parameter

        stop = number_parameter("stop", 1, 1, 9)
        stop.hold(of="a sentence")
        stop.set(2, of="an opened trace")
        st.session_state["found"] = stop.get(of="a sentence"), stop.get(of="an opened trace")

    app = shows(script, stop="4")
    assert app.session_state["found"] == (1, 2)
    assert app.query_params["stop"] == "4"


def test_back_and_forward_bring_the_value_of_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    app = shows(held, stop="4")
    monkeypatch.setattr("attenscope.viz.ui.address.is_history_navigation", lambda: True)
    app.query_params["stop"] = "6"
    app.run()
    assert app.session_state["found"] == 6


def test_what_a_page_has_written_is_gone_on_the_next() -> None:
    def pages() -> None:
        import streamlit as st

        from attenscope.viz.ui.address import AddressPage, clean_address, number_parameter

        here = st.session_state.get("page", "one")
        own = number_parameter("step", 1, 1, 9, slot=f"step of {here}")
        shared = number_parameter("shared", 1, 1, 9)
        clean_address(AddressPage.build(here, own, shared))
        st.session_state["found"] = own.hold(), shared.hold()

    app = shows(pages, step="4", shared="5")
    assert app.session_state["found"] == (4, 5)
    app.session_state["page"] = "two"
    app.run()
    assert app.session_state["found"] == (1, 5)
    assert dict(app.query_params) == {"shared": "5"}
    app.session_state["page"] = "one"
    app.run()
    assert app.session_state["found"] == (4, 5)
    assert dict(app.query_params) == {"shared": "5", "step": "4"}


def test_what_a_callback_has_changed_goes_to_the_next_page_by_the_session_alone() -> None:
    def script() -> None:
        import streamlit as st

        from attenscope.viz.ui.address import AddressPage, number_parameter

        following = AddressPage.build("next", *(number_parameter(name, 1, 1, 9) for name in ("kept", "changed", "new")))
        st.session_state.update(kept=4, changed=6)
        st.session_state["found"] = following.previous_page_parameters()

    app = shows(script, kept="4", changed="5", new="7", other="8")
    assert app.session_state["found"] == {"kept": "4", "new": "7"}


def test_what_stands_where_an_address_says_nothing() -> None:
    """Links leave out what is at its default, so a default should never change."""
    found = {one.name: one.default for one in EVERY if isinstance(one, ChoiceParameter)}
    assert found == {
        **{"lang": "", "rows": "predicted", "scale": "sqrt", "colours": "indigo", "kind": "cross"},
        **{"view": "heatmap", "order": "layer", "pictures": "changed", "layout": "vertical", "threshold": "strongest"},
        **{"flow": "rollout", "with": "head", "compared": "heatmap", "with-kind": None, "method": "greedy"},
        **{"plot": "experiments", "table": "own", "form": "float64", "arranged": "interleaved", "measure": "cosine"},
        **{"side": "source", "move": "remove", "sides": "both", "training": "snapshots"},
        **{"why": "source words", "attribution": "leave-one-out", "patched": "encoder stream"},
        **{"heads-by": "share of the logit"},
        **{"heads": "habits", "across": "distance", "up": "entropy", "left": "BLEU", "tracked": "aligned_predicted"},
        **{"plane": "queries and keys", "coloured": "side"},
        **{"part": "judge", "from": "paste", "pad_side": "right", "written": "keep", "reader": "sdpa"},
        **{"mask_format": "float32", "mask_depth": 1, "mask_dropout": 0.1, "tried_mask": "no mask"},
        **{"tried": "attention", "convert_from": "torch_attn_mask", "convert_to": "sdpa", "convert_side": "right"},
    }


def test_pages_share_what_has_one_meaning_and_nothing_else() -> None:
    assert PAGES["explore"].parameters["changes"] is PAGES["decode"].parameters["changes"] is shared.CHANGES
    assert explore.EXPLORE_PIPELINE_STEP.name == decode.DECODE_STEP.name
    assert explore.EXPLORE_PIPELINE_STEP.key != decode.DECODE_STEP.key
    assert AddressPage.build("p", explore.EXPLORE_PIPELINE_STEP).parameters == {"step": explore.EXPLORE_PIPELINE_STEP}
