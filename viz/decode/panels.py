"""The parts of the page Decode below its controls, drawn from a decoding run, and the view that can be saved."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.decoding.beam import BeamTree
from attenscope.decoding.greedy_and_sampling import NO_CONSTRAINTS
from attenscope.experiments.mask_trial import CacheAgreement, measure_cache_agreement
from attenscope.interventions.changes import parse_changes
from attenscope.language import format_number, say, say_many, to_say
from attenscope.runnable_model import RunnableModel, Translation
from attenscope.viz.decode import controls, runs, texts
from attenscope.viz.decode.runs import DecodingRequest
from attenscope.viz.export.browser_model_file import list_live_files
from attenscope.viz.export.parts import Component, Part, Words
from attenscope.viz.export.share_menu import SavedView, collect_trace_facts
from attenscope.viz.fair_queue import COMPUTE_QUEUE
from attenscope.viz.figures.figure_style import Look, Palette, format_signed, readable_token
from attenscope.viz.ui import cache
from attenscope.viz.ui.addresses.shared import get_pin, toggle_pins
from attenscope.viz.ui.cache import queue_and_cache
from attenscope.viz.ui.captions import (
    compute_attention_difference,
    draw_caption,
    draw_translation_warnings,
    mark_word_changes,
)
from attenscope.viz.ui.controls import describe_given_translation, draw_model_changes_note
from attenscope.viz.ui.links import draw_token_card, open_head_in_explore, open_why_for_translation
from attenscope.viz.web.charts import beam_tree_data, draw_beam_tree
from attenscope.viz.web.maps import draw_switchboard
from attenscope.viz.web.page_components import is_on_stage
from attenscope.viz.web.players import PlayerStart, draw_decode_player, encode_decode_player
from attenscope.viz.web.text_components import CardActions, TranslationVersion, draw_translation_versions

DECODE_STYLE = Path(__file__).parent / "decode.css"
"""The style of Decode, added to that of all pages."""
MAX_GROWING_TREE_NODES = 200
"""Nodes up to which a running search is drawn: redrawing a larger tree at every poll blocks clicks in the browser."""
POLL_SECONDS = 0.2
"""Seconds between two looks at a running decoding."""
VERSIONS_NOTE = to_say(
    "Words that differ from the first version are marked. Attention: how differently cross-attention looked, 0 the "
    "same, 1 nothing in common, over the steps both have."
)
PROMPT_VERSIONS_NOTE = to_say(
    "Words that differ from the first version are marked. Attention: how differently attention to the prompt looked, 0 "
    "the same, 1 nothing in common, over the steps both have."
)


def draw_progress(run: runs.DecodingRun) -> None:
    """Draw what an unfinished decoding has written so far in place of its player, and a button to stop it."""

    @st.fragment(run_every=POLL_SECONDS)
    def watch() -> None:
        if not run.is_working:
            st.rerun()
        tree, result = run.progress.tree, run.progress.result
        count = len(result.steps) if result else tree.nodes[-1].position + 1 if tree and tree.nodes else 0
        with st.container(key="working"):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.caption(_progress_text(run, count))
                st.button(say("Stop"), key="stop", on_click=run.stop)
            if result is not None:
                st.html(f'<p class="so-far" dir="auto">{html.escape(result.text)}</p>')
            elif tree is not None and len(tree.nodes) <= MAX_GROWING_TREE_NODES:
                _draw_tree(tree, (), lambda _: None)

    watch()


def _progress_text(run: runs.DecodingRun, count: int) -> str:
    """What an unfinished decoding does: it waits, or has written so many tokens."""
    if run.waits and (before := COMPUTE_QUEUE.count_before(run.ticket)):
        return say("Waiting, {count} before you …", count=before)
    if not count:
        return say("Decoding …")
    return say_many("Decoding … {count} token so far", "Decoding … {count} tokens so far", count)


@queue_and_cache(128, is_long=True)
def compute_cache_agreement(
    name: str, source_ids: tuple[int, ...], target_ids: tuple[int, ...], changes: str = ""
) -> CacheAgreement:
    """Whether cached, full and teacher-forced attention of a translation agree; frozen, so visitors share it.

    `changes`, as format_changes writes them, are made to the model. Raises InterventionError.
    """
    return measure_cache_agreement(cache.load_translator(name), source_ids, target_ids, parse_changes(changes))


def draw_result(model: RunnableModel, run: runs.DecodingRun, look: Look, menu: DeltaGenerator | None) -> SavedView:
    """Draw the player of a finished decoding and the parts below it; return the view that can be saved.

    The switchboard of heads stands in the `menu`, where that is open.
    """
    path = controls.get_tree_path(model) if run.progress.tree else ()
    progress = runs.apply_tree_path(model, run.progress, run.request, path)
    result = progress.result
    assert result is not None
    if progress.tree:  # What a beam search is about stands first; the player shows the way that is chosen in it.
        show = lambda ids: controls.set_tree_path(ids, result)  # noqa: E731
        _draw_tree(progress.tree, path or result.target_ids, show)
        _draw_best_translations(model, run, progress.tree, path, show)
    _draw_player(result, look, run.request, f"{id(run)}-{path}")
    if run.request.changes:
        draw_model_changes_note(run.request.changes)
    _draw_pinned_card(model, run, result)
    if result.first_row:
        draw_caption(say(texts.PROMPT_NOTE))
    own = result if run.request.is_own and not run.stopped else cache.compute_translation(model.name, result.source)
    draw_translation_warnings(model, result, own)
    sentences = texts.describe_problems(result, run.stopped)
    if run.request.method == "given":
        sentences.append(describe_given_translation(result.steps))
    for sentence in sentences:
        draw_caption(sentence)
    if menu:
        with menu:
            _draw_head_switchboard(result, run.request)
    _draw_decoding_versions(model, run)
    if model.can("cache check"):
        agreement = compute_cache_agreement(model.name, result.source_ids, result.target_ids, run.request.changes)
        sentences.append(texts.agreement_text(agreement, changed=bool(run.request.changes)))
        draw_caption(sentences[-1])
    return build_saved_view(
        model, result, _find_player_start(result, run.request), look, progress.tree, sentences, run.request, path
    )


def _find_player_start(result: Translation, request: DecodingRequest) -> PlayerStart:
    return controls.build_player_start(result, controls.list_heads_off(request), ended=request.method != "greedy")


def _draw_player(result: Translation, look: Look, request: DecodingRequest, run: str) -> None:
    draw_decode_player(
        result,
        _find_player_start(result, request),
        look,
        key="decode-player",
        run=run,
        on_step=lambda at: controls.set_player_step(at, result),
        on_view=controls.set_player_heads,
        on_pick=lambda at, token: controls.set_controls_to_request_at_step(
            request.branch(result, at, token), at, result
        ),
        on_forbid=lambda at, token: controls.set_controls_to_request_at_step(request.forbid(token), at, result),
        on_word=lambda at: controls.toggle_word_card(result, at),
    )


def _draw_pinned_card(model: RunnableModel, run: runs.DecodingRun, result: Translation) -> None:
    """Draw the card of the pinned word."""
    at = result.find_step_of_row(get_pin(run.request.text, "target"))
    if at is None or not model.can("word facts"):
        return
    actions = CardActions(
        close=lambda: toggle_pins(run.request.text, {"target": at + result.first_row}),
        candidate=lambda token: controls.set_controls_to_request_at_step(
            run.request.branch(result, at, token), at, result
        ),
        head=open_head_in_explore,
        why=lambda: open_why_for_translation(run.request.text, _get_translation_for_why_page(model, run, result)),
    )
    draw_token_card(model.name, result, at, actions, run.request.changes)


def _get_translation_for_why_page(model: RunnableModel, run: runs.DecodingRun, result: Translation) -> str:
    """The translation that Why is to read; "" where it is the unchanged model's own."""
    if run.request.changes and run.request.method == "greedy" and run.request.constraints == NO_CONSTRAINTS:
        return ""
    own = cache.compute_translation(model.name, run.request.text)
    return "" if own.target_ids == result.target_ids else result.text


