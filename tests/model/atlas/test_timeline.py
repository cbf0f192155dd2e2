"""Heads over a training: the last stop is what an atlas of the same text says, and the file that is kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from attenscope.atlas.build import Corpus, build_atlas
from attenscope.atlas.files import HEADS_TABLE
from attenscope.atlas.heads_over_training import TIMELINE_FILE, Timeline, TimelineError, measure_timeline, read_timeline
from attenscope.atlas.query import open_atlas, released_atlas_folder
from attenscope.checkpoint.load import CHECKPOINTS_FOLDER, find_checkpoint_folder, read_checkpoint_config
from attenscope.checkpoint.snapshots import restore_random_initial_weights
from attenscope.experiments.lens import TrainingSnapshot
from attenscope.translate import Translator
from tests import toy


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("corpus")
    for name, side in (("a.en", 0), ("a.de", 1)):
        lines = [pair[side] for pair in toy.sentences(9, seed=6)]
        (folder / name).write_text("".join(f"{line}\n" for line in [*lines, ""]), encoding="utf-8")
    return Corpus.read(folder / "a.en", folder / "a.de", 4)


@pytest.fixture(scope="module")
def found(toy_translator: Translator, corpus: Corpus) -> Timeline:
    stops = [
        TrainingSnapshot(0, Translator(restore_random_initial_weights(toy_translator.checkpoint, 5))),
        TrainingSnapshot(None, toy_translator),
    ]
    return measure_timeline(stops, corpus, costs=True)


@pytest.mark.sweep
def test_the_last_stop_equals_an_atlas_and_the_first_does_not(
    found: Timeline, toy_translator: Translator, corpus: Corpus, tmp_path: Path
) -> None:
    build_atlas(toy_translator, corpus, tmp_path / "atlas")
    heads = pd.read_parquet(tmp_path / "atlas" / f"{HEADS_TABLE}.parquet")
    atlas = open_atlas(tmp_path / "atlas", toy_translator.name, toy_translator.checkpoint.hash)
    last = found.heads[found.heads["stop"] == 1].reset_index(drop=True)
    first = found.heads[found.heads["stop"] == 0].reset_index(drop=True)
    assert found.sentences == 9
    assert last["label"].tolist() == [atlas.label(head).place or "" for head in atlas.names]
    for name in found.measures:
        np.testing.assert_allclose(last[name], heads[name], atol=1e-9)
    assert abs(first["entropy"] - last["entropy"]).max() > 0.1


def test_courses_and_labels_are_those_of_the_rows(found: Timeline) -> None:
    courses = found.courses("top")
    assert len(courses) == 12
    for head, values in courses.items():
        same = [tuple(row) == head for row in found.heads[["map", "layer", "head"]].itertuples(index=False)]
        assert values == tuple(found.heads["top"][same])
    for place in set(found.heads["label"]) - {""}:
        by_hand = [sum(found.heads.query("stop == @stop")["label"] == place) for stop in (0, 1)]
        assert found.count_labelled_heads(place) == tuple(by_hand)


def test_what_is_kept_is_read_back_and_nothing_else_is(found: Timeline, tmp_path: Path) -> None:
    found.write(tmp_path)
    own = found.model, found.model_hash
    read = read_timeline(tmp_path, *own)
    assert read.steps == (0, None)
    assert read.heads["label"].tolist() == found.heads["label"].tolist()
    for name in found.measures:
        np.testing.assert_allclose(read.heads[name], found.heads[name], atol=1e-5)
    with pytest.raises(TimelineError, match="the model here is other with 000"):
        read_timeline(tmp_path, "other", "000")
    kept = json.loads((tmp_path / TIMELINE_FILE).read_text(encoding="utf-8"))
    damages: tuple[dict[str, object], ...] = ({"steps": [0]}, {"steps": []}, {"heads": {"stop": [1]}}, {"heads": 3})
    for damage in damages:
        (tmp_path / TIMELINE_FILE).write_text(json.dumps(kept | damage))
        with pytest.raises(TimelineError, match="is damaged"):
            read_timeline(tmp_path, *own)
    with pytest.raises(TimelineError, match="python -m model timeline"):
        read_timeline(tmp_path / "nowhere", *own)


def test_a_text_that_cannot_be_read_is_refused(toy_translator: Translator, tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("\n\n")
    with pytest.raises(TimelineError, match="can read no line"):
        measure_timeline([TrainingSnapshot(None, toy_translator)], Corpus.read(tmp_path / "a.en", tmp_path / "a.en", 4))


@pytest.mark.parametrize("name", sorted(path.parent.name for path in CHECKPOINTS_FOLDER.glob(f"*/{TIMELINE_FILE}")))
def test_a_released_timeline_ends_with_the_released_atlas(name: str) -> None:
    weights = read_checkpoint_config(find_checkpoint_folder(name))["sha256"]["model.safetensors"][:12]
    found = read_timeline(find_checkpoint_folder(name), name, weights)
    atlas = open_atlas(released_atlas_folder(name), name, weights)
    assert found.steps[-1] is None
    if (found.source, found.sentences) == (atlas.manifest.plan.source, atlas.manifest.sentences):
        for measure in found.measures:
            ends = np.array([values[-1] for values in found.courses(measure).values()])
            np.testing.assert_allclose(ends, atlas.heads[measure], atol=1e-4)
