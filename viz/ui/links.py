"""Links to other pages: callbacks that open one on the current sentence, head or word, and the card of a word."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from attenscope.experiments.ablation import HeadEffects, join_effects
from attenscope.language import say, to_say
from attenscope.runnable_model import Translation
from attenscope.trace import Head
from attenscope.viz import FOLDER
from attenscope.viz.streamlit_internals import unbind_query_parameters
from attenscope.viz.ui import cache
from attenscope.viz.ui.addresses.decode import (
    DECODE_BEGIN_WITH,
    DECODE_BRANCH,
    DECODE_BRANCH_PARAMETERS,
    DECODE_METHOD,
    DECODE_NEVER_WRITE,
    DECODE_STEP,
)
from attenscope.viz.ui.addresses.explore import EXPLORE_VIEW
from attenscope.viz.ui.addresses.page_registry import PAGES
from attenscope.viz.ui.addresses.shared import KIND
from attenscope.viz.ui.addresses.why import WHY_SCORE_CELL, WHY_VIEW, AttentionCell, WhyView
from attenscope.viz.ui.controls import set_given_translation, set_layer_and_head
from attenscope.viz.ui.open_trace import close_trace
from attenscope.viz.web.page_components import is_on_stage
from attenscope.viz.web.text_components import CardActions, draw_word_card, word_card_data

# Links to other pages: a callback stores the page to open, and the rerun that follows opens it.


_PAGE = "page to open"
_OWNER = "branch-of"


def switch_to_requested_page() -> None:
    """Switch to the page that a callback has asked for, if any; call it before drawing what would be left."""
    if page := st.session_state.pop(_PAGE, None):
        unbind_query_parameters()  # Streamlit refuses to leave a page whose widgets stand in the address.
        st.switch_page(FOLDER / "pages" / f"{page}.py", query_params=PAGES[page].previous_page_parameters())


def get_decode_branch_model_and_sentence() -> tuple[str, str] | None:
    """The model and the sentence that the branch of Decode in the address belongs to."""
    return st.session_state.get(_OWNER)


def set_decode_branch_model_and_sentence(model: str, text: str) -> None:
    """Say which model and sentence the branch belongs to."""
    st.session_state[_OWNER] = model, text


def open_in_decode(model: str, text: str, step: int, *, prefix: tuple[int, ...] = (), given: bool = False) -> None:
    """Open Decode at a step, from 0: greedily from a `prefix` of token ids on, or with the `given` translation.

    For callbacks, in which Streamlit cannot switch pages itself. The sentence, the model, the given translation and the
    changes are those of the session.
    """
    st.session_state[DECODE_METHOD.key] = "given" if given and not prefix else "greedy"
    st.session_state[DECODE_BEGIN_WITH.key] = st.session_state[DECODE_NEVER_WRITE.key] = ""
    for one in DECODE_BRANCH_PARAMETERS:
        one.reset()
    set_decode_branch_model_and_sentence(model, text)
    DECODE_BRANCH.set(prefix)
    DECODE_STEP.set(step + 1)
    st.session_state[_PAGE] = "decode"


def set_explore_head(head: Head) -> None:
    """Choose an attention, a layer and a head of Explore; for callbacks."""
    kind, layer, number = head
    st.session_state[KIND.key] = kind
    set_layer_and_head(layer, number)


def open_head_in_explore(head: Head) -> None:
    """Open Explore on the heatmap of a head of the model; for callbacks.

    The sentence and the pinned word come along.
    """
    close_trace()  # Before the head is chosen: the one that was seen before the trace comes back.
    set_explore_head(head)
    st.session_state[EXPLORE_VIEW.key] = "heatmap"
    st.session_state[_PAGE] = "explore"


def open_why(view: WhyView = "source words") -> None:
    """Open a view of Why; for callbacks. The sentence, what is read of it and the pinned word come along."""
    st.session_state[WHY_VIEW.key] = view
    st.session_state[_PAGE] = "why"


def open_why_for_translation(text: str, translation: str = "") -> None:
    """Open Why on a translation of a sentence, "" for the model's own; for callbacks."""
    set_given_translation(text, translation)
    open_why()


def open_why_on_score_cell(text: str, cell: AttentionCell) -> None:
    """Open Why on the score of a cell of the maps of a sentence; for callbacks."""
    WHY_SCORE_CELL.set(cell, of=text)
    open_why("score")


# The foot of a page: what to look at next.


NEXT_STEPS = {
    "decode": ("why", to_say("Next: why did it write this word? Leave a word out, and see")),
    "why": ("heads", to_say("Next: what each head does, over many sentences")),
    "heads": ("positions", to_say("Next: how does the model know the order of the words? Take it away")),
    "positions": ("training", to_say("Next: where do the heads come from? Watch them form")),
    "training": ("masks", to_say("Next: what goes wrong when a mask is wrong")),
    "masks": ("talk", to_say("Next: show it to others, as a talk")),
    "talk": ("explore", to_say("Next: begin with a sentence of your own")),
}
"""Page -> the page that comes next, and the line that leads there."""


def draw_next_page_link(page: str) -> None:
    """Draw the foot of a page: one line that leads on. The sentence and the model come along."""
    if is_on_stage():
        return
    following, line = NEXT_STEPS[page]
    known = PAGES[following].previous_page_parameters() if following in PAGES else None
    with st.container(key="next-step"):
        st.page_link(FOLDER / "pages" / f"{following}.py", label=f"{say(line)} →", query_params=known)


# The card of one word: what the model knew of it, and the links that lead on from it.


HeadBatch = tuple[Head, ...]


def draw_token_card(model: str, result: Translation, position: int, actions: CardActions, changes: str = "") -> None:
    """Draw the card of the token at `position`, from 0, of a translation by the model with the changes made."""
    switch_to_requested_page()
    with st.container(key="wordcard"):
        facts = cache.compute_word_facts(model, result.source, result.target_ids, changes)
        effects = compute_head_effects(model, result, changes)
        data = word_card_data(result.steps[position], facts, effects.strongest(position))
        draw_word_card(data, actions, key="word-card")


def compute_head_effects(model: str, result: Translation, changes: str = "") -> HeadEffects:
    """What switching off each head changes, with a progress bar while it is computed. Raises InterventionError."""
    ids = result.source_ids, result.target_ids
    passes = cache.plan_ablation_batches(model, *map(len, ids))
    return compute_effects_in_batches(passes, lambda at: cache.compute_ablation_batch(model, *ids, at, changes))


def compute_effects_in_batches(passes: Sequence[HeadBatch], effects_of: Callable[[int], np.ndarray]) -> HeadEffects:
    """Compute the effects of the heads pass by pass with a progress bar, and join them.

    `effects_of` returns the effects of the pass with a number, from 0.
    """
    bar, parts = st.empty(), []
    count = sum(map(len, passes))
    for at in range(len(passes)):
        if at:  # what is in the cache needs no bar, and the first pass says how long the others take
            bar.progress(at / len(passes), say("Switching off each of {count} heads …", count=count))
        parts.append(effects_of(at))
    bar.empty()
    return join_effects(passes, parts)
