"""The parts of Decode below its player, each drawn from what a run has found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from ..components.chart import chart
from ..components.decode_player import Shown, decode_player
from ..components.switchboard import switchboard
from ..components.versions import Version, versions
from ..export.save import Saved
from ..figures.beam_tree import beam_tree, node_in_words
from ..figures.labels import signed
from ..ui import cache
from ..ui.captions import caption, hints
from ..ui.teacher_forced import given_in_words
from . import controls, remarks, runs
from .compare import attention_difference, changes
from .saving import saved

if TYPE_CHECKING:
    from model.decoding.beam_tree import BeamTree
    from model.translate import Translation, Translator

    from ..figures.palette import Look
    from .request import Request

STYLE = Path(__file__).parent / "decode.css"
"""What this page looks like beyond the style of all pages."""
POLL = 0.2
"""Seconds between two looks at a decoding under way."""


def live(one: runs.Run, look: Look) -> None:
    """The player of an unfinished decoding, following its last step, and a button to stop it."""

    one.watched = True

    @st.fragment(run_every=POLL)
    def watch() -> None:
        if not one.working:
            st.rerun()
        tree, result = one.found.tree, one.found.result
        if result is not None:
            _player(result, look, one.request, f"{id(one)}-{len(result.steps)}", len(result.steps) - 1)
        elif tree is not None:
            _tree(tree, look, ())
        count = 0 if result is None else len(result.steps)
        with st.container(key="working", horizontal=True, vertical_alignment="center"):
            st.caption(f"Decoding … {count} tokens so far" if count else "Decoding …")
            st.button("Stop", key="stop", on_click=one.stop)

    watch()


def finished(model: Translator, one: runs.Run, look: Look) -> Saved:
    """The player of a finished decoding, and under it all there is to say of it; returns what can be saved of it."""
    way = controls.way(model) if one.found.tree else ()
    found = runs.way(model, one.found, one.request, way)
    result = found.result
    assert result is not None
    followed = one.watched and "step" not in st.query_params
    _player(result, look, one.request, f"{id(one)}-{way}", len(result.steps) - 1 if followed else None)
    hints(model, result)
    said = remarks.astray(result, one.stopped)
    if one.request.method == "given":
        said.append(given_in_words(result.steps))
    for sentence in said:
        caption(sentence)
    if found.tree:
        _tree(found.tree, look, way or result.target_ids)
        _best(model, one, found.tree, way)
    _heads(result, one.request)
    _versions(model, one)
    agreement = cache.agreement(model.name, result.source_ids, result.target_ids, one.request.changes)
    agreed = remarks.agreement_in_words(agreement, changed=bool(one.request.changes))
    caption(agreed)
    return saved(result, _shown(result, one.request), look, found.tree, (*said, agreed), one.request, way)


def _shown(result: Translation, request: Request) -> Shown:
    cross, own = result.trace.cross, result.trace.decoder
    assert cross is not None
    assert own is not None
    return controls.shown(cross, own, controls.heads_off(request))


def _player(result: Translation, look: Look, request: Request, run: str, step: int | None = None) -> None:
    shown = _shown(result, request)
    decode_player(
        result,
        shown if step is None else replace(shown, step=step),
        look,
        key="decode-player",
        run=run,
        on_step=controls.on_step,
        on_view=controls.on_view,
        on_pick=lambda at, token: controls.show(request.going_on(result, at, token), at),
        on_forbid=lambda at, token: controls.show(request.without(token), at),
    )


def _tree(tree: BeamTree, look: Look, chosen: tuple[int, ...]) -> None:
    places = {(node.place, node.position): node.token_ids for node in tree.nodes}

    def clicked(row: int, column: int) -> None:
        if (row, column) in places:
            controls.show_way(places[row, column])

    st.subheader("Beam tree", anchor=False)
    chart(
        beam_tree(tree, look.palette, chosen),
        "The beam search as a tree",
        key="tree",
        on_cell=clicked,
        nodes=[(node.place, node.position, node_in_words(node)) for node in tree.nodes],
    )
    caption(
        "A column is a step, its best candidate on top. Click a node, or go there with the arrow keys and press Enter, "
        "and the player shows the way to it."
    )


def _best(model: Translator, one: runs.Run, tree: BeamTree, way: tuple[int, ...]) -> None:
    """The n best translations; choose one and the player shows it."""
    texts = [model.tokenizer.decode(found.token_ids) for found in tree.best]
    rows = []
    for number, (text, found) in enumerate(zip(texts, tree.best, strict=True), start=1):
        length = len(found.token_ids)
        total = found.score * length**one.request.penalty
        rows.append(
            Version(f"best {number}", changes(texts[0], text), (signed(total), str(length), signed(found.score, 3)))
        )
    ways = [found.token_ids for found in tree.best]
    current = ways.index(way) if way in ways else -1 if way else 0
    headings = ("log-prob.", "tokens", f"÷ length^{one.request.penalty:g}")
    versions(rows, headings, current, key="best", on_choice=lambda number: controls.show_way(ways[number]))
    if not one.stopped:
        caption(remarks.search_in_words(one.request))


def _heads(result: Translation, request: Request) -> None:
    """The switchboard: the translation is made again without the heads turned off."""
    off = controls.heads_off(request)
    sizes = {kind: (one.layers, one.heads) for kind, one in result.trace.maps.items()}
    with st.expander("Heads off", expanded=bool(off), key="heads-off"):
        switchboard(sizes, off, key="switches", on_switch=controls.turn_off)
        caption("Turn heads off and the sentence is translated again without them; L1, L2 … switch a whole layer.")


def _versions(model: Translator, current: runs.Run) -> None:
    """All decodings of this sentence, compared with the first; choose one to come back to it."""
    listed = runs.listed(model, current.request.text)
    if len(listed) < 2:
        return
    results = [one.found.result for one in listed]
    first = results[0]
    rows = [
        Version(
            remarks.version_name(one, model.tokenizer),
            changes(first.text, result.text),
            (signed(result.log_prob), signed(result.log_prob / len(result.steps)), _difference(first, result)),
        )
        for one, result in zip(listed, results, strict=True)
        if first and result
    ]
    st.subheader("Versions", anchor=False)
    headings = ("log-prob.", "a token", "attention")
    choose = lambda number: controls.show(listed[number].request)  # noqa: E731
    versions(rows, headings, listed.index(current), key="versions", on_choice=choose)
    caption(
        "Words that differ from the first version are marked. Attention: how differently cross-attention looked, "
        "0 the same, 1 nothing in common, over the steps both have."
    )


def _difference(first: Translation, other: Translation) -> str:
    assert first.trace.cross is not None
    assert other.trace.cross is not None
    return "" if first is other else f"{attention_difference(first.trace.cross, other.trace.cross):.3f}"
