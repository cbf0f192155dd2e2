"""Two sentences: activations of the first put into the run of the second, and what comes back of the difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.attribution.target import AttributionError
from model.experiments.activation_patching import Contrast, MinimalPair, PatchMap, minimal_pairs
from model.language.say import say, sentences, to_say
from model.translate import InputError
from viz.components.chart import chart
from viz.export.parts import Chart, Columns, Part, Words
from viz.export.save import SavedView, facts_of
from viz.figures.labels import readable
from viz.figures.why.patching import patches
from viz.ui import widgets
from viz.ui.addresses.shared import SENTENCE
from viz.ui.addresses.why import CONTROL, PATCHED, SECOND
from viz.ui.captions import caption, plain

from .. import cache
from ..cache import ReadingKey
from ..texts import patching as texts

if TYPE_CHECKING:
    from viz.figures.palette import Palette

    from ..controls import Question

LANGUAGE = "en"
"""Of the pairs that come with the project."""
PHENOMENA = {
    "number": to_say("grammatical number"),
    "tense": to_say("tense"),
    "negation": to_say("negation"),
    "pronoun": to_say("pronoun"),
    "word order": to_say("word order"),
    "word sense": to_say("word sense"),
}
"""What differs in those pairs, as they name it, and its name on the page."""
NONE = -1
"""In the place of the number of a pair, from 0."""


def show(question: Question, palette: Palette) -> SavedView | None:
    """Draw the choice of the sentences, and the map of the pair beside that of its control."""
    second, same = _sentences(question)
    if not second.strip():
        st.info(say(texts.NO_SECOND))
        return None
    first = question.key.reading
    keys = [ReadingKey(first.model, text.strip(), "", first.changes) for text in (second, same)]
    pair = cache.contrast(first, keys[0])
    lead = texts.pair(pair)
    with st.container(key="lead"):
        caption(lead)
    patched = widgets.segmented_control(say("Patched"), PATCHED)
    found = cache.patch_map(first, keys[0], patched)
    control = _control(first, *keys) if same.strip() else say(texts.NO_CONTROL)
    names = column_names(pair, found)
    says = [texts.largest(found, names), say(texts.EXPLAINED)]
    titles = (
        say("Patched: “{sentence}”", sentence=second.strip()),
        say("Control: “{sentence}”", sentence=same.strip()),
    )

    def drawn(of: Palette) -> tuple[list[Part], list[Part]]:
        own = Chart(patches(found, names, titles[0], of), titles[0])
        if isinstance(control, str):
            return [own], [Words(control)]
        return [own], [Chart(patches(control, _columns(control), titles[1], of), titles[1])]

    with st.container(key="picture"):
        for column, parts, key in zip(
            st.columns(2, gap="large"), drawn(palette), ("patches", "control-map"), strict=True
        ):
            with column:
                _draw(parts[0], key)
    if not isinstance(control, str):
        says.insert(1, texts.control(control))
    caption(sentences(*says))

    def saved(of: Palette) -> list[Part]:
        return [*question.saved_texts, Words(lead), Columns(drawn(of), (0.5, 0.5)), *map(Words, says)]

    facts = facts_of(question.result.trace, control=same, changes=first.changes, **{"second sentence": second})
    name = f"why-two-sentences-{patched.replace(' ', '-')}"
    return SavedView(name, saved, lambda: numbers(found, names, control), titles[0], facts, width=1280)


def numbers(found: PatchMap, names: list[str], control: PatchMap | str) -> pd.DataFrame:
    """The share that comes back for each patch, a row a layer; below it that of the control."""
    tables = {"pair": (found, names)} | ({} if isinstance(control, str) else {"control": (control, _columns(control))})
    rows = []
    for of, (one, columns) in tables.items():
        for row, layer in enumerate(one.rows):
            listed = [f"{at + 1} {name}" for at, name in enumerate(columns)]
            shares = dict(zip(listed, one.fraction[row].tolist(), strict=True))
            rows.append({"of": of, "layer": layer, **shares, "all": one.whole_fraction[row]})
    return pd.DataFrame(rows)


def column_names(pair: Contrast, found: PatchMap) -> list[str]:
    """The columns of a map; a position at which the sources differ is named by both pieces."""
    names = _columns(found)
    if found.columns != pair.second_tokens:
        return names
    before = [readable(one) for one in pair.target.source_tokens]
    return [new if old == new else f"{old}/{new}" for old, new in zip(before, names, strict=True)]


def _columns(found: PatchMap) -> list[str]:
    return [readable(one) for one in found.columns]


def _sentences(question: Question) -> tuple[str, str]:
    """Draw the pairs that come with the project, and the fields of the second sentence and of the control."""
    reads = question.model.card.get("source_language", "")
    with st.container(key="pairs"):
        if reads == LANGUAGE:
            _pairs(question.result.source)
        with st.container(key="sentences", horizontal=True):
            second = widgets.text_input(say("Second sentence"), SECOND, placeholder=say(texts.SECOND_HINT))
            same = widgets.text_input(
                say("Control: a sentence with the same answer"), CONTROL, placeholder=say("may be empty")
            )
    return second, same


def _pairs(text: str) -> None:
    pairs = minimal_pairs()
    current = (text, st.session_state.get(SECOND.key, SECOND.value_in_address()))
    st.session_state["pair"] = next((at for at, one in enumerate(pairs) if (one.first, one.second) == current), NONE)

    def choose() -> None:
        if (at := st.session_state["pair"]) != NONE:
            take(pairs[at])

    widgets.offer(
        st.selectbox,
        say("Pair"),
        (NONE, *range(len(pairs))),
        key="pair",
        format_func=lambda at: say("choose one, or type your own") if at == NONE else name_of(pairs[at]),
        on_change=choose,
        width=560,
    )


def name_of(pair: MinimalPair) -> str:
    """A pair as the list names it."""
    return f"{say(PHENOMENA[pair.phenomenon])}: {pair.first} / {pair.second}"


def take(pair: MinimalPair) -> None:
    """Type a pair and its control into the fields, the first sentence into that of the page; for callbacks."""
    st.session_state[SENTENCE.key] = pair.first
    st.session_state[SECOND.key], st.session_state[CONTROL.key] = pair.second, pair.control


def _control(first: ReadingKey, second: ReadingKey, same: ReadingKey) -> PatchMap | str:
    """The map of the control, or why there is none."""
    try:
        return cache.control_map(first, second, same, PATCHED.get())
    except (AttributionError, InputError) as error:
        return str(error)


def _draw(part: Part, key: str) -> None:
    if isinstance(part, Chart):
        chart(part.figure, part.alt, key=key, on_cell=lambda _, __: None)
    elif isinstance(part, Words):
        st.info(plain(part.text))
