"""The part Try of the page Masks: runs a model with another mask, draws what changes, and says it."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from attenscope.experiments.mask_trial import MaskName, MaskTrial, Perturbation, TrialResult, list_trial_masks
from attenscope.language import current_language, format_number, join_items, join_sentences, say, say_many, to_say
from attenscope.mask_tests.outcomes import Outcome
from attenscope.masks.rule import RuleError
from attenscope.runnable_model import InputError, RunnableModel
from attenscope.trace import Head, Kind, Sizes
from attenscope.viz.export.parts import Chart, Component, Part, Table, Words
from attenscope.viz.export.share_menu import SavedView, register_savable_view, view_fragment
from attenscope.viz.figures.figure_style import KIND_NAMES, Look, Palette, format_signed, quote_token, readable_token
from attenscope.viz.figures.masks import MaskPanel, plot_mask_panels, plot_perturbation
from attenscope.viz.masks import cache
from attenscope.viz.ui import cache as ui_cache
from attenscope.viz.ui import controls, style
from attenscope.viz.ui.address import NumberParameter
from attenscope.viz.ui.addresses.masks import (
    MASKS_EXCHANGED_TOKEN,
    MASKS_HIDDEN_WORD,
    MASKS_RULE,
    MASKS_TRIAL_EFFECT,
    MASKS_TRIAL_MASK,
    MASKS_TRIAL_PADDING,
    MASKS_TRIAL_RULE,
    MASKS_TRIAL_WINDOW,
)
from attenscope.viz.ui.captions import (
    compute_attention_difference,
    draw_caption,
    draw_model_run_badge,
    draw_translation_warnings,
    escape_message,
    mark_word_changes,
)
from attenscope.viz.ui.style import TableCell
from attenscope.viz.web.charts import draw_chart
from attenscope.viz.web.page_components import is_on_stage
from attenscope.viz.web.text_components import (
    TranslationVersion,
    build_translation_versions_data,
    draw_translation_versions,
)

TRIAL_STYLE = Path(__file__).parent / "trial.css"


def draw_trial_view() -> None:
    """Draw the sentence, then the mask; the badge says whether looking changes this model."""
    st.html(TRIAL_STYLE)
    chosen, text = controls.draw_sentence_and_model_controls()
    model = controls.require_ability(chosen, "mask trial")
    result = controls.require_translation(model, text)
    draw_model_run_badge(model, result, ui_cache.compute_observer_check(model.name, text))
    draw_translation_warnings(model, result, result)
    _draw_trial(model, text, result.trace.sizes)


@view_fragment
def _draw_trial(model: RunnableModel, text: str, sizes: Sizes) -> None:
    with st.container(key="tried-bar", horizontal=True, vertical_alignment="center"):
        if MASKS_TRIAL_EFFECT.hold() == "attention":
            place = controls.draw_attention_head_selector(sizes)
        else:
            place = controls.draw_attention_kind_selector(sizes), 0, 0
        kind = place[0]
        trial, pads = _choose_trial(model, text, kind)
    try:
        tried = cache.compute_output_under_mask(model.name, text, trial, pads)
    except (RuleError, InputError) as error:
        st.error(escape_message(str(error)))
        return
    draw_caption(_describe_mask(trial.name))
    rows = [
        _build_translation_version(say("own mask"), tried, own=True),
        _build_translation_version(say("this mask"), tried, own=False),
    ]
    draw_translation_versions(rows, list_version_headings(), -1, key="tried-versions", on_choice=lambda _: None)
    effect = describe_mask_effect(tried, translates=model.can("translate"))
    draw_caption(effect)
    with st.container(key="tried-views", horizontal=True, vertical_alignment="center"):
        view = controls.segmented_control(say("Look at"), MASKS_TRIAL_EFFECT)
        beside = st.container(key="tried-beside", horizontal=True, vertical_alignment="center")
    if view == "attention":
        shown = draw_attention_effect(model, tried, place)
    elif view == "one token":
        shown = draw_perturbation_effect(model, text, trial, pads, tried, beside)
    else:
        shown = draw_test_outcomes(model, text, kind, trial)
    facts = {"model": model.name, "sentence": text, "mask": f"{kind}: {trial.name}", "padding": str(pads)}
    register_savable_view(build_saved_view(trial, rows, shown, facts, effect))


def _choose_trial(model: RunnableModel, text: str, kind: Kind) -> tuple[MaskTrial, int]:
    """The mask and the number of padding tokens that the controls stand at."""
    masks = list_trial_masks(model, kind)
    if st.session_state.get(MASKS_TRIAL_MASK.key) not in (None, *masks):
        del st.session_state[MASKS_TRIAL_MASK.key]
    name = controls.selectbox(say("Mask"), MASKS_TRIAL_MASK, masks, width=330)
    trial = MaskTrial(kind, name)
    if name == "window":
        trial = MaskTrial(kind, name, width=_draw_number_input(say("Nearer than"), MASKS_TRIAL_WINDOW))
    if name == "one word hidden":
        trial = MaskTrial(kind, name, key=_choose_hidden_word(model, text))
    if name == "rule":
        built = MASKS_RULE.get() or MASKS_RULE.default
        rule = controls.text_input(say("where"), MASKS_TRIAL_RULE, built, width=260, label_visibility="collapsed")
        trial = MaskTrial(kind, name, rule=rule)
    return trial, _draw_number_input(say("Padding"), MASKS_TRIAL_PADDING) if model.model.pad_id is not None else 0


def _choose_hidden_word(model: RunnableModel, text: str) -> int:
    """The place of the hidden word, from 0."""
    tokens = model.encode(text).tokens
    places = range(1, len(tokens) + 1)
    name = lambda at: readable_token(tokens[at - 1])  # noqa: E731
    return (
        controls.selectbox_with_default(
            say("Word"), MASKS_HIDDEN_WORD, places, min(3, len(tokens)), format_func=name, width=190
        )
        - 1
    )


def _draw_number_input(label: str, of: NumberParameter[int]) -> int:
    return int(controls.number_input(label, of, width=170))


def _build_translation_version(what: str, tried: TrialResult, *, own: bool) -> TranslationVersion:
    one = tried.own if own else tried.trial
    moved = max(compute_attention_difference(tried.own.maps[kind], one.maps[kind]) for kind in one.maps)
    numbers = (format_signed(one.log_prob), format_signed(one.log_prob_of_target), format_number(moved, ".0%"))
    return TranslationVersion(what, mark_word_changes(tried.own.text, one.text), numbers)


# The views of what a tried mask does: to the attention, to every output when one token is another, and to the behaviour
# tests. Each draws itself and returns what can be saved of it.


MOVE_NAMES = {
    "leak": to_say("moves and should not"),
    "over": to_say("should move and does not"),
    "nan": to_say("not a number"),
    "blocked": to_say("still"),
}
PERTURBATION_HINT = to_say(
    "Each column: that token exchanged for another, and how far the next-token probabilities move, 0 to 1 (total "
    "variation). Compared to the last bit, so that nothing is nothing."
)


def draw_attention_effect(model: RunnableModel, tried: TrialResult, place: Head) -> TrialView:
    """Draw one head with the model's own mask and with the tried one."""
    kind, layer, head = place
    own, other = tried.own.maps[kind], tried.trial.maps[kind]
    sides = (("own mask", own), ("this mask", other))
    panels = [MaskPanel(say(side), one.weights[layer, head], own.mask) for side, one in sides]
    title = say("{kind} · layer {layer}, head {head}", kind=say(KIND_NAMES[kind]), layer=layer + 1, head=head + 1)
    rows, columns = own.rows("predicted"), own.key_tokens
    alt = say("{title}: with the model's own mask and with this one", title=title)

    def draw_figure(palette: Palette) -> go.Figure:
        return plot_mask_panels(panels, rows, columns, title, Look(palette))

    draw_chart(draw_figure(style.get_palette()), alt, key="tried-pair", on_cell=_ignore_click)
    fed = (
        say("Both while the right translation is fed, so that rows compare; rows are named by the token predicted.")
        if model.can("translate")
        else say(
            "Both while the right continuation is fed, so that rows compare; rows are named by the token predicted."
        )
    )
    said = join_sentences(fed, say("A row whose sum is 0 has no key left: {empty}.", empty=say(model.empty_rows)))
    draw_caption(said)

    def tabulate_weights() -> pd.DataFrame:
        cells = [
            {"query": readable_token(row), "key": readable_token(column)}
            | {name: float(one.weights[layer, head, i, j]) for name, one in sides}
            for i, row in enumerate(rows)
            for j, column in enumerate(columns)
        ]
        return pd.DataFrame(cells).set_index("query")

    return TrialView("attention", lambda palette: [Chart(draw_figure(palette), alt), Words(said)], tabulate_weights)