def _draw_tree(tree: BeamTree, chosen: tuple[int, ...], show: Callable[[tuple[int, ...]], None]) -> None:
    places = {(node.place, node.position): node.token_ids for node in tree.nodes}

    def handle_click(row: int, column: int) -> None:
        if (row, column) in places:
            show(places[row, column])

    st.subheader(say("Beam tree"), anchor=False)
    draw_beam_tree(tree, chosen, key="tree", on_node=handle_click)
    draw_caption(
        say(
            "A column is a step, its best candidate on top. Click a node, or go there with the arrow keys and press "
            "Enter, and the player shows the way to it."
        )
    )


def _draw_best_translations(
    model: RunnableModel,
    run: runs.DecodingRun,
    tree: BeamTree,
    path: tuple[int, ...],
    show: Callable[[tuple[int, ...]], None],
) -> None:
    """Draw the n best translations; the player shows the one that is chosen."""
    translations = [model.tokenizer.decode(hypothesis.token_ids) for hypothesis in tree.best]
    rows = []
    for rank, (text, hypothesis) in enumerate(zip(translations, tree.best, strict=True), start=1):
        length = len(hypothesis.token_ids)
        total = hypothesis.score * length**run.request.penalty
        numbers = format_signed(total), str(length), format_signed(hypothesis.score, 3)
        rows.append(
            TranslationVersion(say("best {rank}", rank=rank), mark_word_changes(translations[0], text), numbers)
        )
    paths = [hypothesis.token_ids for hypothesis in tree.best]
    current = paths.index(path) if path in paths else -1 if path else 0
    by_length = say("÷ length^{penalty:g}", penalty=run.request.penalty)
    headings = (say("log-prob."), say("tokens"), by_length)
    draw_translation_versions(rows, headings, current, key="best", on_choice=lambda at: show(paths[at]))
    if not run.stopped:
        draw_caption(texts.search_end_text(run.request))


