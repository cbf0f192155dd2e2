"""What a list says of a checkpoint is what the checkpoint is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from attenscope.checkpoint.card import (
    PRESET_GROUP,
    CheckpointSummary,
    group_by_direction,
    has_preset,
    summarise_checkpoint,
)
from attenscope.checkpoint.load import find_checkpoint_folder, list_checkpoints, load_checkpoint, unique_weights
from attenscope.checkpoint.measurements import read_scores


@pytest.mark.parametrize("name", ["everyday-en-de", "everyday-zh-en", "preset-shared_bpe"])
def test_a_summary_is_that_of_the_loaded_model(name: str) -> None:
    found, checkpoint = summarise_checkpoint(find_checkpoint_folder(name)), load_checkpoint(name)
    assert found.parameters == sum(one.numel() for one in unique_weights(checkpoint.model).values())
    assert found.title == checkpoint.card["title"]
    assert (found.source_language, found.target_language) == (
        checkpoint.card["source_language"],
        checkpoint.card["target_language"],
    )
    assert found.preset == name.startswith("preset-")
    raw = [one for one in read_scores(find_checkpoint_folder(name)) if one.step is None]
    assert found.score == (next(one for one in raw if one.beam == max(each.beam for each in raw)) if raw else None)


def test_groups_are_directions_and_presets_come_last() -> None:
    groups = group_by_direction(
        (summarise_checkpoint(find_checkpoint_folder(name)) for name in list_checkpoints()),
        {"en": "English", "de": "German"},
    )
    assert list(groups) == ["English → German", "zh → English", PRESET_GROUP]
    assert [one.name for one in groups["English → German"]] == ["everyday-en-de"]
    assert all(one.preset for one in groups[PRESET_GROUP])
    assert sum(map(len, groups.values())) == len(list_checkpoints())


def test_a_card_that_says_nothing_is_among_the_others() -> None:
    bare = CheckpointSummary("bare", "", "", "", 1_500_000, None, preset=False)
    assert list(group_by_direction([bare], {})) == ["Others"]


def test_a_recipe_nested_too_deep_names_no_preset(tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text("[" * 200_000)
    assert not has_preset(tmp_path)


def test_a_broken_folder_is_a_value_error(tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(find_checkpoint_folder("preset-original"), folder)
    (folder / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0not a header")
    with pytest.raises(ValueError, match=r"broken/model\.safetensors cannot be read"):
        summarise_checkpoint(folder)