def draw_perturbation_effect(
    model: RunnableModel, text: str, trial: MaskTrial, pads: int, tried: TrialResult, beside: Any
) -> TrialView:
    """Draw which outputs move with one input, and the same for every input."""
    own = cache.compute_input_perturbation_under_mask(model.name, text, None, pads)
    other = cache.compute_input_perturbation_under_mask(model.name, text, trial, pads)
    inputs, sources = (*tried.source_tokens, *tried.decoder_tokens), len(tried.source_tokens)
    translates = model.can("translate")

    def name(at: int) -> str:
        token = readable_token(inputs[at])
        if at >= sources:
            return say("target {token}", token=token)
        return say("source {token}", token=token) if translates else say("prompt {token}", token=token)

    def number(place: int) -> str:
        return name(place - 1)

    with beside:
        first = sources + len(tried.decoder_tokens) // 2 if trial.kind == "decoder" else 0
        places = range(1, len(inputs) + 1)
        at = (
            controls.selectbox_with_default(
                say("Change"), MASKS_EXCHANGED_TOKEN, places, first + 1, format_func=number, width=290
            )
            - 1
        )
    title = say("Another token in place of {token}: grey with the own mask, in colour with this one", token=name(at))
    every = (
        say("What each output (down) depends on: source, then the target fed in (across)")
        if translates
        else say("What each output (down) depends on: prompt, then the target fed in (across)")
    )
    moves, pokes = say("How far each output moves"), say(PERTURBATION_HINT)

    def bars(palette: Palette) -> go.Figure:
        changes = own.change[:, at], other.change[:, at]
        return plot_perturbation(tried.target_tokens, *changes, other.allowed[:, at], title, palette)

    def pair(palette: Palette) -> go.Figure:
        panels = [MaskPanel(label, one.change, one.allowed, sums=False) for label, one in sides]
        look = Look(palette)
        return plot_mask_panels(
            panels, tried.target_tokens, inputs, every, look, MOVE_NAMES, pinned=at, divided=sources
        )

    sides = ((say("own mask"), own), (say("this mask"), other))
    outputs = tried.target_tokens
    said = [
        describe_moved_outputs(outputs, own, at, say("Own mask")),
        describe_moved_outputs(outputs, other, at, say("This mask")),
    ]
    draw_chart(bars(style.get_palette()), moves, key="poked-bars", on_cell=_ignore_click)
    for line in said:
        draw_caption(line)
    choose: Callable[[int, int], None] = lambda _, column: MASKS_EXCHANGED_TOKEN.set(column + 1)  # noqa: E731
    alone = is_on_stage()  # There the one token that is changed has all the room.
    if not alone:
        draw_chart(pair(style.get_palette()), every, key="poked-pair", on_cell=choose)
        draw_caption(join_sentences(pokes, say("Click a column to choose it.")))
    names = [readable_token(token) for token in tried.target_tokens]
    return TrialView(
        "one-token",
        lambda palette: [
            Chart(bars(palette), moves),
            *map(Words, said),
            *([] if alone else [Chart(pair(palette), every), Words(pokes)]),
        ],
        lambda: pd.DataFrame(other.change, names, [name(column) for column in range(len(inputs))]),
    )


