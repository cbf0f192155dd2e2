"""The pruning: what is left of the translations as heads are taken away, and one sentence at each point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from model.language.say import number, say, say_many, sentences
from model.translate import InputError

from ...components.curves import curves, packed
from ...components.versions import Version, versions, versions_data
from ...export.parts import Component, Words
from ...export.save import SavedView
from ...figures.heads.pruned import pruned
from ...figures.labels import signed
from ...ui import theme, widgets
from ...ui.addresses.heads import AWAY, LEFT_BY, LeftBy
from ...ui.captions import caption, plain
from ...ui.translation_changes import word_changes
from .. import cache, kept_texts

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.heads.pruning_curves import Course, Pruning
    from model.translate import Translator

    from ...figures.curves import Curves
    from ...figures.palette import Palette


def show(model: Translator, text: str, bar: DeltaGenerator) -> SavedView:
    found = cache.pruning(model.name, model.checkpoint.hash)
    away = [found.left[0] - one for one in found.left]
    with bar:
        by = widgets.segmented_control(say("Measure"), LEFT_BY)
    at = away.index(AWAY.hold(away))
    title = say("{measure} of {model} with fewer heads", measure=say(by), model=model.name)

    def drawn(palette: Palette) -> Curves:
        own, *random = (values_of(one, by) for one in (found.by_cost, *found.random))
        return pruned(away, own, np.array(random), at, say(by), title, palette)

    caption(kept_texts.pruned_on(found))
    with st.container(key="finding"):
        st.markdown(plain(kept_texts.pruning(found)))
    with st.container(key="picture"):
        curves(drawn(theme.palette()), key="pruning", on_point=lambda _, point: AWAY.set(away[point]))
    widgets.offer(st.select_slider, say("Heads taken away"), away, **AWAY.storage)
    written = _written(found, model, text)
    rows = rows_of(found, written) if written else []
    headings = say("BLEU"), say("log p a token")
    if rows:
        choose = lambda number: AWAY.set(away[number])  # noqa: E731
        versions(rows, headings, at, key="pruned", on_choice=choose)
    caption(say(kept_texts.PRUNING))
    said = sentences(kept_texts.pruning(found), kept_texts.pruned_on(found))
    return SavedView(
        f"heads-pruning-{model.name}",
        lambda palette: (
            Component("curves", packed(drawn(palette))),
            *([Component("versions", versions_data(rows, headings, at), "translation")] if rows else []),
            Words(said),
        ),
        lambda: numbers(found),
        title,
        {"model": model.name, "hash": model.checkpoint.hash, "sentence": text},
        width=1100,
    )


def values_of(course: Course, by: LeftBy) -> tuple[float, ...]:
    """The measure that is shown."""
    return course.bleu if by == "BLEU" else course.log_prob


def rows_of(found: Pruning, written: Sequence[str]) -> list[Version]:
    """The translation at each point, beside that of the whole model."""
    return [
        Version(
            say_many("{count} head", "{count} heads", heads),
            word_changes(written[0], one),
            (number(bleu, ".1f"), signed(log_prob)),
        )
        for heads, one, bleu, log_prob in zip(
            found.left, written, found.by_cost.bleu, found.by_cost.log_prob, strict=True
        )
    ]


def numbers(found: Pruning) -> pd.DataFrame:
    """A row a number of heads left, the columns by cost and of each random order."""
    columns: dict[str, Sequence[float]] = {}
    for name, course in (("cost", found.by_cost), *((f"random {n}", one) for n, one in enumerate(found.random, 1))):
        columns |= {f"bleu {name}": course.bleu, f"log_prob {name}": course.log_prob}
    return pd.DataFrame(columns, index=pd.Index(found.left, name="heads_left"))


def _written(found: Pruning, model: Translator, text: str) -> tuple[str, ...]:
    """The translation of the sentence at each point; none where it cannot be read, with the reason said."""
    try:
        return cache.pruned_translations(model.name, model.checkpoint.hash, text, found)
    except InputError as error:
        st.info(plain(str(error)))
        return ()
