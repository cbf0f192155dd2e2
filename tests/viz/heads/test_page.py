"""The page Heads on a toy model and a small atlas: its views, what it says, and what it does without an atlas."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.atlas.build import build
from model.atlas.corpus import Corpus
from model.atlas.folder import ATLAS
from model.atlas.measures import EXPLAINED
from model.checkpoint import files as folders
from model.heads.atlas import Atlas, open_atlas
from model.heads.projection import Space, project
from model.heads.question import read_question
from model.heads.rows import ShownRow
from model.heads.search import search
from model.trace import Head
from model.translate import Translator
from tests.viz.page_texts import as_read
from viz.figures.heads.bars import Strip, strips
from viz.figures.heads.projection import part_of, projection
from viz.figures.heads.scatter import Dot, kind_colours, scatter
from viz.figures.labels import KIND_NAMES
from viz.figures.palette import DARK, LIGHT
from viz.heads import cache as atlases
from viz.heads import shaded, texts
from viz.heads.views import all_heads, one_head, searching
from viz.heads.views import projection as views
from viz.ui import cache
from viz.ui.addresses.heads import MEASURE_NAMES, MEASURES, SPACES, Colour, read_box, write_box

from ... import toy

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
    build(toy_translator, corpus, place / "toy-en-de" / ATLAS, licence="made up, CC0")
    return place


@pytest.fixture
def atlas(folder: Path, monkeypatch: pytest.MonkeyPatch, toy_translator: Translator) -> Atlas:
    monkeypatch.setattr(folders, "FOLDER", folder)
    monkeypatch.setattr(cache, "checkpoints", lambda: ["toy-en-de"])
    for one in (cache._loaded, cache.configurations, cache.summaries, atlases._opened, atlases.answer):
        one.clear()
    for kept in (atlases.rows, atlases.pairs, atlases.costs):
        kept.clear()
    return open_atlas(folder / "toy-en-de" / ATLAS, "toy-en-de", toy_translator.checkpoint.hash)


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(str(PAGE), default_timeout=150)
    app.query_params.update(address)
    app.run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    texts_of = [one.value for one in (*app.caption, *app.info, *app.error, *app.markdown)]
    return " ".join(as_read(texts_of))


def test_the_map_says_what_it_shows(atlas: Atlas) -> None:
    app = opened(across="entropy", up="cost")
    found = said(app)
    assert texts.corpus(atlas) in found
    assert texts.measures("entropy", "cost") in found
    assert "made up, CC0" in texts.corpus(atlas)
    table = all_heads.numbers(atlas)
    assert len(table) == len(atlas.names) == 12
    assert table["label"].tolist() == [atlas.label(head).text for head in atlas.names]
    opened(across="nonsense", up="previous token")


def test_two_models_share_axes_and_sizes(
    atlas: Atlas, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("toy-en-de", "other"):
        shutil.copytree(folder / "toy-en-de", tmp_path / name)
    monkeypatch.setattr(folders, "FOLDER", tmp_path)
    monkeypatch.setattr(cache, "checkpoints", lambda: ["toy-en-de", "other"])
    found = said(opened(second_model="other", across="entropy", up="cost"))
    assert f"Axes and sizes are the same on both maps. other: {texts.corpus(atlas)}" in found
    assert "Axes and sizes" not in said(opened(second_model="nonsense"))
    assert "Axes and sizes" not in said(opened(second_model="toy-en-de"))
    own = all_heads.side_of("own", atlas, "entropy", "cost")
    half = dataclasses.replace(atlas, heads=atlas.heads.assign(cost=atlas.heads["cost"] / 2))
    sides = [own, all_heads.side_of("half", half, "entropy", "cost")]
    for palette in (LIGHT, DARK):
        first, second = all_heads.pictures(sides, "entropy", "cost", palette)
        assert (first.x, first.y) == (second.x, second.y)
        shown = scatter(own.dots, "a", "b", "title", palette)
        least = shown.marks
        kinds = {dot.kind for dot in own.dots}
        assert shown.legend == [
            (KIND_NAMES[kind], colour) for kind, colour in kind_colours(palette).items() if kind in kinds
        ]
        assert [mark.size for mark in first.marks] == [mark.size for mark in least]
        costliest = int(np.argmax(atlas.heads["cost"]))
        assert second.marks[costliest].size < first.marks[costliest].size
    for dot, head in zip(own.dots, own.heads, strict=True):
        assert (dot.x, dot.y) == (atlas.row(head)["entropy"], atlas.row(head)["cost"])
        assert dot.label == atlas.label(head).text


def test_a_box_lists_the_heads_in_it(atlas: Atlas) -> None:
    side = all_heads.side_of("toy-en-de", atlas, "entropy", "cost")
    entropy = sorted(dot.x for dot in side.dots)
    box = (entropy[2], entropy[6], -10.0, 10.0)
    found = all_heads.inside(side, box)
    assert sorted(dot.x for _, dot in found) == entropy[2:7]
    assert [dot.cost for _, dot in found] == sorted((dot.cost for _, dot in found), reverse=True)
    (shown,) = all_heads.pictures([side], "entropy", "cost", LIGHT)
    frame = all_heads.with_frame(shown, box).marks[-1].points
    assert (frame.min(0).tolist(), frame.max(0).tolist()) == ([entropy[2], -10.0], [entropy[6], 10.0])
    assert all_heads.with_frame(shown, None) is shown
    kept = write_box(box)
    read = read_box(kept)
    assert read == pytest.approx(box, rel=1e-3)
    app = opened(across="entropy", up="cost", brush=kept)
    assert read is not None
    assert texts.brushed("toy-en-de", len(all_heads.inside(side, read)), 12) in said(app)
    for nonsense in ("1,2,3", "2,1,0,1", "nan,1,0,1", "a,b,c,d"):
        with pytest.raises(ValueError, match=r".*"):
            read_box(nonsense)
        assert "heads in the box" not in said(opened(brush=nonsense))


def test_a_head_is_shown_with_rows_costs_and_pairs(atlas: Atlas) -> None:
    app = opened(heads="head", kind="cross", layer="2", head="1")
    found = said(app)
    head: Head = ("cross", 1, 0)
    assert texts.cost(atlas, head) in found
    assert atlas.label(head).text in found
    rank = sorted(atlas.heads["cost"], reverse=True).index(atlas.row(head)["cost"]) + 1
    assert f"rank {rank} of 12" in texts.cost(atlas, head)
    own = {strip.name: strip for strip in one_head.measures(atlas, head)}
    assert own["cost"].own == atlas.row(head)["cost"]
    assert len(own["cost"].others) == 4
    assert "previous token" not in own
    opened(heads="head", kind="cross", layer="77", head="99")


def test_a_search_says_its_question_and_its_answer_in_words(atlas: Atlas) -> None:
    typed = "pos=NOUN -> pos=DET distance=-1"
    found = search(atlas, read_question(typed))
    app = opened(heads="search", ask=typed)
    assert found.question.words in said(app)
    assert found.sentence in said(app)
    bars = searching.bars_of(found)
    assert [one.lift for one in bars] == sorted((one.lift for one in bars), reverse=True)
    assert "one arrow" in said(opened(heads="search", ask="dog"))
    assert "No link begins so." in said(opened(heads="search", ask="word=zebra -> "))


def test_without_an_atlas_of_this_model_the_page_says_how_to_make_one(
    atlas: Atlas, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    shutil.copytree(folder / "toy-en-de" / ATLAS, own)
    monkeypatch.setattr(folders, "FOLDER", tmp_path)
    shutil.copytree(folder / "toy-en-de", tmp_path / "toy-en-de", ignore=shutil.ignore_patterns(ATLAS))
    assert "make one with python -m model atlas" in said(opened()).replace("`", "")
    monkeypatch.setattr("sys.argv", ["app.py", "--atlas", str(own)])
    assert texts.corpus(atlas) in said(opened())
    manifest = own / "atlas.json"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace(atlas.manifest.plan.model_hash, "f" * 12))
    assert "This atlas is of toy-en-de with the hash ffffffffffff" in said(opened())


def test_rows_are_html_in_which_tokens_are_escaped() -> None:
    row = ShownRow(0, 1, (" <b>", " x"), (" <b>", " x"), np.array([0.97, 0.0], dtype=np.float32))
    markup = shaded.rows_markup([row], ["encoder"], "a <name>")
    assert "<b>" not in markup
    assert "&lt;b&gt;" in markup
    assert 'class="w10" title="97% of the weight"' in markup
    assert 'class="attends">x' in markup
    cross = shaded.rows_markup([row], ["cross"], "name", ["cross 1.1"])
    assert re.search(r'class="attends">x</span> ← ', cross)


def test_figures_hold_the_numbers_that_they_show() -> None:
    dots = [Dot("encoder 1.1", "encoder", 1.0, 2.0, 0.0, "mixed"), Dot("cross 1.1", "cross", 3.0, 4.0, 0.04, "mixed")]
    for palette in (LIGHT, DARK):
        shown = scatter(dots, "entropy", "cost", "title", palette)
        assert [mark.points.tolist() for mark in shown.marks] == [[[1.0, 2.0]], [[3.0, 4.0]]]
        assert shown.marks[0].size < shown.marks[1].size
        figure = strips([Strip("cost", 0.2, (0.1, 0.2, 0.5))], "title", palette)
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
    rest = [Dot("encoder 1.1", "encoder", x, y, 0.0, "mixed") for x, y in (*corners, *others)]
    shown = scatter([*rest, Dot("cross 1.1", "cross", 7.0, 5.0, 1.0, "mixed")], "a", "b", "title", LIGHT)
    assert next(one.across for one in shown.notes if one.text == "cross 1.1") == side


def test_every_measure_has_a_name_and_a_meaning() -> None:
    assert set(MEASURES) == set(MEASURE_NAMES) == set(EXPLAINED)
    assert len(set(MEASURE_NAMES.values())) == len(MEASURES)
    assert texts.untagged(("zh", "en")).startswith("Parts of speech of the source are not known")
    assert texts.untagged(("en", "de")) == ""


def test_the_projection_says_what_it_draws(atlas: Atlas, toy_translator: Translator) -> None:
    space: Space = "queries and keys"
    assert get_args(Space) == SPACES
    found = project(toy_translator, atlas, space, ("cross", 1, 1), "dog")
    app = opened(heads="projection", kind="cross", layer="2", head="2", marked="dog")
    read = said(app)
    assert texts.projected(found, space) in read
    assert texts.marked(found, "dog") in read
    dogs = int(found.tokens["word"].str.casefold().eq("dog").sum())
    assert f"“dog”: {dogs} dots in " in texts.marked(found, "dog")
    assert "no such word" in texts.marked(found, "zebra")
    for colour in get_args(Colour):
        for palette in (LIGHT, DARK):
            groups = views.groups_of(found, colour, "dog", palette)
            assert sum(len(one.points) for one in groups) == len(found.tokens)
            assert [one.name for one in groups if one.marked] == ["“dog”"]
            assert len({one.colour for one in groups}) == len(groups)
            shown = projection(groups, texts.components(found), "title", palette)
            assert [mark.names for mark in shown.marks] == [one.names for one in groups]
    assert [part_of(place, 7) for place in range(8)].count("middle") == 2
    assert [part_of(0, 0), part_of(1, 1), part_of(1, 2)] == ["beginning", "end", "first third"]


def test_a_box_in_the_projection_lists_its_sentences(atlas: Atlas, toy_translator: Translator) -> None:
    found = project(toy_translator, atlas, "encoder outputs", atlas.names[0])
    x, y = (np.sort(found.tokens[name]) for name in "xy")
    box = (float(x[0]), float(x[20]), float(y[0]), float(y[-1]))
    tokens = views.inside(found, box)
    assert len(tokens) == 21
    rows = views.rows_of(found, tokens)
    assert [row.queries[row.query] for row in rows] == tokens["piece"].tolist()
    address = {"heads": "projection", "plane": "encoder outputs", "brush": write_box(box)}
    app = opened(**address)
    assert not app.exception
    brushed = re.search(r"(\d+) of (\d+) dots in the box", said(app))
    assert brushed is not None
    assert int(brushed[2]) == len(found.tokens)
    assert abs(int(brushed[1]) - 21) <= 1  # The address rounds the box.
    assert "<b>" not in shaded.rows_markup(rows, [""] * len(rows), "rows")


def test_a_click_draws_a_box_around_its_dot(atlas: Atlas, toy_translator: Translator) -> None:
    found = project(toy_translator, atlas, "token embeddings", atlas.names[0])
    shown = projection(views.groups_of(found, "position", "", LIGHT), ("", ""), "title", LIGHT)
    point = shown.marks[0].points[0]
    inside = views.inside(found, views.box_around(point, shown))
    assert inside[["x", "y"]].iloc[0].tolist() == pytest.approx(point.tolist())
