"""The page Heads on a toy model and a small atlas: its views, what it says, and what it does without an atlas."""

from __future__ import annotations

import dataclasses
import re
import shutil
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attenscope.analysis.heads import ALIGNMENT_READINGS, AlignmentReading, compute_mean_alignment
from attenscope.atlas.build import Corpus, build_atlas
from attenscope.atlas.duckdb_queries import run_query
from attenscope.atlas.files import ATLAS_FOLDER, SENTENCES_TABLE
from attenscope.atlas.measure import MEASURE_EXPLANATIONS
from attenscope.atlas.projection import ProjectionSpace, project_tokens
from attenscope.atlas.query import (
    Atlas,
    HeadLabel,
    HeadRow,
    find_aligned_rows,
    open_atlas,
    parse_question,
    search_atlas,
)
from attenscope.atlas.teacher_forced_batches import PLACES, Place
from attenscope.checkpoint import load
from attenscope.trace import Head
from attenscope.translate import Translator
from attenscope.viz.export.share_menu import OFFERED_VIEW
from attenscope.viz.figures.figure_style import DARK, KIND_NAMES, LIGHT
from attenscope.viz.figures.heads import (
    HeadDot,
    MeasureStrip,
    assign_attention_kind_colours,
    classify_sentence_position,
    plot_head_scatter,
    plot_measure_strips,
    plot_token_projection,
)
from attenscope.viz.heads import cache as heads_cache
from attenscope.viz.heads import habit_gallery, measure_scatter, one_head, texts, token_projection
from attenscope.viz.page_setup import SHARE_MENU
from attenscope.viz.ui import cache as ui_cache
from attenscope.viz.ui.addresses.heads import (
    HEADS_MEASURE_NAMES,
    HEADS_MEASURES,
    PROJECTION_SPACES,
    ProjectionColour,
    format_map_box,
    parse_map_box,
)
from attenscope.viz.ui.cache import load_alignment_rates
from tests import toy
from tests.viz.page_texts import as_read