def draw_test_outcomes(model: RunnableModel, text: str, kind: Kind, trial: MaskTrial) -> TrialView:
    """Draw the outcomes of the eight behaviour tests, on the model as it is and with the tried mask."""
    language = current_language()
    own, other = (cache.compute_mask_tests(model.name, text, kind, one, language) for one in (None, trial))
    rows, words = _build_test_rows(own, other), _describe_tests(kind)
    st.html(_render_test_table(rows))
    draw_caption(words)
    drawn = Table(_list_test_headings(), rows, say("Behaviour tests"))
    return TrialView("tests", lambda _: [drawn, Words(words)], lambda: _tabulate_test_outcomes(own, other))


def _ignore_click(_: int, __: int) -> None:
    """Do nothing: these pictures have no cells to choose."""


# The saved view: both translations, what the mask changed, and one view of it.


VERSION_HEADINGS = (to_say("log-probability"), to_say("of the right one"), to_say("attention moved"))


@dataclass(frozen=True, eq=False)
class TrialView:
    """What one view of a tried mask drew, to be saved."""

    name: str
    parts: Callable[[Palette], Sequence[Part]]
    numbers: Callable[[], pd.DataFrame]


def list_version_headings() -> list[str]:
    """What stands over the numbers of a translation."""
    return [say(one) for one in VERSION_HEADINGS]


