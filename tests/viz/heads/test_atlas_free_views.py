"""The views of Heads that show what is kept beside a model, on a toy model."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from attenscope.analysis.heads import ALIGNMENT_READINGS
from attenscope.atlas import heads_over_training as atlas_timeline
from attenscope.atlas.build import Corpus
from attenscope.atlas.heads_over_training import Timeline
from attenscope.atlas.pruning import Pruning, measure_pruning, shuffle_heads, translate_without_heads
from attenscope.checkpoint import load
from attenscope.checkpoint.snapshots import restore_random_initial_weights
from attenscope.experiments.lens import TrainingSnapshot
from attenscope.text.words import split_words
from attenscope.trace import KINDS, Head
from attenscope.translate import Translator
from attenscope.viz.figures import heads
from attenscope.viz.figures.figure_style import DARK, KIND_NAMES, LIGHT
from attenscope.viz.figures.heads import find_table_start_row, plot_alignment_error_rates, plot_head_pruning_curves
from attenscope.viz.heads import atlas_free_views, texts
from attenscope.viz.ui import cache
from attenscope.word_alignment.gold import read_gold
from attenscope.word_alignment.measure import AlignmentRates, measure_alignment
from tests import toy
from tests.viz.page_texts import as_read

PAGE = Path(__file__).resolve().parents[3] / "viz" / "pages" / "heads.py"
NAME = "toy-en-de"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, toy_checkpoint: Path) -> Path:
    place = tmp_path_factory.mktemp("checkpoints")
    shutil.copytree(toy_checkpoint, place / NAME)
    return place


@pytest.fixture(autouse=True)
def shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "CHECKPOINTS_FOLDER", folder)
    monkeypatch.setattr(cache, "list_checkpoint_names", lambda: [NAME])
    for one in (cache._load_model_on_device, cache.load_model_configs, cache.load_model_summaries):
        one.clear()


@pytest.fixture(scope="module")
def rates(toy_translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> AlignmentRates:
    place = tmp_path_factory.mktemp("gold")
    pairs = toy.sentences(8, seed=3)
    for name, side in (("source.txt", 0), ("target.txt", 1)):
        (place / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    words = [len(split_words(pair[0])) for pair in pairs]
    (place / "links.txt").write_text("".join(" ".join(f"{at}-{at}" for at in range(one)) + "\n" for one in words))
    return measure_alignment(toy_translator, read_gold(place))


@pytest.fixture(scope="module")
def pruned_toy(toy_translator: Translator) -> Pruning:
    sizes = dict.fromkeys(KINDS, toy_translator.model.config.heads)
    heads: list[Head] = [
        (kind, layer, head) for kind, count in sizes.items() for layer in (0, 1) for head in range(count)
    ]
    pairs = toy.sentences(3, seed=4)
    return measure_pruning(toy_translator, pairs, shuffle_heads(heads, 7), source="a.en", random_orders=2, count=3)


@pytest.fixture(scope="module")
def timeline(toy_translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    place = tmp_path_factory.mktemp("corpus")
    for name, side in (("a.en", 0), ("a.de", 1)):
        text = "".join(f"{pair[side]}\n" for pair in toy.sentences(4, seed=6))
        (place / name).write_text(text, encoding="utf-8")
    stops = [
        TrainingSnapshot(0, Translator(restore_random_initial_weights(toy_translator.checkpoint, 5))),
        TrainingSnapshot(None, toy_translator),
    ]
    return atlas_timeline.measure_timeline(stops, Corpus.read(place / "a.en", place / "a.de", 4))


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(str(PAGE), default_timeout=150)
    app.query_params.update(address)
    app.run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    shown = [one.value for one in (*app.caption, *app.info, *app.error, *app.markdown)]
    return " ".join(as_read(shown))


@pytest.mark.sweep
def test_the_alignment_says_its_rates_or_how_to_measure_them(folder: Path, rates: AlignmentRates) -> None:
    assert "python -m model align" in said(opened(heads="alignment"))
    rates.write(folder / NAME)
    found = said(opened(heads="alignment"))
    assert texts.describe_alignment(rates) in found
    assert texts.describe_gold_alignments(rates) in found
    best = min((one for one in rates.rates if one.part == "head"), key=lambda one: one.aer)
    assert f"cross {best.layer + 1}.{best.head + 1} read at" in texts.describe_alignment(rates)
    assert f"{best.aer:.1%}" in texts.describe_alignment(rates)
    assert "0.0%" in texts.describe_alignment(rates)[-6:]
    assert "drawn by hand" not in texts.describe_gold_alignments(rates)  # said of the project's own gold alone
    one_pair = texts.describe_alignment(replace(rates, held_out=math.nan))
    assert "nan" not in one_pair
    assert "chosen and measured on the same pairs" in one_pair


def test_the_table_of_rates_holds_every_rate_at_its_place(rates: AlignmentRates) -> None:
    tables = atlas_free_views.build_rate_tables(rates)
    rows = len(tables[0].rates)
    for palette in (LIGHT, DARK):
        cells = 1 - np.array(plot_alignment_error_rates(tables, "title", palette).data[0].z)
        for one in rates.rates:
            at = find_table_start_row(ALIGNMENT_READINGS.index(one.reading), rows)
            row = at + (one.layer if one.part != "all" else rows - 1)
            column = one.head if one.part == "head" else cells.shape[1] - 1
            assert cells[row, column] == pytest.approx(one.aer)
    table = atlas_free_views.tabulate_alignment_rates(rates)
    assert len(table) == len(rates.rates)
    assert table["aer"].tolist() == [one.aer for one in rates.rates]
    assert isinstance(table, pd.DataFrame)


@pytest.mark.sweep
def test_pruning_shows_the_sentence_at_every_point(
    folder: Path, pruned_toy: Pruning, toy_translator: Translator
) -> None:
    assert "python -m model prune" in said(opened(heads="pruning"))
    pruned_toy.write(folder / NAME)
    sentence = "the old dog sees a cat."
    app = opened(heads="pruning", sentence=sentence, away=str(pruned_toy.left[0]))
    assert texts.describe_pruning(pruned_toy) in said(app)
    assert texts.describe_pruning_data(pruned_toy) in said(app)
    assert app.select_slider[0].value == pruned_toy.left[0]
    removed = [pruned_toy.removed_heads(at) for at in range(3)]
    written = [one[0] for one in translate_without_heads(toy_translator, [sentence], removed)]
    rows = atlas_free_views.build_pruned_translation_rows(pruned_toy, written)
    assert [row.what for row in rows] == [f"{heads} heads" for heads in pruned_toy.left]
    for row, text in zip(rows, written, strict=True):
        assert "".join(word for word, mark in row.words if mark != "gone").split() == text.split()
    assert opened(heads="pruning", away="5").select_slider[0].value == 0


@pytest.mark.parametrize("worse", [True, False])
def test_it_is_explained_where_the_order_by_cost_loses_to_chance(pruned_toy: Pruning, worse: bool) -> None:
    whole, *rest = range(len(pruned_toy.left))
    lost, kept = ([100.0, *(0.0 for _ in rest)], [100.0 for _ in (whole, *rest)])
    by_cost, by_chance = (lost, kept) if worse else (kept, lost)
    found = replace(
        pruned_toy,
        by_cost=replace(pruned_toy.by_cost, bleu=tuple(by_cost)),
        random=tuple(replace(one, bleu=tuple(by_chance)) for one in pruned_toy.random),
    )
    assert ("A cost is that of one head alone" in texts.describe_pruning(found)) == worse


def test_the_curve_and_the_table_hold_what_was_measured(pruned_toy: Pruning) -> None:
    away = [pruned_toy.left[0] - one for one in pruned_toy.left]
    own, *random = (
        atlas_free_views.select_pruning_measure_values(one, "BLEU") for one in (pruned_toy.by_cost, *pruned_toy.random)
    )
    for palette in (LIGHT, DARK):
        shown = plot_head_pruning_curves(away, own, np.array(random), 1, "BLEU", "title", palette)
        line, dot, _, band = shown.marks
        assert line.points.tolist() == [[at, one] for at, one in zip(away, own, strict=True)]
        assert dot.points.tolist() == [[away[1], own[1]]]
        assert band.points[:3, 1].tolist() == np.min(random, 0).tolist()
        assert all(at == pruned_toy.left[0] - int(name) for at, name in shown.x.ticks)
    table = atlas_free_views.tabulate_pruning(pruned_toy)
    assert table["bleu cost"].tolist() == list(own)
    assert table.index.tolist() == list(pruned_toy.left)


@pytest.mark.sweep
def test_over_training_says_where_a_measure_began_and_ended(folder: Path, timeline: Timeline) -> None:
    assert "python -m model timeline" in said(opened(heads="over training"))
    timeline.write(folder / NAME)
    found = said(opened(heads="over training", tracked="entropy"))
    courses = timeline.courses("entropy")
    encoder = np.array([values for head, values in courses.items() if head[0] == "encoder"])
    first, last = encoder.mean(0)
    assert f"encoder self-attention {first:.2f}, then {last:.2f}" in texts.describe_measure_over_training(
        timeline, "entropy"
    )
    assert texts.describe_measure_over_training(timeline, "entropy") in found
    assert texts.explain_timeline_measure(timeline, "entropy") in found
    labels = [label for label in timeline.heads["label"] if label]
    for place in set(labels):
        counts = timeline.count_labelled_heads(place)
        assert f"{counts[0]} (random), {counts[1]} (released)" in texts.describe_measure_over_training(timeline, place)
    assert "cost" not in timeline.measures


def test_the_lines_over_training_hold_every_value(timeline: Timeline) -> None:
    courses = {str(head): (head[0], values) for head, values in timeline.courses("previous").items()}
    for palette in (LIGHT, DARK):
        shown = heads.plot_heads_over_training(courses, ["random", "released"], "previous", "title", palette)
        for at, (_, values) in enumerate(courses.values()):
            known = [[stop, value] for stop, value in enumerate(values) if not np.isnan(value)]
            assert shown.marks[2 * at + 1].points.tolist() == known
        assert {KIND_NAMES[kind] for kind, _ in courses.values()} == {name for name, _ in shown.legend}
    table = atlas_free_views.tabulate_timeline(timeline)
    assert len(table) == len(timeline.heads)
    assert set(table.index.get_level_values("step")) == {0, "released"}
