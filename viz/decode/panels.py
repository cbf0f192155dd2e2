"""The parts of Decode below its player, each drawn from the progress of a run."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from model.decoding.constraints import FREE
from model.language.say import number, say, say_many, to_say

from ..components.beam_tree import beam_tree
from ..components.decode_player import PlayerStart, decode_player
from ..components.switchboard import switchboard
from ..components.versions import Version, versions
from ..components.word_card import CardActions
from ..export.save import SavedView
from ..figures.labels import signed
from ..turns import TURNS
from ..ui import cache
from ..ui.addresses.pins import pin_of, toggle_pins
from ..ui.captions import caption, hints
from ..ui.links import open_on_explore, open_why_of
from ..ui.teacher_forced import given_text
from ..ui.translation_changes import attention_difference, word_changes
from ..ui.word_card import word_card
from . import controls, runs, texts
from .saving import saved_view

if TYPE_CHECKING:
    from collections.abc import Callable

    from model.decoding.beam_tree import BeamTree
    from model.live.live_model import LiveModel
    from model.translate import Translation

    from ..figures.palette import Look
    from .request import Request

STYLE = Path(__file__).parent / "decode.css"
"""What this page looks like beyond the style of all pages."""
LARGEST_LIVE_TREE = 200
"""Nodes up to which a search under way is drawn: a browser that draws a larger tree at every look hears no click."""
POLL = 0.2
"""Seconds between two looks at a decoding under way."""
DIFFERENCE = to_say(
    "Words that differ from the first version are marked. Attention: how differently cross-attention looked, 0 the "
    "same, 1 nothing in common, over the steps both have."
)
DIFFERENCE_TO_PROMPT = to_say(
    "Words that differ from the first version are marked. Attention: how differently attention to the prompt looked, 0 "
    "the same, 1 nothing in common, over the steps both have."
)


def show_progress(run: runs.Run) -> None:
    """What an unfinished decoding has written so far, in the room of its player, and a button to stop it."""

    @st.fragment(run_every=POLL)
    def watch() -> None:
        if not run.working:
            st.rerun()
        tree, result = run.progress.tree, run.progress.result
        count = len(result.steps) if result else tree.nodes[-1].position + 1 if tree and tree.nodes else 0
        with st.container(key="working"):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.caption(_doing(run, count))
                st.button(say("Stop"), key="stop", on_click=run.stop)
            if result is not None:
                st.html(f'<p class="so-far" dir="auto">{html.escape(result.text)}</p>')
            elif tree is not None and len(tree.nodes) <= LARGEST_LIVE_TREE:
                _tree(tree, (), lambda _: None)

    watch()


def _doing(run: runs.Run, count: int) -> str:
    """What an unfinished decoding does: it waits, or has written so many tokens."""
    if run.waits and (before := TURNS.before(run.ticket)):
        return say("Waiting, {count} before you …", count=before)
    if not count:
        return say("Decoding …")
    return say_many("Decoding … {count} token so far", "Decoding … {count} tokens so far", count)


def show_result(model: LiveModel, run: runs.Run, look: Look) -> SavedView:
    """The player of a finished decoding, and under it all there is to say of it; returns what can be saved of it."""
    path = controls.path(model) if run.progress.tree else ()
    progress = runs.with_path(model, run.progress, run.request, path)
    result = progress.result
    assert result is not None
    _player(result, look, run.request, f"{id(run)}-{path}")
    _card(model, run, result)
    if result.first_row:
        caption(say(texts.PROMPT))
    own = result if run.request.is_own and not run.stopped else cache.translation(model.name, result.source)[0]
    hints(model, result, own)
    sentences = texts.problems(result, run.stopped)
    if run.request.method == "given":
        sentences.append(given_text(result.steps))
    for sentence in sentences:
        caption(sentence)
    if progress.tree:
        show = lambda ids: controls.choose_path(ids, result)  # noqa: E731
        _tree(progress.tree, path or result.target_ids, show)
        _best(model, run, progress.tree, path, show)
    _heads(result, run.request)
    _versions(model, run)
    if model.can("cache check"):
        agreement = cache.agreement(model.name, result.source_ids, result.target_ids, run.request.changes)
        sentences.append(texts.agreement_text(agreement, changed=bool(run.request.changes)))
        caption(sentences[-1])
    return saved_view(model, result, _start(result, run.request), look, progress.tree, sentences, run.request, path)


def _start(result: Translation, request: Request) -> PlayerStart:
    return controls.player_start(result, controls.heads_off(request))


def _player(result: Translation, look: Look, request: Request, run: str) -> None:
    decode_player(
        result,
        _start(result, request),
        look,
        key="decode-player",
        run=run,
        on_step=lambda at: controls.on_step(at, result),
        on_view=controls.on_view,
        on_pick=lambda at, token: controls.choose_at(request.branch(result, at, token), at, result),
        on_forbid=lambda at, token: controls.choose_at(request.forbid(token), at, result),
        on_word=lambda at: controls.on_word(result, at),
    )


def _card(model: LiveModel, run: runs.Run, result: Translation) -> None:
    """The card of the word that is pinned."""
    at = result.step_of(pin_of(run.request.text, "target"))
    if at is None or not model.can("word facts"):
        return
    actions = CardActions(
        close=lambda: toggle_pins(run.request.text, {"target": at + result.first_row}),
        candidate=lambda token: controls.choose_at(run.request.branch(result, at, token), at, result),
        head=open_on_explore,
        why=lambda: open_why_of(run.request.text, _given(model, run, result)),
    )
    word_card(model.name, result, at, actions, run.request.changes)


def _given(model: LiveModel, run: runs.Run, result: Translation) -> str:
    """The translation as Why reads it: typed out, unless the unchanged model writes it of itself."""
    if run.request.changes and run.request.method == "greedy" and run.request.constraints == FREE:
        return ""
    own = cache.translation(model.name, run.request.text)[0]
    return "" if own.target_ids == result.target_ids else result.text


def _tree(tree: BeamTree, chosen: tuple[int, ...], show: Callable[[tuple[int, ...]], None]) -> None:
    places = {(node.place, node.position): node.token_ids for node in tree.nodes}

    def clicked(row: int, column: int) -> None:
        if (row, column) in places:
            show(places[row, column])

    st.subheader(say("Beam tree"), anchor=False)
    beam_tree(tree, chosen, key="tree", on_node=clicked)
    caption(
        say(
            "A column is a step, its best candidate on top. Click a node, or go there with the arrow keys and press "
            "Enter, and the player shows the way to it."
        )
    )


def _best(
    model: LiveModel,
    run: runs.Run,
    tree: BeamTree,
    path: tuple[int, ...],
    show: Callable[[tuple[int, ...]], None],
) -> None:
    """The n best translations; choose one and the player shows it."""
    translations = [model.tokenizer.decode(hypothesis.token_ids) for hypothesis in tree.best]
    rows = []
    for rank, (text, hypothesis) in enumerate(zip(translations, tree.best, strict=True), start=1):
        length = len(hypothesis.token_ids)
        total = hypothesis.score * length**run.request.penalty
        numbers = signed(total), str(length), signed(hypothesis.score, 3)
        rows.append(Version(say("best {rank}", rank=rank), word_changes(translations[0], text), numbers))
    paths = [hypothesis.token_ids for hypothesis in tree.best]
    current = paths.index(path) if path in paths else -1 if path else 0
    by_length = say("÷ length^{penalty:g}", penalty=run.request.penalty)
    headings = (say("log-prob."), say("tokens"), by_length)
    versions(rows, headings, current, key="best", on_choice=lambda at: show(paths[at]))
    if not run.stopped:
        caption(texts.search_text(run.request))


def _heads(result: Translation, request: Request) -> None:
    """The switchboard: the translation is made again without the heads turned off."""
    off = controls.heads_off(request)
    sizes = {kind: (one.layers, one.heads) for kind, one in result.trace.maps.items()}
    with st.expander(say("Heads off"), expanded=bool(off), key="heads-off"):
        switchboard(sizes, off, key="switches", on_switch=controls.turn_off)
        caption(say("Turn heads off and the sentence is translated again without them; L1, L2 … switch a whole layer."))


def _versions(model: LiveModel, current: runs.Run) -> None:
    """All decodings of this sentence, compared with the first; choose one to come back to it."""
    finished = runs.finished_runs(model, current.request.text)
    if len(finished) < 2:
        return
    results = [run.progress.result for run in finished]
    first = results[0]
    rows = [
        Version(
            texts.version_name(run, model.tokenizer),
            word_changes(first.text, result.text),
            (signed(result.log_prob), signed(result.log_prob / len(result.steps)), _difference(first, result)),
        )
        for run, result in zip(finished, results, strict=True)
        if first and result
    ]
    st.subheader(say("Versions"), anchor=False)
    headings = (say("log-prob."), say("a token"), say("attention"))
    choose = lambda at: controls.choose(finished[at].request)  # noqa: E731
    versions(rows, headings, finished.index(current), key="versions", on_choice=choose)
    caption(say(DIFFERENCE if model.can("translate") else DIFFERENCE_TO_PROMPT))


def _difference(first: Translation, other: Translation) -> str:
    return "" if first is other else number(attention_difference(first.to_source, other.to_source), ".3f")
