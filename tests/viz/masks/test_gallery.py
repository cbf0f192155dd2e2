"""The gallery's words, its search, and its picture by its data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from attenscope.gallery.exhibits import EXHIBITS, ExhibitSide, run_exhibit
from attenscope.gallery.reported_padding_bugs import REPORTS
from attenscope.language import use_language
from attenscope.viz.figures.figure_style import DARK, LIGHT, Look
from attenscope.viz.figures.masks import MaskPanel, classify_cells, plot_mask_panels
from attenscope.viz.masks.gallery import (
    ENTRIES,
    OPENING,
    REPORT_PLACES,
    describe_mask_introduction,
    find_largest_difference,
    get_entry_text,
    label_tokens_and_padding,
    list_verdict_lines,
    plot_largest_difference_map,
    search_entries,
    tabulate_largest_difference_map,
)
from attenscope.viz.masks.gallery_texts import ENTRY_TEXTS


def test_the_page_opens_on_how_much_attention_goes_to_the_future() -> None:
    broken, fixed = run_exhibit(ENTRIES[OPENING])
    place = find_largest_difference(broken, fixed)
    weights, words = broken.weights[place], np.flatnonzero(broken.query_keep[place[0]])
    later = [sum(weights[query][key] for key in range(query + 1, len(weights))) for query in words]
    assert (
        f"{np.mean(later):.0%} of the attention of its {len(words)} words goes to words that are still to be written"
        in describe_mask_introduction(broken, fixed)
    )
    assert not fixed.codes
    assert describe_mask_introduction(fixed, broken).count(" 0% ") == 1


def test_every_entry_has_words_and_no_word_is_left_over() -> None:
    assert list(ENTRY_TEXTS) == list(EXHIBITS)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("loss NaN", "empty-row"),
        ("copies the next token", "future-visible"),
        ("changes with its batch", "padding-visible"),
        ("sum to 1", "dropout-on"),
        ("RoFormer", "is-decoder"),
        ("window-off", "window-off-by-one"),
        ("kv cache", "transformers-30414"),
        ("loss goes to zero", "transformers-48745"),
        ("works alone but not in a batch", "batch-axis"),
        ("keras", "keras-23038"),
        ("flash-attention 282", "flash-attention-282"),
    ],
)
def test_a_symptom_leads_to_the_fault(typed: str, expected: str) -> None:
    assert expected in search_entries(typed)
    assert len(search_entries(typed)) < len(ENTRIES) / 2


def test_no_search_finds_all_and_nonsense_none() -> None:
    assert search_entries("") == list(ENTRIES)
    assert search_entries("xyzzy") == []


def test_the_gallery_is_searched_in_the_readers_language_and_in_english() -> None:
    with use_language("de"):
        assert "future-visible" in search_entries("kausale Maske vergessen")
        assert "future-visible" in search_entries("causal mask forgotten")
    assert search_entries("kausale Maske vergessen") == []


def test_a_cell_is_one_thing_only() -> None:
    weights = np.array([[0.5, 0.5, 0.0], [np.nan, np.nan, np.nan], [0.0, 1.0, 0.0]])
    found = classify_cells(MaskPanel("", weights, np.tri(3, dtype=bool)))
    kinds = np.stack([found.allowed, found.blocked, found.leak, found.over, found.nan])
    assert (kinds.sum(0) == 1).all()
    assert np.argwhere(found.leak).tolist() == [[0, 1]]
    assert np.argwhere(found.over).tolist() == [[2, 0], [2, 2]]
    assert found.nan[1].all()


@pytest.mark.parametrize("name", EXHIBITS)
def test_the_picture_differs_between_broken_and_fixed(
    name: str, exhibit: Callable[[str], tuple[ExhibitSide, ExhibitSide]]
) -> None:
    broken, fixed = exhibit(name)
    sample, layer, head = find_largest_difference(broken, fixed)
    same = np.array_equal(broken.weights[sample, layer, head], fixed.weights[sample, layer, head])
    assert same == (name in ("pad-query", "extra-mass"))
    for palette in (LIGHT, DARK):
        figure = plot_largest_difference_map(EXHIBITS[name], broken, fixed, Look(palette))
        assert {"<b>broken</b>", "<b>fixed</b>"} <= {one.text for one in figure.layout.annotations}
    saved = tabulate_largest_difference_map(EXHIBITS[name], broken, fixed)
    for title, side in (("broken", broken), ("fixed", fixed)):
        assert np.array_equal(saved[title], side.weights[sample, layer, head].ravel().astype(float), equal_nan=True)
    assert all(line[0] in "●▲t○✓?" for line in list_verdict_lines(broken))
    assert list_verdict_lines(fixed)[0].startswith("✓")


@pytest.mark.sweep
@pytest.mark.parametrize("name", REPORTS)
def test_a_reported_bug_is_drawn(name: str) -> None:
    assert REPORT_PLACES[name].split()[1] in get_entry_text(name).met
    broken, fixed = run_exhibit(ENTRIES[name])
    figure = plot_largest_difference_map(ENTRIES[name], broken, fixed, Look(LIGHT))
    assert {"<b>broken</b>", "<b>fixed</b>"} <= {one.text for one in figure.layout.annotations}
    assert not tabulate_largest_difference_map(ENTRIES[name], broken, fixed).empty


def test_a_sum_that_is_not_one_stands_out() -> None:
    panel = MaskPanel("broken", np.array([[1.25, 0.0], [0.5, 0.5]]), np.ones((2, 2), bool))
    (sums,) = (
        one for one in plot_mask_panels([panel], "ab", "cd", "", Look()).data if one.text and one.text[0] == "sum"
    )
    assert sums.text == ("sum", "1.25", "1.00")
    assert sums.textfont.color == (LIGHT.soft, LIGHT.ink, LIGHT.soft)


def test_padding_is_named() -> None:
    assert label_tokens_and_padding(("one", "two"), np.array([False, True, True])) == ["pad", "one", "two"]


def test_a_cross_stands_where_a_leak_is_too_faint_for_a_number_and_nowhere_else() -> None:
    weights = np.array([[0.9, 0.1, 0.001], [0.5, 0.4961, 0.0039], [0.3, 0.3, 0.4]])
    meant = np.tril(np.ones((3, 3), dtype=bool))
    data = plot_mask_panels([MaskPanel("broken", weights, meant)], "abc", "abc", "", Look()).data
    (leak,) = (one for one in data if one.texttemplate == "%{text}")
    (crosses,) = (one for one in data if one.type == "scatter" and one.marker.symbol == "x-thin-open")
    assert np.asarray(leak.text).tolist() == [["", "0.10", ""], ["", "", ""], ["", "", ""]]
    assert sorted(zip(crosses.y, crosses.x, strict=True)) == [(0, 2), (1, 2)]


@pytest.mark.parametrize("tokens", [5, 21])
def test_sums_of_many_columns_have_room_of_their_own(tokens: int) -> None:
    weights = np.full((2, tokens), 1 / tokens)
    panels = [MaskPanel(name, weights, np.ones_like(weights, dtype=bool)) for name in ("one", "other")]
    made = plot_mask_panels(panels, "ab", [str(at) for at in range(tokens)], "", Look()).layout
    between = made.xaxis2.domain[0] - made.xaxis.domain[1]
    assert (made.margin.r >= 30, between > 0.08) == (tokens > 12, tokens > 12)