def build_saved_view(
    trial: MaskTrial, rows: Sequence[TranslationVersion], shown: TrialView, facts: Mapping[str, str], effect: str
) -> SavedView:
    """Return both translations (`rows`), the `effect` in a sentence, and the view that is shown."""
    title = say("{kind}: {mask}", kind=say(KIND_NAMES[trial.kind]), mask=MASKS_TRIAL_MASK.label(trial.name))
    heads = list_version_headings()

    def build_parts(palette: Palette) -> list[Part]:
        texts = Component("versions", build_translation_versions_data(rows, heads, -1), "sentence")
        return [texts, Words(effect), *shown.parts(palette)]

    return SavedView(f"tried-mask-{shown.name}", build_parts, shown.numbers, title, facts, width=1100)


# The sentences: what each mask is, and what it changed.


MASK_EXPLANATIONS: dict[MaskName, str] = {
    "no mask": to_say("Every cell is open."),
    "no padding mask": to_say("Padding may be attended to. It changes nothing when there is none: add some."),
    "no causal mask": to_say("Positions see what comes after them, which the model never could in training."),
    "inverted": to_say("What may be seen is blocked and the rest is open."),
    "causal": to_say("A position sees only what stands before it or at it."),
    "own place blocked": to_say("triu with offset 0: nobody sees their own position, and the first row is empty."),
    "window": to_say("Only near positions are seen."),
    "one word hidden": to_say("One key is blocked for every query."),
    "added, not filled": to_say("The mask as zeros and ones, added: a tint in place of a wall."),
    "rule": to_say("A mask by a rule of the part Build: causal, padding, window 3, prefix 2, joined by and, or, not."),
}
NO_CAUSAL_MASK_NOTE = to_say(
    "A decoder that writes token by token has no future to see; the missing mask shows once several positions run at "
    "once, as here and in training."
)
TEST_EXPLANATIONS: dict[Kind, str] = {
    "encoder": to_say(
        "Run on the encoder, from embeddings to its last states, with the sentence and its first half, padded. "
        "Padding is left out of every comparison."
    ),
    "decoder": to_say(
        "Run on the decoder, from embeddings to logits, with the sentence and its first half, padded. Padding is left "
        "out of every comparison."
    ),
    "cross": to_say(
        "Run on the way from the source to the logits, with the sentence and its first half, padded. Padding is left "
        "out of every comparison. Too much blocking here shows in the attention, not in these tests."
    ),
}


def _describe_mask(name: MaskName) -> str:
    """What a mask is."""
    return join_sentences(say(MASK_EXPLANATIONS[name]), say(NO_CAUSAL_MASK_NOTE) if name == "no causal mask" else "")


def describe_mask_effect(tried: TrialResult, *, translates: bool) -> str:
    """What became of the translation, or of the continuation of a model that does not translate."""
    change = tried.trial.log_prob_of_target - tried.own.log_prob_of_target
    if change == 0:
        likely = say("Not a single probability moved.")
    elif change < 0:
        likely = say("The right one is {times} less likely under this mask.", times=format_likelihood_ratio(-change))
    else:
        likely = say("The right one is {times} more likely under this mask.", times=format_likelihood_ratio(change))
    return join_sentences(_describe_output_change(tried.own.ids == tried.trial.ids, translates), likely)


