"""The controls of Why: the translation that is read, its word X, and the Y that it is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from model.attribution.target import AttributionError, Target, target_pieces
from model.interventions.changes import InterventionError, parse, text_of
from model.language.say import say
from model.text.words import SPECIAL_TOKENS, word, words
from model.translate import InputError

from ..components.tokens import line, tokens
from ..export.parts import Component, Part, Words
from ..figures.labels import quoted, readable
from ..traces.session import current
from ..ui import cache as shared
from ..ui import teacher_forced, widgets
from ..ui.addresses.pins import pin, pin_of
from ..ui.addresses.shared import CHANGES
from ..ui.addresses.why import AGAINST, ATTRIBUTION, CELL, SECOND, WHY
from ..ui.captions import caption, hints, plain
from ..ui.links import open_on_explore
from .cache import ReadingKey, WordKey, contrast
from .texts import word as texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from model.live.live_model import LiveModel
    from model.live.translation import Translation
    from model.trace import Head

STYLE = Path(__file__).parent / "why.css"
NOTHING = "—"


@dataclass(frozen=True, eq=False)
class Question:
    """The word that is explained: of which translation, by which model, rather than what."""

    model: LiveModel
    result: Translation
    key: WordKey
    target: Target

    @property
    def saved_texts(self) -> list[Part]:
        """What stands above the pictures of a saved file."""
        word = range(self.key.position, self.key.position + self.key.length)
        data = line(self.result.steps, self.key.position, word=word)
        return [Words(self.result.source, "sentence", "large"), Component("tokens", data, "translation")]

    @property
    def facts(self) -> dict[str, str]:
        """What is needed to ask again, besides the run."""
        return {"word": self.target.word, "rather than": self.target.against or "", "changes": self.key.reading.changes}


def method(names: Iterable[str]) -> str:
    """Draw the choice among the methods that there are for this model."""
    if st.session_state.get(ATTRIBUTION.key) not in (None, *names):
        del st.session_state[ATTRIBUTION.key]
    return widgets.selectbox(say("Method"), ATTRIBUTION, tuple(names), width=270)


def question(model: LiveModel, text: str) -> Question:
    """Draw the translation and the controls of the word, and return what is asked."""
    if current():
        caption(say(texts.OPENED_TRACE))
    above = st.container()
    with st.container(key="question", horizontal=True, vertical_alignment="center"):
        choice = st.container(key="rather", horizontal=True, vertical_alignment="center", width="content")
        forced = teacher_forced.given_toggle(text)
    own = shared.translation(model.name, text)[0]
    given = teacher_forced.given_translation(model.name, text, own.text) if forced else ""
    reading = ReadingKey(model.name, text, given, _changes(model, text, given))
    result = shared.reading(*reading)
    split = _split_row(result)
    pinned = pin_of(text, "target") if split is None else split
    compared = _compared(reading)
    group = _piece(compared) if compared else chosen_word(result.target_tokens, pinned)
    with above:
        shown = pinned if pinned is not None and pinned in group else group.start
        pin_word = None if compared else lambda at: choose_word(text, at)
        tokens(result.steps, shown, key="translation", on_pin=pin_word, keep=True, word=group)
    hints(model, result, own)
    if compared is None and pinned is not None and pinned not in group:
        caption(texts.no_piece(pinned, len(result.steps)))
    with choice:
        target = _fixed(compared) if compared else _target(model, result, group)
    return Question(model, result, WordKey(reading, group.start, len(group), target.against_id), target)


def _compared(reading: ReadingKey) -> Target | None:
    """The piece at which the translations of two sentences part, where the view compares two that can be compared."""
    second = SECOND.get().strip()
    if WHY.get() != "two sentences" or not second:
        return None
    try:
        return contrast(reading, ReadingKey(reading.model, second, "", reading.changes)).target
    except (AttributionError, InputError):  # The view says why.
        return None


def _split_row(result: Translation) -> int | None:
    """The row of the decoder whose score the view splits, where one was chosen: it writes the piece to explain."""
    cell = CELL.get(of=result.source) if WHY.get() == "score" else None
    return None if cell is None or cell.kind == "encoder" or cell.query >= len(result.steps) else cell.query


def _piece(target: Target) -> range:
    return range(target.position, target.position + len(target.tokens))


def _fixed(target: Target) -> Target:
    """Say which piece is compared with which: the two sentences have decided that."""
    caption(say("Why {word} rather than {other}", word=quoted(target.word), other=quoted(target.against or "")))
    return target


def chosen_word(tokens: Sequence[str], pinned: int | None) -> range:
    """The pieces of the word of the pinned piece; of the longest word where none of these pieces is pinned."""
    groups = words(tokens)
    if pinned is not None and pinned < len(tokens):
        return next(group for group in groups if pinned in group)
    named = [group for group in groups if tokens[group.start] not in SPECIAL_TOKENS]
    return max(named or groups, key=lambda group: len(word([tokens[at] for at in group]).strip()))


def choose_word(text: str, position: int) -> None:
    """Explain the word of the piece at a position, from 0; for callbacks."""
    pin(text, {"target": position})
    CELL.reset()


def open_head(question: Question, head: Head) -> None:
    """Show a head on Explore with the word pinned; for callbacks."""
    pin(question.result.source, {"target": question.key.position})
    open_on_explore(head)


def _changes(model: LiveModel, text: str, given: str) -> str:
    """The changes of the address, said on the page, in the one way of writing them; none where they make no sense."""
    try:
        changes = text_of(parse(CHANGES.hold()))
        if changes:
            shared.with_changes(model.name, text, changes, given)
    except InterventionError as error:
        st.info(plain(str(error)))
        changes = ""
    if CHANGES.get():
        with st.container(key="changed", horizontal=True, vertical_alignment="center"):
            caption(texts.changes(changes))
            st.button(say("Undo all changes"), key="undo", type="tertiary", on_click=CHANGES.reset)
    return changes


def _target(model: LiveModel, result: Translation, group: range) -> Target:
    """Draw the choice of Y, and return X compared with it; with nothing where it cannot be compared."""
    owner = (result.source, result.target_ids[: group.stop])
    chosen = AGAINST.hold(of=owner)
    step = result.steps[group.start]
    candidates = {readable(one.token): one.token_id for one in step.candidates if one.token_id != step.token_id}
    name = word(result.target_tokens[group.start : group.stop])
    caption(say("Why {word} rather than", word=quoted(name)))
    against: str | int | None = None
    if chosen:
        against = candidates.get(chosen, chosen)
    options = [NOTHING, *candidates, *([chosen] if chosen and chosen not in candidates else [])]
    st.session_state["rather-than"] = chosen or NOTHING

    def choose() -> None:
        found = (st.session_state["rather-than"] or "").strip()
        AGAINST.set("" if found == NOTHING else found[: AGAINST.longest], of=owner)

    widgets.offer(
        st.selectbox,
        say("Rather than"),
        options,
        key="rather-than",
        accept_new_options=True,
        on_change=choose,
        width=190,
        label_visibility="collapsed",
        placeholder=say("a piece"),
    )
    try:
        return target_pieces(model, result, group.start, len(group), against)
    except AttributionError as error:
        st.info(plain(str(error)))
        return target_pieces(model, result, group.start, len(group))