PAGE = Path(__file__).resolve().parents[3] / "viz" / "pages" / "heads.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, toy_checkpoint: Path, toy_translator: Translator) -> Path:
    """A folder of checkpoints: one with an atlas."""
    place = tmp_path_factory.mktemp("checkpoints")
    shutil.copytree(toy_checkpoint, place / "toy-en-de")
    for name, side in (("a.en", 0), ("a.de", 1)):
        lines = [*(pair[side] for pair in toy.sentences(30, seed=5)), "the <b>dog</b>"]
        (place / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    corpus = Corpus.read(place / "a.en", place / "a.de", 50)
    build_atlas(toy_translator, corpus, place / "toy-en-de" / ATLAS_FOLDER, licence="made up, CC0")
    return place


@pytest.fixture
def atlas(folder: Path, monkeypatch: pytest.MonkeyPatch, toy_translator: Translator) -> Atlas:
    monkeypatch.setattr(load, "CHECKPOINTS_FOLDER", folder)
    monkeypatch.setattr(ui_cache, "list_checkpoint_names", lambda: ["toy-en-de"])
    for one in (
        ui_cache._load_model_on_device,
        ui_cache.load_model_configs,
        ui_cache.load_model_summaries,
        heads_cache._open_cached_atlas,
        heads_cache.search_atlas_by_question,
    ):
        one.clear()
    for kept in (heads_cache.load_head_example_rows, heads_cache.load_tag_pairs, heads_cache.load_costliest_sentences):
        kept.clear()
    return open_atlas(folder / "toy-en-de" / ATLAS_FOLDER, "toy-en-de", toy_translator.checkpoint.hash)


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(str(PAGE), default_timeout=150)
    app.query_params.update(address)
    app.run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    texts_of = [one.value for one in (*app.caption, *app.info, *app.error, *app.markdown)]
    return " ".join(as_read(texts_of))


@pytest.mark.sweep
def test_the_page_opens_on_the_habits_that_the_atlas_carries(atlas: Atlas) -> None:
    found = habit_gallery.find_surest_head_per_habit(atlas)
    named = [one for one in atlas.labels if one.place is not None]
    assert found
    assert sum(1 + one.others for one in found) == len(named)
    for one in found:
        same = [label for label in named if label.place == one.label.place]
        assert one.label == atlas.label(one.head)
        assert one.label.agreement == max(label.agreement for label in same)
        rows = habit_gallery.find_examples(
            heads_cache.load_head_example_rows(heads_cache.make_atlas_identity(atlas), one.head, atlas), one
        )
        assert rows
        if one.label.place in ("same", "previous", "next"):
            step = {"same": 0, "previous": -1, "next": 1}[one.label.place]
            assert all(row.weights.argmax() == row.query + step for row in rows)
    app = opened()
    assert f"{len(named)} of {len(atlas.names)} look" in said(app)
    for one in found:
        assert habit_gallery.describe_habit(one) in said(app)
    app.button(key="habit-" + "-".join(str(part) for part in found[0].head)).click().run()
    assert app.session_state["heads"] == "head"


def test_a_head_that_aligns_says_how_well_and_which_does_best() -> None:
    model = ui_cache.load_translator("everyday-en-de")
    rates = load_alignment_rates(model.name, model.checkpoint.hash)
    heads = [one for one in rates.rates if one.part == "head"]
    best = min(heads, key=lambda one: one.aer)
    for one in (best, next(other for other in heads if other != best)):
        place: Place = "aligned_predicted" if one.reading == "predicted" else "aligned_fed"
        habit = habit_gallery.Habit(("cross", one.layer, one.head), HeadLabel(place, 0.7, 0.1, 1.0), 0)
        told = habit_gallery.describe_habit_alignment(model, habit)
        assert told.startswith(f"Against links drawn by hand its error is {one.aer:.1%}")
        if one == best:
            assert told.endswith(", the least of all heads.")
        else:
            assert f"{best.aer:.1%}, is that of cross {best.layer + 1}.{best.head + 1} read at" in told
    other = dataclasses.replace(habit, label=HeadLabel("previous", 0.7, 0.1, 1.0))
    assert habit_gallery.describe_habit_alignment(model, other) == ""


@pytest.mark.parametrize("reading", ALIGNMENT_READINGS)
def test_the_examples_of_an_aligner_are_matches(reading: AlignmentReading) -> None:
    """The model itself is asked: does its head, and do all its heads together, look where the card says?"""
    model = ui_cache.load_translator("everyday-en-de")
    atlas = heads_cache.load_atlas(model.name, model.checkpoint.hash)
    best = load_alignment_rates(model.name, model.checkpoint.hash).best("head")
    head: Head = ("cross", best.layer, best.head) if best.reading == reading else ("cross", 2, 2)
    rows = find_aligned_rows(atlas, head, reading, habit_gallery.EXAMPLES)
    assert len(rows) == habit_gallery.EXAMPLES
    texts_of_rows = run_query(atlas.folder, SENTENCES_TABLE, "FROM {table}").set_index("sentence")
    for row in rows:
        given = texts_of_rows.loc[row.sentence]
        cross = model.force(str(given["source"]), str(given["target"])).trace.maps["cross"]
        key = int(row.weights.argmax())
        late = ALIGNMENT_READINGS.index(reading)
        assert cross.weights[*head[1:], row.query + late].argmax() == key
        assert cross.weights[*head[1:], row.query + late, key] > 0.5
        assert compute_mean_alignment(cross)[row.query, key] > 0.4  # more than half of the weights that the atlas keeps
        word, match = row.queries[row.query], row.keys[key]
        assert len(word.strip()) >= 4
        assert word.lower() != match.lower()


def test_each_place_of_a_label_is_a_habit() -> None:
    assert tuple(habit_gallery.HABIT_NAMES) == PLACES


def test_each_question_in_words_can_be_asked() -> None:
    for question in measure_scatter.EXAMPLE_QUESTIONS.values():
        assert parse_question(question).words


def test_the_map_says_what_it_shows(atlas: Atlas) -> None:
    app = opened(heads="map", across="entropy", up="cost")
    found = said(app)
    assert texts.describe_corpus(atlas) in found
    assert texts.describe_measures("entropy", "cost") in found
    assert "made up, CC0" in texts.describe_corpus(atlas)
    table = measure_scatter.tabulate_all_heads(atlas)
    assert len(table) == len(atlas.names) == 12
    assert table["label"].tolist() == [atlas.label(head).text for head in atlas.names]
    opened(heads="map", across="nonsense", up="previous token")


def test_two_models_share_axes_and_sizes(
    atlas: Atlas, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("toy-en-de", "other"):
        shutil.copytree(folder / "toy-en-de", tmp_path / name)
    monkeypatch.setattr(load, "CHECKPOINTS_FOLDER", tmp_path)
    monkeypatch.setattr(ui_cache, "list_checkpoint_names", lambda: ["toy-en-de", "other"])
    found = said(opened(heads="map", second_model="other", across="entropy", up="cost"))
    assert f"Axes and sizes are the same on both maps. other: {texts.describe_corpus(atlas)}" in found
    assert "Axes and sizes" not in said(opened(heads="map", second_model="nonsense"))
    assert "Axes and sizes" not in said(opened(heads="map", second_model="toy-en-de"))
    own = measure_scatter.build_model_scatter_dots("own", atlas, "entropy", "cost")
    half = dataclasses.replace(atlas, heads=atlas.heads.assign(cost=atlas.heads["cost"] / 2))
    sides = [own, measure_scatter.build_model_scatter_dots("half", half, "entropy", "cost")]
    for palette in (LIGHT, DARK):
        first, second = measure_scatter.plot_measure_scatters(sides, "entropy", "cost", palette)
        assert (first.x, first.y) == (second.x, second.y)
        shown = plot_head_scatter(own.dots, "a", "b", "title", palette)
        least = shown.marks
        kinds = {dot.kind for dot in own.dots}
        assert shown.legend == [
            (KIND_NAMES[kind], colour)
            for kind, colour in assign_attention_kind_colours(palette).items()
            if kind in kinds
        ]
        assert [mark.size for mark in first.marks] == [mark.size for mark in least]
        costliest = int(np.argmax(atlas.heads["cost"]))
        assert second.marks[costliest].size < first.marks[costliest].size
    for dot, head in zip(own.dots, own.heads, strict=True):
        assert (dot.x, dot.y) == (atlas.row(head)["entropy"], atlas.row(head)["cost"])
        assert dot.label == atlas.label(head).text


def test_a_box_lists_the_heads_in_it(atlas: Atlas) -> None:
    side = measure_scatter.build_model_scatter_dots("toy-en-de", atlas, "entropy", "cost")
    entropy = sorted(dot.x for dot in side.dots)
    box = (entropy[2], entropy[6], -10.0, 10.0)
    found = measure_scatter.find_heads_in_box(side, box)
    assert sorted(dot.x for _, dot in found) == entropy[2:7]
    assert [dot.cost for _, dot in found] == sorted((dot.cost for _, dot in found), reverse=True)
    (shown,) = measure_scatter.plot_measure_scatters([side], "entropy", "cost", LIGHT)
    frame = measure_scatter.add_box_frame(shown, box).marks[-1].points
    assert (frame.min(0).tolist(), frame.max(0).tolist()) == ([entropy[2], -10.0], [entropy[6], 10.0])
    assert measure_scatter.add_box_frame(shown, None) is shown
    kept = format_map_box(box)
    read = parse_map_box(kept)
    assert read == pytest.approx(box, rel=1e-3)
    app = opened(heads="map", across="entropy", up="cost", brush=kept)
    assert read is not None
    assert texts.describe_heads_in_box("toy-en-de", len(measure_scatter.find_heads_in_box(side, read)), 12) in said(app)
    for nonsense in ("1,2,3", "2,1,0,1", "nan,1,0,1", "a,b,c,d"):
        with pytest.raises(ValueError, match=r".*"):
            parse_map_box(nonsense)
        assert "heads in the box" not in said(opened(brush=nonsense))


def test_a_head_is_shown_with_rows_costs_and_pairs(atlas: Atlas) -> None:
    app = opened(heads="head", kind="cross", layer="2", head="1")
    found = said(app)
    head: Head = ("cross", 1, 0)
    assert texts.describe_head_ablation_cost(atlas, head) in found
    assert atlas.label(head).text in found
    rank = sorted(atlas.heads["cost"], reverse=True).index(atlas.row(head)["cost"]) + 1
    assert f"rank {rank} of 12" in texts.describe_head_ablation_cost(atlas, head)
    own = {strip.name: strip for strip in one_head.build_measure_strips(atlas, head)}
    assert own["cost"].own == atlas.row(head)["cost"]
    assert len(own["cost"].others) == 4
    assert "previous token" not in own
    opened(heads="head", kind="cross", layer="77", head="99")


def test_a_search_says_its_question_and_its_answer_in_words(atlas: Atlas) -> None:
    typed = "pos=NOUN -> pos=DET distance=-1"
    found = search_atlas(atlas, parse_question(typed))
    app = opened(heads="search", ask=typed)
    assert found.question.words in said(app)
    assert found.sentence in said(app)
    assert texts.explain_link_search_counts(atlas) in said(app)
    bars = measure_scatter.build_lift_bars(found)
    assert [one.lift for one in bars] == sorted((one.lift for one in bars), reverse=True)
    assert "one arrow" in said(opened(heads="search", ask="dog"))
    assert "No link begins so." in said(opened(heads="search", ask="word=zebra -> "))
    assert OFFERED_VIEW in app.session_state
    app.session_state[SHARE_MENU] = True
    app.text_input(key="ask").set_value("dog").run()
    assert OFFERED_VIEW not in app.session_state  # What Share would save is no longer shown.


def test_without_an_atlas_of_this_model_the_page_says_how_to_make_one(
    atlas: Atlas, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    shutil.copytree(folder / "toy-en-de" / ATLAS_FOLDER, own)
    monkeypatch.setattr(load, "CHECKPOINTS_FOLDER", tmp_path)
    shutil.copytree(folder / "toy-en-de", tmp_path / "toy-en-de", ignore=shutil.ignore_patterns(ATLAS_FOLDER))
    assert "make one with python -m model atlas" in said(opened()).replace("`", "")
    monkeypatch.setattr("sys.argv", ["app.py", "--atlas", str(own)])
    assert texts.describe_corpus(atlas) in said(opened())
    manifest = own / "atlas.json"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace(atlas.manifest.plan.model_hash, "f" * 12))
    assert "This atlas is of toy-en-de with the hash ffffffffffff" in said(opened())


def test_rows_are_html_in_which_tokens_are_escaped() -> None:
    row = HeadRow(0, 1, (" <b>", " x"), (" <b>", " x"), np.array([0.97, 0.0], dtype=np.float32))
    markup = one_head.render_shaded_rows([row], ["encoder"], "a <name>")
    assert "<b>" not in markup
    assert "&lt;b&gt;" in markup
    assert 'class="w10" title="97% of the weight"' in markup
    assert 'class="attends">x' in markup
    cross = one_head.render_shaded_rows([row], ["cross"], "name", ["cross 1.1"])
    assert re.search(r'class="attends">x</span> ← ', cross)


def test_figures_hold_the_numbers_that_they_show() -> None:
    dots = [
        HeadDot("encoder 1.1", "encoder", 1.0, 2.0, 0.0, "mixed"),
        HeadDot("cross 1.1", "cross", 3.0, 4.0, 0.04, "mixed"),
    ]
    for palette in (LIGHT, DARK):
        shown = plot_head_scatter(dots, "entropy", "cost", "title", palette)
        assert [mark.points.tolist() for mark in shown.marks] == [[[1.0, 2.0]], [[3.0, 4.0]]]
        assert shown.marks[0].size < shown.marks[1].size
        figure = plot_measure_strips([MeasureStrip("cost", 0.2, (0.1, 0.2, 0.5))], "title", palette)
        grey, own = figure.data
        assert list(grey.x) == pytest.approx([0.0, 0.25, 1.0])
        assert list(own.x) == pytest.approx([0.25])


@pytest.mark.parametrize(
    ("others", "side"),
    [
        ([], "end"),  # towards the middle
        ([(6.5, 5.0)], "start"),  # another dot lies there
        ([(6.5, 9.0)], "end"),  # far above
        ([(6.5, 5.0), (7.5, 5.0)], "end"),  # as many on either side
        ([(6.5, 5.0), (6.2, 5.0), (7.5, 5.0)], "start"),  # fewer there
    ],
)
def test_a_name_stands_where_no_other_dot_lies(others: list[tuple[float, float]], side: str) -> None:
    corners = [(0.0, 0.0), (10.0, 10.0)]
    rest = [HeadDot("encoder 1.1", "encoder", x, y, 0.0, "mixed") for x, y in (*corners, *others)]
    shown = plot_head_scatter([*rest, HeadDot("cross 1.1", "cross", 7.0, 5.0, 1.0, "mixed")], "a", "b", "title", LIGHT)
    assert next(one.across for one in shown.notes if one.text == "cross 1.1") == side


def test_every_measure_has_a_name_and_a_meaning() -> None:
    assert set(HEADS_MEASURES) == set(HEADS_MEASURE_NAMES) == set(MEASURE_EXPLANATIONS)
    assert len(set(HEADS_MEASURE_NAMES.values())) == len(HEADS_MEASURES)
    assert texts.describe_untagged_sides(("zh", "en")).startswith("Parts of speech of the source are not known")
    assert texts.describe_untagged_sides(("en", "de")) == ""


def test_the_projection_says_what_it_draws(atlas: Atlas, toy_translator: Translator) -> None:
    space: ProjectionSpace = "queries and keys"
    assert get_args(ProjectionSpace) == PROJECTION_SPACES
    found = project_tokens(toy_translator, atlas, space, ("cross", 1, 1), "dog")
    app = opened(heads="projection", kind="cross", layer="2", head="2", marked="dog")
    read = said(app)
    assert texts.describe_projection(found, space) in read
    assert texts.describe_marked_word(found, "dog") in read
    dogs = int(found.tokens["word"].str.casefold().eq("dog").sum())
    assert f"“dog”: {dogs} dots in " in texts.describe_marked_word(found, "dog")
    assert "no such word" in texts.describe_marked_word(found, "zebra")
    for colour in get_args(ProjectionColour):
        for palette in (LIGHT, DARK):
            groups = token_projection.group_dots_by_colour(found, colour, "dog", palette)
            assert sum(len(one.points) for one in groups) == len(found.tokens)
            assert [one.name for one in groups if one.marked] == ["“dog”"]
            assert len({one.colour for one in groups}) == len(groups)
            shown = plot_token_projection(groups, texts.make_projection_axis_titles(found), "title", palette)
            assert [mark.names for mark in shown.marks] == [one.names for one in groups]
    assert [classify_sentence_position(place, 7) for place in range(8)].count("middle") == 2
    assert [classify_sentence_position(0, 0), classify_sentence_position(1, 1), classify_sentence_position(1, 2)] == [
        "beginning",
        "end",
        "first third",
    ]


def test_a_box_in_the_projection_lists_its_sentences(atlas: Atlas, toy_translator: Translator) -> None:
    found = project_tokens(toy_translator, atlas, "encoder outputs", atlas.names[0])
    x, y = (np.sort(found.tokens[name]) for name in "xy")
    box = (float(x[0]), float(x[20]), float(y[0]), float(y[-1]))
    tokens = token_projection.find_tokens_in_box(found, box)
    assert len(tokens) == 21
    rows = token_projection.build_sentence_rows(found, tokens)
    assert [row.queries[row.query] for row in rows] == tokens["piece"].tolist()
    address = {"heads": "projection", "plane": "encoder outputs", "brush": format_map_box(box)}
    app = opened(**address)
    assert not app.exception
    brushed = re.search(r"(\d+) of (\d+) dots in the box", said(app))
    assert brushed is not None
    assert int(brushed[2]) == len(found.tokens)
    assert abs(int(brushed[1]) - 21) <= 1  # The address rounds the box.
    assert "<b>" not in one_head.render_shaded_rows(rows, [""] * len(rows), "rows")


def test_a_click_draws_a_box_around_its_dot(atlas: Atlas, toy_translator: Translator) -> None:
    found = project_tokens(toy_translator, atlas, "token embeddings", atlas.names[0])
    shown = plot_token_projection(
        token_projection.group_dots_by_colour(found, "position", "", LIGHT), ("", ""), "title", LIGHT
    )
    point = shown.marks[0].points[0]
    inside = token_projection.find_tokens_in_box(found, token_projection.make_box_around_dot(point, shown))
    assert inside[["x", "y"]].iloc[0].tolist() == pytest.approx(point.tolist())


def test_rows_of_every_head_and_place_are_kept_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads_cache, "find_repetition_rows", lambda _, *asked: asked)
    kept: Any = heads_cache.load_repetition_rows
    for asked in product((("decoder", 0, 0), ("decoder", 0, 1)), PLACES, (3, 4)):
        assert kept("an atlas", *asked, None) == asked
    kept.clear()