def _describe_output_change(same: bool, translates: bool) -> str:
    if translates:
        return say("The translation stays the same.") if same else say("The translation changes.")
    return say("The continuation stays the same.") if same else say("The continuation changes.")


def format_likelihood_ratio(nats: float) -> str:
    """How many times likelier, from a difference of log-probabilities, to two digits."""
    factor = float(np.exp(min(nats, 50)))
    if factor > 1e6:
        return say("more than a million times")
    if factor >= 1.1:
        return say("{factor:,g} times", factor=float(f"{factor:.2g}"))
    return say("{factor:.3f} times", factor=factor)


def describe_moved_outputs(outputs: Sequence[str], poked: Perturbation, at: int, name: str) -> str:
    """Which outputs move with one input, and which of them should not."""
    change, may = poked.change[:, at], poked.allowed[:, at]
    leaks = [quote_token(outputs[int(t)]) for t in np.flatnonzero((change > 0) & ~may)]
    count = int((change > 0).sum())
    if not count:
        return say("{name}: no output moves, not even in the last bit.", name=name)
    if not leaks:
        return say_many(
            "{name}: {count} of {outputs} outputs moves, and may.",
            "{name}: {count} of {outputs} outputs move, all of which may.",
            count,
            name=name,
            outputs=len(outputs),
        )
    return say_many(
        "{name}: {count} of {outputs} outputs moves; {leaks} of them should not: {tokens}.",
        "{name}: {count} of {outputs} outputs move; {leaks} of them should not: {tokens}.",
        count,
        name=name,
        outputs=len(outputs),
        leaks=len(leaks),
        tokens=_format_first_tokens(leaks),
    )


def _format_first_tokens(tokens: Sequence[str]) -> str:
    """The first eight, and how many are left."""
    if len(tokens) <= 8:
        return join_items(tokens)
    return say("{tokens} and {count} more", tokens=join_items(tokens[:8]), count=len(tokens) - 8)


def _list_test_headings() -> list[str]:
    """What stands over the columns of the tests."""
    return ["", say("What is tested"), say("The model as it is"), say("With this mask")]


def _build_test_rows(own: Sequence[Outcome], tried: Sequence[Outcome]) -> list[list[TableCell]]:
    """The eight tests, a row each: with the model's own mask and with the one tried."""
    return [
        [str(one.check), say(one.check.title), _build_outcome_cell(one), _build_outcome_cell(other)]
        for one, other in zip(own, tried, strict=True)
    ]


def _render_test_table(rows: Sequence[Sequence[TableCell]]) -> str:
    """The same as an HTML table."""

    def cell(one: TableCell) -> str:
        text, look = (one, "") if isinstance(one, str) else one
        return f'<td class="{look}">{html.escape(text)}</td>'

    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    head = "".join(f"<th>{html.escape(one)}</th>" for one in _list_test_headings())
    return f'<table class="checks"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _tabulate_test_outcomes(own: Sequence[Outcome], tried: Sequence[Outcome]) -> pd.DataFrame:
    """One test a row: what it said of the model as it is and with this mask."""
    rows = [
        {
            "test": a.code,
            "number": a.check.number,
            "what": a.check.title,
            "own mask": a.status,
            "this mask": b.status,
            "reason": b.reason,
        }
        for a, b in zip(own, tried, strict=True)
    ]
    return pd.DataFrame(rows).set_index("test")


def _build_outcome_cell(one: Outcome) -> TableCell:
    if one.status == "pass":
        words = say("pass (up to {difference:.1e})", difference=one.difference) if one.difference else say("pass")
        return f"✓ {words}"
    if one.status == "fault":
        return f"● {say('fault: {reason}', reason=one.reason)}", "fault"
    return say("not applicable: {reason}", reason=one.reason), "not"


def _describe_tests(kind: Kind) -> str:
    """What the tests look at, and what they cannot see."""
    return say(TEST_EXPLANATIONS[kind])