def _draw_head_switchboard(result: Translation, request: DecodingRequest) -> None:
    """Draw the switchboard: the sentence is translated again without the heads that are turned off."""
    off = controls.list_heads_off(request)
    st.markdown(f"**{say('Heads off')}**")
    draw_switchboard(result.trace.sizes, off, key="switches", on_switch=controls.turn_heads_off)
    draw_caption(
        say("Turn heads off and the sentence is translated again without them; L1, L2 … switch a whole layer.")
    )


def _draw_decoding_versions(model: RunnableModel, current: runs.DecodingRun) -> None:
    """Draw all decodings of this sentence, compared with the first; choosing one sets its request again."""
    finished = runs.list_finished_runs(model, current.request.text)
    if len(finished) < 2:
        return
    results = [run.progress.result for run in finished]
    first = results[0]
    rows = [
        TranslationVersion(
            texts.version_name(run, model.tokenizer),
            mark_word_changes(first.text, result.text),
            (
                format_signed(result.log_prob),
                format_signed(result.log_prob / len(result.steps)),
                _format_attention_difference(first, result),
            ),
        )
        for run, result in zip(finished, results, strict=True)
        if first and result
    ]
    st.subheader(say("Versions"), anchor=False)
    headings = (say("log-prob."), say("a token"), say("attention"))
    choose = lambda at: controls.set_controls_to_request(finished[at].request)  # noqa: E731
    draw_translation_versions(rows, headings, finished.index(current), key="versions", on_choice=choose)
    draw_caption(say(VERSIONS_NOTE if model.can("translate") else PROMPT_VERSIONS_NOTE))


def _format_attention_difference(first: Translation, other: Translation) -> str:
    return (
        "" if first is other else format_number(compute_attention_difference(first.to_source, other.to_source), ".3f")
    )


# Saving: the whole player, the beam tree, and the steps as a table.


def build_saved_view(
    model: RunnableModel,
    result: Translation,
    start: PlayerStart,
    look: Look,
    tree: BeamTree | None,
    sentences: Sequence[str],
    request: DecodingRequest,
    path: tuple[int, ...],
) -> SavedView:
    """The player from `start` on, the tree of a beam search with its `path` (token ids), and the sentences below."""

    staged = is_on_stage()

    def build_parts(palette: Palette) -> list[Part]:
        # A scene shows the tree alone, which does not have the sentence in it as the player does.
        drawn: list[Part] = [Words(result.source, "sentence", "large")] if tree and staged else []
        drawn.append(
            Component(
                "decode_player",
                encode_decode_player(result, start, replace(look, palette=palette), "saved"),
                "decoding",
            )
        )
        if tree:
            chosen = path or result.target_ids
            drawn += [
                *([] if staged else [Words(say("Beam tree"), "tree", "heading")]),
                Component("beam_tree", beam_tree_data(tree, chosen), "tree"),
            ]
        return [*drawn, *map(Words, sentences)]

    facts = collect_trace_facts(
        result.trace, strategy=request.name, **({"changes": request.changes} if request.changes else {})
    )
    return SavedView(
        f"decode-{request.method}",
        build_parts,
        lambda: steps_table(result),
        say("Decoded step by step"),
        facts,
        list_live_files(model),
        width=1280,
        decoded={"target": result.target_ids, "constraints": {"forbidden": request.constraints.forbidden}},
    )


def steps_table(result: Translation) -> pd.DataFrame:
    """Every step with the token written, its probability and rank, and each candidate with its probability."""
    rows = []
    for step in result.steps:
        row = {"token": readable_token(step.token), "probability": math.exp(step.log_prob), "rank": step.rank}
        for at, one in enumerate(step.candidates, start=1):
            row |= {f"candidate {at}": readable_token(one.token), f"probability {at}": math.exp(one.log_prob)}
        rows.append(row)
    return pd.DataFrame(rows, index=pd.RangeIndex(1, len(rows) + 1, name="step"))
