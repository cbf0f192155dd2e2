"""Heads taken away: rows of a batch against the model changed head by head, the orders, and the file that is kept."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from pathlib import Path

import pytest
import sacrebleu

from attenscope.atlas.files import AtlasError
from attenscope.atlas.pruning import (
    PRUNING_FILE,
    Pruning,
    PruningError,
    check_pruning_matches_atlas,
    choose_head_counts,
    mean_log_prob_without_heads,
    measure_pruning,
    order_heads_by_cost,
    read_pruning,
    shuffle_heads,
    translate_without_heads,
)
from attenscope.atlas.query import Atlas, open_atlas, released_atlas_folder
from attenscope.checkpoint.load import CHECKPOINTS_FOLDER, find_checkpoint_folder, read_checkpoint_config
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import parse_changes
from attenscope.trace import Head
from attenscope.translate import Translator
from tests import toy

PAIRS = toy.sentences(6, seed=9)


@pytest.fixture(scope="module")
def pruning(toy_translator: Translator, atlas: Atlas) -> Pruning:
    order = order_heads_by_cost(atlas)
    return measure_pruning(toy_translator, PAIRS, order, source="a.en", first_line=4, random_orders=2, count=4)


def changes_of(heads: frozenset[Head]) -> str:
    return ", ".join(f"{kind}.{layer + 1}.{head + 1}:off" for kind, layer, head in sorted(heads))


def test_rows_of_a_batch_translate_as_the_model_with_its_heads_switched_off(
    toy_translator: Translator, atlas: Atlas
) -> None:
    order = order_heads_by_cost(atlas)
    removed = [frozenset(order[:count]) for count in (0, 1, 5, 12)]
    sources = [source for source, _ in PAIRS]
    found = translate_without_heads(toy_translator, sources, removed)
    for heads, texts in zip(removed, found, strict=True):
        with apply_changes(toy_translator.model, parse_changes(changes_of(heads))):
            assert texts == [toy_translator.translate(source, capture=False).text for source in sources]
            steps = [toy_translator.force(source, target, capture=False).steps for source, target in PAIRS]
        log_probs = [step.log_prob for one in steps for step in one]
        expected = sum(log_probs) / len(log_probs)
        assert mean_log_prob_without_heads(toy_translator, PAIRS, heads) == pytest.approx(expected, abs=1e-5)


def test_the_order_of_costs_is_that_of_the_atlas_and_chance_does_not_depend_on_it(atlas: Atlas) -> None:
    order = order_heads_by_cost(atlas)
    costs = [float(atlas.row(head)["cost"]) for head in order]
    assert costs == sorted(costs)
    assert sorted(order) == sorted(atlas.names)
    assert shuffle_heads(order, 3) == shuffle_heads(order[::-1], 3) != shuffle_heads(order, 4)
    assert choose_head_counts(96, 13) == tuple(range(96, -1, -8))
    assert choose_head_counts(3, 13) == (3, 2, 1, 0)
    without = Atlas(atlas.folder, atlas.manifest, atlas.heads.drop(columns="cost"), atlas.halves)
    with pytest.raises(AtlasError, match="has no costs"):
        order_heads_by_cost(without)


def test_every_course_begins_with_the_whole_model_and_is_scored_by_sacrebleu(
    toy_translator: Translator, pruning: Pruning
) -> None:
    assert pruning.left == (12, 8, 4, 0)
    references = [[target for _, target in PAIRS]]
    texts = [toy_translator.translate(source, capture=False).text for source, _ in PAIRS]
    assert pruning.by_cost.bleu[0] == pytest.approx(sacrebleu.corpus_bleu(texts, references).score)
    for course in pruning.random:
        assert course.bleu[0] == pruning.by_cost.bleu[0]
        assert course.bleu[-1] == pruning.by_cost.bleu[-1]
        assert course.log_prob[-1] == pruning.by_cost.log_prob[-1]
    assert pruning.removed_heads(0) == frozenset()
    assert pruning.removed_heads(1) == frozenset(pruning.order[:4])
    assert pruning.find_fewest_heads_keeping_bleu(0.9, [10.0, 9.5, 8.0, 9.9]) == 8
    assert pruning.find_fewest_heads_keeping_bleu(0.9, [10.0, 8.0, 9.5, 9.9]) == 12


def test_what_is_kept_is_read_back_and_nothing_else_is(pruning: Pruning, tmp_path: Path) -> None:
    pruning.write(tmp_path)
    own = pruning.model, pruning.model_hash
    assert read_pruning(tmp_path, *own) == pruning
    with pytest.raises(PruningError, match="the model here is other with 000"):
        read_pruning(tmp_path, "other", "000")
    kept = json.loads((tmp_path / PRUNING_FILE).read_text(encoding="utf-8"))
    damages: tuple[dict[str, object], ...] = ({"left": [12, 8]}, {"by_cost": {"bleu": []}}, {"order": 7}, {"more": 1})
    for damage in damages:
        (tmp_path / PRUNING_FILE).write_text(json.dumps(kept | damage))
        with pytest.raises(PruningError, match="is damaged"):
            read_pruning(tmp_path, *own)
    with pytest.raises(PruningError, match="python -m model prune"):
        read_pruning(tmp_path / "nowhere", *own)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in CHECKPOINTS_FOLDER.glob(f"*/{PRUNING_FILE}")))
def test_a_released_measurement_is_of_the_released_model(name: str) -> None:
    weights = read_checkpoint_config(find_checkpoint_folder(name))["sha256"]["model.safetensors"][:12]
    found = read_pruning(find_checkpoint_folder(name), name, weights)
    assert found.by_cost.bleu[0] > found.by_cost.bleu[-1]
    assert {one.bleu[0] for one in found.random} == {found.by_cost.bleu[0]}
    check_pruning_matches_atlas(found, open_atlas(released_atlas_folder(name), name, weights))
    said = " ".join((CHECKPOINTS_FOLDER.parent / "docs" / "head-measures.md").read_text(encoding="utf-8").split())
    assert f"each measured on {found.sentences} sentences" in said


DATA = Path(os.environ.get("ATTENSCOPE_DATA", "/nowhere"))
DEV_FILES = {
    "everyday-en-de": ("tatoeba/dev.en", "tatoeba/dev.de"),
    "everyday-zh-en": ("zh-en/dev.zh", "zh-en/dev.en"),
}


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="set ATTENSCOPE_DATA to the folder of the parallel texts")
@pytest.mark.parametrize("name", DEV_FILES)
def test_a_released_measurement_comes_out_again(name: str) -> None:
    """Its sentences are those of the data, and one of its points, of half of the heads, is what they give."""
    weights = read_checkpoint_config(find_checkpoint_folder(name))["sha256"]["model.safetensors"][:12]
    found = read_pruning(find_checkpoint_folder(name), name, weights)
    sides = [(DATA / path).read_text(encoding="utf-8").splitlines() for path in DEV_FILES[name]]
    first = found.first_line - 1
    pairs = [(source.strip(), target.strip()) for source, target in zip(*sides, strict=True)]
    pairs = pairs[first : first + found.sentences]
    lines = "".join(f"{source}\t{target}\n" for source, target in pairs)
    assert found.pairs_sha256 == hashlib.sha256(lines.encode()).hexdigest()
    at = len(found.left) // 2
    removed = frozenset(found.order[: len(found.order) - found.left[at]])
    translator = Translator.load(find_checkpoint_folder(name))
    (texts,) = translate_without_heads(translator, [source for source, _ in pairs], [removed])
    again = sacrebleu.corpus_bleu(texts, [[target for _, target in pairs]]).score
    assert again == pytest.approx(found.by_cost.bleu[at], abs=0.3)


def test_a_measurement_names_its_sentences_and_is_refused_beside_other_costs(pruning: Pruning, atlas: Atlas) -> None:
    lines = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
    assert pruning.pairs_sha256 == hashlib.sha256(lines.encode()).hexdigest()
    check_pruning_matches_atlas(pruning, atlas)
    with pytest.raises(PruningError, match="in the order of other costs"):
        check_pruning_matches_atlas(dataclasses.replace(pruning, order=pruning.order[::-1]), atlas)
