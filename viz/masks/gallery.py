"""The part Gallery of the page Masks: every fault, broken beside fixed, run as it is shown."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from attenscope.gallery.exhibits import EXHIBITS, Exhibit, ExhibitSide, read_function_and_helper_sources, run_exhibit
from attenscope.gallery.reported_padding_bugs import REPORTS
from attenscope.language import SOURCE_LANGUAGE, join_items, join_sentences, say, say_many, use_language
from attenscope.mask_tests.outcomes import STATUS_NAMES
from attenscope.masks.fault_catalogue import FAULTS
from attenscope.masks.findings import Diagnosis
from attenscope.viz.export.parts import Chart, Columns, Part, Words
from attenscope.viz.export.share_menu import SavedView, register_savable_view, view_fragment
from attenscope.viz.figures.figure_style import Look, Palette
from attenscope.viz.figures.masks import MaskPanel, plot_mask_panels
from attenscope.viz.masks.gallery_texts import ENTRY_TEXTS, EntryText
from attenscope.viz.ui import controls, style
from attenscope.viz.ui.addresses.masks import MASKS_FAULT, MASKS_PART, MASKS_SYMPTOM
from attenscope.viz.ui.captions import draw_caption, escape_markdown
from attenscope.viz.web.charts import draw_chart
from attenscope.viz.web.page_components import is_presenting

# One entry of the gallery: its two sides, what the diagnosis says of each, and the line that mends it.


RANK_SIGNS = {"error": "●", "warning": "▲", "likely": "?", "info": "○"}


def run_and_draw_entry(entry: Exhibit, about: EntryText) -> None:
    """Run both sides and draw them."""
    broken, fixed = run_exhibit(entry)
    with st.container(key="fault-lead"):
        st.markdown(f"### {escape_markdown(about.title)}")
        st.markdown(escape_markdown(about.how))
        shows = say("Shows as: {symptoms}.", symptoms=reduce(_join_symptoms, about.symptoms)) if about.symptoms else ""
        draw_caption(join_sentences(shows, say("Met: {met}", met=about.met)))
    figure = plot_largest_difference_map(entry, broken, fixed, Look(style.get_palette()))
    draw_chart(figure, _make_alt_text(about), key="fault-pair", on_cell=lambda _, __: None)
    draw_caption(describe_picture_axes(entry))
    columns = st.columns(2, gap="medium")
    for column, side, function in zip(columns, (broken, fixed), (entry.broken, entry.fixed), strict=True):
        with column:
            st.markdown("  \n".join(map(escape_markdown, list_verdict_lines(side))))
            if not is_presenting():
                st.code(read_function_and_helper_sources(function)[0], language="python", wrap_lines=True)
    if not is_presenting():
        _draw_fix(entry, about)
    register_savable_view(_build_saved_view(entry, about, broken, fixed))


OPENING = "future-visible"
"""The fault with which the page begins: a mask that lets each word read the one that it is to write."""


def draw_mask_introduction() -> None:
    """Draw what a mask is, and one that is broken beside its fixed twin, with what the diagnosis says of it."""
    entry, about = ENTRIES[OPENING], get_entry_text(OPENING)
    broken, fixed = run_exhibit(entry)
    with st.container(key="opening"):
        st.markdown(f"### {escape_markdown(about.title)}")
        st.markdown(escape_markdown(describe_mask_introduction(broken, fixed)))
        figure = plot_largest_difference_map(entry, broken, fixed, Look(style.get_palette()))
        draw_chart(figure, _make_alt_text(about), key="opening-pair", on_cell=lambda _, __: None)
        why = say("Why this happens, and the line that mends it")
        if st.button(why, key="open-fault", type="tertiary", on_click=_open_introduction_entry):
            st.rerun()  # The parts of the page stand outside of the fragment that this is drawn in.


def describe_mask_introduction(broken: ExhibitSide, fixed: ExhibitSide) -> str:
    """What a mask is for, and how much of the attention in the picture goes where the mask should have let none go."""
    place = find_largest_difference(broken, fixed)
    words = broken.query_keep[place[0]]
    astray = np.where(broken.meant, 0.0, broken.weights)[place].sum(-1)[words]
    return say(
        "A mask says which words may look at which. On the left it was forgotten that a word may not see those after "
        "it: {share:.0%} of the attention of its {count} words goes to words that are still to be written. On the "
        "right it is mended.",
        share=float(astray.mean()),
        count=len(astray),
    )


def _open_introduction_entry() -> None:
    MASKS_PART.set("gallery")
    MASKS_FAULT.set(OPENING)


def _join_symptoms(one: str, other: str) -> str:
    return say("{one}; {other}", one=one, other=other)


def list_verdict_lines(side: ExhibitSide) -> list[str]:
    """What the diagnosis, or a test of the running model, says of one side, a line each."""
    lines = [f"torch: {side.error}"] if side.error else []
    lines += _list_finding_lines(side.diagnosis) if side.diagnosis else []
    for outcome in side.outcomes:
        sign = {"pass": "✓", "fault": "●"}.get(outcome.status, "○")
        said = {"test": outcome.check, "status": say(STATUS_NAMES[outcome.status]), "reason": outcome.reason}
        lines.append(f"{sign} {say('{test} {status}: {reason}', **said)}")
    return lines


def describe_picture_axes(entry: Exhibit) -> str:
    """How to read the pictures."""
    if entry.recipe is None:
        return say(
            "Rows are outputs, columns inputs: how much each output depends on each input, by its gradient, the "
            "largest of a row being 1."
        )
    return say("Rows are queries, columns keys; beside each row stands its sum. Both run on the same random scores.")


def _draw_fix(entry: Exhibit, about: EntryText) -> None:
    st.markdown(f"**{say('The fix')}**")
    st.code(_find_fix_code(entry, about), language="python", wrap_lines=True)
    helpers = "\n\n".join(
        dict.fromkeys(
            part
            for part in (
                read_function_and_helper_sources(entry.broken)[1],
                read_function_and_helper_sources(entry.fixed)[1],
            )
            if part
        )
    )
    with st.expander(say("What the code above uses")):
        draw_caption(
            say(
                "x is a batch: x.scores (batch, heads, queries, keys) before the mask, x.keep and x.key_keep True at "
                "real tokens, x.causal True on and below the diagonal, x.allowed where both are."
            )
            if entry.recipe
            else say(
                "states are hidden states (batch, tokens, width); allowed and real are True where a query may attend."
            )
        )
        if helpers:
            st.code(helpers, language="python")


def _find_fix_code(entry: Exhibit, about: EntryText) -> str:
    return about.fix or FAULTS[entry.code].fix


def _list_finding_lines(diagnosis: Diagnosis) -> list[str]:
    lines = [
        f"{RANK_SIGNS[finding.rank]} {say('{code}: {finding}', code=finding.code, finding=finding.message)}"
        for finding in diagnosis.findings
    ]
    return [*([f"✓ {say('sound')}"] if diagnosis.sound else []), *lines]


def _make_alt_text(about: EntryText) -> str:
    return say("{title}: broken beside fixed", title=about.title)


def _build_saved_view(entry: Exhibit, about: EntryText, broken: ExhibitSide, fixed: ExhibitSide) -> SavedView:
    """Both sides, the verdicts on them and the line that mends the fault."""

    def build_parts(palette: Palette) -> list[Part]:
        return [
            Words(about.title, "verdict", "heading"),
            Words(about.how, "verdict"),
            Chart(plot_largest_difference_map(entry, broken, fixed, Look(palette)), _make_alt_text(about)),
            Words(describe_picture_axes(entry)),
            Columns(
                tuple([Words(line, "verdict") for line in list_verdict_lines(side)] for side in (broken, fixed)), (1, 1)
            ),
            Words(
                say("The fix: {code}", code=_find_fix_code(entry, about))
            ),  # It is read at a desk: no scene of a talk has it.
        ]

    return SavedView(
        "mask-fault",
        build_parts,
        lambda: tabulate_largest_difference_map(entry, broken, fixed),
        about.title,
        width=1100,
    )


# The list of entries, searched by what a person notices first.


GALLERY_STYLE = Path(__file__).parent / "gallery.css"


@view_fragment
def draw_gallery_view() -> None:
    """Draw one fault at a time. A fragment: choosing another leaves the rest of the page alone."""
    st.html(GALLERY_STYLE)
    left, right = st.columns([0.3, 0.7], gap="large")
    with left:
        name = _choose_entry()
    if name is None:
        return
    with right:
        run_and_draw_entry(ENTRIES[name], get_entry_text(name))


def search_entries(text: str) -> list[str]:
    """Names of the entries in which every typed word occurs: in title, symptoms, explanation or code.

    They are looked for in the current language and in English.
    """
    words = text[: MASKS_SYMPTOM.longest].lower().split()
    if not words:
        return list(ENTRIES)
    read = {name: f"{name} {ENTRIES[name].code} {_searchable_text(name)}" for name in ENTRIES}
    with use_language(SOURCE_LANGUAGE):
        searched = {name: f"{known} {_searchable_text(name)}".lower() for name, known in read.items()}
    return [name for name, known in searched.items() if all(word in known for word in words)]


def _searchable_text(name: str) -> str:
    one = get_entry_text(name)
    return " ".join((one.title, *one.symptoms, one.how, one.met))


def _choose_entry() -> str | None:
    """The name of the entry to show, which stands in the address; None where nothing matches."""
    text = controls.text_input(
        say("What do you see?"), MASKS_SYMPTOM, placeholder=say("NaN, padding, copies the next token …")
    )
    names = search_entries(text)
    if not names:
        draw_caption(
            say("Nothing in the gallery speaks of that. Try one word: NaN, batch, padding, cache, sum, dropout.")
        )
        return None
    MASKS_FAULT.set(MASKS_FAULT.hold(["", *names]) or names[0])
    count = (
        say("{count} of {all}", count=len(names), all=len(ENTRIES))
        if text
        else say_many("{count} fault", "{count} faults", len(ENTRIES))
    )
    with st.container(key="fault-list"):
        places = [escape_markdown(REPORT_PLACES.get(name, "")) for name in names]
        return controls.draw_untranslated_choice(
            st.radio,
            count,
            names,
            format_func=lambda name: escape_markdown(get_entry_text(name).title),
            captions=places,
            **MASKS_FAULT.synced_widget_arguments,
        )


# The pictures of an entry of the gallery: its broken side beside its fixed one, where they differ most.


EXAMPLE_SOURCE = ("the", "old", "man", "reads", "a", "book", "outside", "today", "and", "smiles")
EXAMPLE_TARGET = ("der", "alte", "Mann", "liest", "draußen", "ein", "Buch", "und", "lächelt", "heute")
CROSS_ATTENTION_FAULTS = ("causal-on-cross", "padding-visible", "padding-swapped")


def plot_largest_difference_map(entry: Exhibit, broken: ExhibitSide, fixed: ExhibitSide, look: Look) -> Any:
    """The one map, of all samples, layers and heads, on which the two sides differ most."""
    sample, layer, head = find_largest_difference(broken, fixed)
    rows, columns = make_axis_labels(entry, broken, sample)
    panels = [
        MaskPanel(title, side.weights[sample, layer, head], side.meant[sample, layer, head], entry.recipe is not None)
        for title, side in ((say("broken"), broken), (say("fixed"), fixed))
    ]
    return plot_mask_panels(panels, rows, columns, describe_map_place(broken, sample, layer, head), look)


def tabulate_largest_difference_map(entry: Exhibit, broken: ExhibitSide, fixed: ExhibitSide) -> pd.DataFrame:
    """Return a row for each cell of that picture: query, key, both weights, and whether it should have any."""
    sample, layer, head = find_largest_difference(broken, fixed)
    rows, columns = make_axis_labels(entry, broken, sample)
    cells = [
        {
            "query": row,
            "key": column,
            "broken": float(broken.weights[sample, layer, head, i, j]),
            "fixed": float(fixed.weights[sample, layer, head, i, j]),
            "meant": bool(fixed.meant[sample, layer, head, i, j]),
        }
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]
    return pd.DataFrame(cells).set_index("query")


def make_axis_labels(entry: Exhibit, side: ExhibitSide, sample: int) -> tuple[list[str], list[str]]:
    """The words at the rows and at the columns."""
    columns = label_tokens_and_padding(EXAMPLE_SOURCE, side.key_keep[sample])
    if entry.code == "top-left-causal":
        return columns[len(columns) - len(side.query_keep[sample]) :], columns
    return label_tokens_and_padding(
        EXAMPLE_TARGET if entry.code in CROSS_ATTENTION_FAULTS else EXAMPLE_SOURCE, side.query_keep[sample]
    ), columns


def find_largest_difference(broken: ExhibitSide, fixed: ExhibitSide) -> tuple[int, int, int]:
    """Sample, layer and head, from 0, on which the two sides differ most."""
    change = np.nan_to_num(np.abs(broken.weights.astype(np.float64) - fixed.weights), nan=1.0)
    at = np.unravel_index(int(change.sum((-1, -2)).argmax()), change.shape[:3])
    return int(at[0]), int(at[1]), int(at[2])


def describe_map_place(side: ExhibitSide, sample: int, layer: int, head: int) -> str:
    """The place in words, counted from 1."""
    samples, layers, heads = side.weights.shape[:3]
    parts = (
        say("sentence {at} of {count}", at=sample + 1, count=samples) if samples > 1 else "",
        say("layer {at} of {count}", at=layer + 1, count=layers) if layers > 1 else "",
        say("head {at} of {count}", at=head + 1, count=heads) if heads > 1 else "",
    )
    return join_items(filter(None, parts))


def label_tokens_and_padding(words: tuple[str, ...], keep: np.ndarray) -> list[str]:
    """Words for real tokens, in order, and ``pad`` for the others; keep (K,) bool."""
    left = iter(words)
    return [next(left) if real else "pad" for real in keep]


# All entries: the faults of the catalogue, then bugs from public trackers.


ENTRIES: dict[str, Exhibit] = EXHIBITS | {name: one.exhibit for name, one in REPORTS.items()}
"""By name, in the order of the list."""
REPORT_PLACES: dict[str, str] = {name: one.where.replace("#", " ") for name, one in REPORTS.items()}
"""Repository and number of those that were reported."""


def get_entry_text(name: str) -> EntryText:
    """Return what is said of an entry, in the current language."""
    if name in ENTRY_TEXTS:
        return ENTRY_TEXTS[name].translate()
    report = REPORTS[name]
    return EntryText(say(report.title), tuple(map(say, report.symptoms)), say(report.says), report.place)
