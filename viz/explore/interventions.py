"""The switchboard: heads turned off, levelled or made like another, and what that does to the translation."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Literal, get_args

import streamlit as st

from model.interventions.changes import Change, HeadChange, InterventionError, parse, text_of
from viz.export.parts import Mark, Words
from viz.ui import cache, controls
from viz.ui.captions import caption, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model.experiments.ablation import Comparison, WordChange
    from model.trace import AttentionMap, Kind
    from model.translate import Translator

    from .run import Reading

AS_IT_IS = "as it is"
Pictured = Literal["changed", "unchanged"]
PICTURED: tuple[Pictured, ...] = get_args(Pictured)
REMARKS = {
    "off": "This head is off: it still computes these weights, but nothing it reads is passed on.",
    "uniform": "This head is made uniform: every key that it may attend to has the same weight.",
    "copy": "This head has the weights of another head; the values it reads are its own.",
}
TAGS = {"same": "span", "removed": "del", "added": "ins"}
MARKS: dict[str, Mark] = {"same": "same", "removed": "gone", "added": "new"}


def changes() -> tuple[Change, ...]:
    """The changes made, kept in the address as ``changes=cross.3.1:off``."""
    if "changes" not in st.session_state:
        try:
            st.session_state["changes"] = parse(st.query_params.get("changes", ""))
        except InterventionError as error:
            st.session_state["changes"] = ()
            st.info(plain(str(error)))
    made: tuple[Change, ...] = st.session_state["changes"]
    if made:
        st.query_params["changes"] = text_of(made)
    elif "changes" in st.query_params:
        del st.query_params["changes"]
    return made


def switch(attention: AttentionMap, layer: int, head: int) -> None:
    """What the chosen head, counted from 0, does: its own, nothing, the same for all keys, or what another does."""
    place = attention.kind, layer, head
    heads = (one for one in changes() if isinstance(one, HeadChange))
    own = [one for one in heads if (one.kind, one.layer, one.head) == place]
    options = {AS_IT_IS: None} | {
        _name(one): one
        for one in (
            HeadChange(attention.kind, layer, head, "off"),
            HeadChange(attention.kind, layer, head, "uniform"),
            *(
                HeadChange(attention.kind, layer, head, "copy", other)
                for other in range(attention.heads)
                if other != head
            ),
        )
    }
    key = f"switch-{attention.kind}-{layer}-{head}"
    st.session_state[key] = _name(own[0]) if own else AS_IT_IS

    def switched() -> None:
        kept = tuple(one for one in changes() if one not in own)
        chosen = options[st.session_state[key]]
        st.session_state["changes"] = (*kept, chosen) if chosen else kept

    st.selectbox("This head", list(options), key=key, width=200, on_change=switched)


def changed_heads(attention: AttentionMap) -> frozenset[tuple[int, int]]:
    """The heads of this kind, (layer, head) from 0, that do not run as they are."""
    made = (one for one in changes() if isinstance(one, HeadChange) and one.kind == attention.kind)
    return frozenset((one.layer, one.head) for one in made)


def translated_again(model: Translator, text: str, given: str = "") -> str:
    """With any change made: the new translation, word by word against the old one, and how likely the old one is.

    A given translation is read again instead. Returns the changes that the pictures show, "" for none.
    """
    made = changes()
    if not made:
        return ""
    try:
        found = cache.changed(model.name, text, text_of(made), given)
    except InterventionError as error:
        st.info(plain(str(error)))
        _undo_button()
        return ""
    with st.container(key="again"):
        if not given:
            st.html(f'<p dir="auto">{difference(found.words)}</p>')
        caption(_in_words(found))
        with st.container(key="pictured", horizontal=True, vertical_alignment="center"):
            pictured = _pictured()
            _undo_button()
    return text_of(made) if pictured == "changed" else ""


def said(reading: Reading) -> list[Words]:
    """The same for a saved file."""
    found = cache.changed(reading.model, reading.sentence, reading.changes, reading.given)
    marked = [(one.text, MARKS[one.change]) for one in found.words]
    text = "".join(one.text for one in found.words)
    words = [] if reading.given else [Words(text, "translation", marked=marked)]
    return [*words, Words(_in_words(found), "translation")]


def _in_words(found: Comparison) -> str:
    return f"With {', '.join(told(changes()))}. {found.sentence}"


def _pictured() -> Pictured:
    """Whether all that stands below is of the changed model or of the model as it is."""
    controls.in_address("pictures", PICTURED, "changed")
    return st.segmented_control(
        "Pictures show",
        PICTURED,
        required=True,
        key="pictures",
        format_func=lambda which: f"{which} model",
        **controls.KEPT,
    )


def off_in_words(kind: Kind, layer: int, head: int) -> str:
    """What has to be known of a picture of this head, counted from 0, where it does not run as it is."""
    for one in changes():
        if isinstance(one, HeadChange) and (one.kind, one.layer, one.head) == (kind, layer, head):
            return REMARKS[one.change]
    return ""


def difference(words: Sequence[WordChange]) -> str:
    """Words as HTML, what is gone struck through and what is new underlined."""
    return "".join(f"<{TAGS[one.change]}>{html.escape(one.text)}</{TAGS[one.change]}>" for one in words)


def _undo_button() -> None:
    st.button("Undo all changes", key="undo", type="tertiary", on_click=_undo)


def _undo() -> None:
    st.session_state["changes"] = ()


def _name(change: HeadChange) -> str:
    return f"as head {change.source + 1}" if change.source is not None else change.change


def told(made: Sequence[Change]) -> list[str]:
    """Changes in words, those of one layer together; what no control here makes, as its text form."""
    heads: dict[tuple[str, int, str], list[int]] = {}
    others = []
    for one in made:
        if isinstance(one, HeadChange):
            heads.setdefault((one.kind, one.layer + 1, _name(one)), []).append(one.head + 1)
        else:
            others.append(str(one))
    return [*(f"{kind} layer {layer} {_heads(found)} {done}" for (kind, layer, done), found in heads.items()), *others]


def _heads(numbers: Sequence[int]) -> str:
    """Which heads of a layer: head 3, heads 1 to 4 and 6."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    names = [name for run in runs for name in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    several = ", ".join(names[:-1])
    return f"heads {several} and {names[-1]}" if several else f"head{'s' * (len(numbers) > 1)} {names[-1]}"
