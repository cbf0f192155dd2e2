"""Recipes: read from JSON or refused with a sentence; the learning rate and the snapshots they ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from attenscope.checkpoint.load import find_checkpoint_folder, list_checkpoints, parse_config, read_checkpoint_config
from attenscope.checkpoint.recipe import RECIPE_FILE, Recipe
from attenscope.cli.train import build_config
from attenscope.network.config import TransformerConfig, make_preset_config

NAMES = {"name": "toy", "source_language": "en", "target_language": "de"}


def recipe(**fields: Any) -> Recipe:
    return Recipe(**{**NAMES, **fields})


def written(folder: Path, text: str) -> Path:
    path = folder / "recipe.json"
    path.write_text(text, encoding="utf-8")
    return path


def test_round_trip_through_json(tmp_path: Path) -> None:
    mixtures: dict[str, Any] = {"mixture": {"a": 2, "b": 0.33}, "decay_mixture": {"b": 0}}
    one = recipe(model={"d_model": 64}, facts={"licence": "CC0"}, betas=(0.8, 0.9), steps=5000, **mixtures)
    one.save(tmp_path / RECIPE_FILE)
    assert Recipe.load(tmp_path / RECIPE_FILE) == one
    assert Recipe.load(written(tmp_path, json.dumps(NAMES))) == recipe()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "cannot be read"),
        ("[1]", "must be a JSON object"),
        ("null", "must be a JSON object"),
        (json.dumps({**NAMES, "colour": 1, "batch": 2}), "unknown fields: batch, colour"),
        (json.dumps({"name": "toy"}), "incomplete: .*source_language"),
        (json.dumps({**NAMES, "steps": "many"}), "incomplete"),
        (json.dumps({**NAMES, "betas": 0.9}), "incomplete"),
    ],
)
def test_other_files_are_refused_with_a_sentence(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Recipe.load(written(tmp_path, text))


def test_an_absent_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot be read: .*No such file"):
        Recipe.load(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"steps": 0}, "steps is 0; it must be at least 1"),
        ({"average": 0}, "average is 0"),
        ({"seed": "x"}, "seed is 'x'; it must be a whole number"),
        ({"seed": -1}, "seed is -1"),
        ({"tokens_per_batch": -1}, "tokens_per_batch is -1"),
        ({"precision": "float16"}, 'precision is \'float16\'; it must be "bfloat16" or "float32"'),
        ({"schedule": "cosine"}, "schedule is 'cosine'; it must be one of 'linear', 'inverse_sqrt'"),
        ({"schedule": "inverse_sqrt"}, "decay_steps is 2000; the schedule 'inverse_sqrt' takes 0 only"),
        ({"written": "written-1.tsv"}, "written is 'written-1.tsv'; it must be a list of file names, in brackets"),
        ({"written": [1]}, r"written is \[1\]; it must be a list"),
        ({"rewritten": "a.tsv"}, "rewritten is read with a decay_mixture only"),
        ({"tuning_steps": -1}, "tuning_steps is -1; it must lie between 0 and the steps that decay_steps leaves"),
        ({"tuning_steps": 8001}, r"tuning_steps is 8001; .* \(8000\)"),
        ({"schedule": "inverse_sqrt", "decay_steps": 0, "tuning_steps": 1}, "tuning_steps is 1"),
        ({"tuning_steps": 9, "tuning_rate": 0.1}, "tuning_steps need a tuning_mixture, and a tuning_rate above 0"),
        ({"tuning_steps": 9, "tuning_mixture": {}}, "tuning_steps need a tuning_mixture, and a tuning_rate above 0"),
        ({"tuning_mixture": {}}, "tuning_mixture and tuning_rewritten are read during tuning_steps only"),
        ({"tuning_rewritten": "a.tsv"}, "tuning_mixture and tuning_rewritten are read during tuning_steps only"),
        ({"tuning_steps": 9, "tuning_rate": 0.1, "tuning_mixture": {"a": -1}}, "tuning_mixture has -1 for a"),
        ({"mixture": ["a"]}, r"mixture is \['a'\]; it must be an object of folder names and numbers"),
        ({"mixture": None}, "mixture is None"),
        ({"mixture": {"a": 1, "b": -0.5}}, "mixture has -0.5 for b; it must be a number of at least 0"),
        ({"decay_mixture": {"a": "1"}}, "decay_mixture has '1' for a"),
        ({"mixture": {"a": float("nan")}}, "mixture has nan for a"),
        ({"mixture": {"a": True}}, "mixture has True for a"),
        ({"steps": 100}, r"decay_steps is 2000; it must lie between 0 and steps \(100\)"),
    ],
)
def test_values_that_cannot_be_are_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        recipe(**fields)


def test_learning_rate_warms_up_stays_and_falls_to_zero() -> None:
    one = recipe(steps=100, warmup_steps=10, decay_steps=20, peak_rate=2.0)
    expected = {1: 0.2, 5: 1.0, 10: 2.0, 50: 2.0, 80: 2.0, 90: 1.0, 99: 0.1, 100: 0.0}
    assert {step: pytest.approx(one.rate(step)) for step in expected} == expected
    rates = [one.rate(step) for step in range(1, 101)]
    assert rates[:10] == sorted(rates[:10])
    assert rates[80:] == sorted(rates[80:], reverse=True)


def test_learning_rate_without_warm_up_or_fall() -> None:
    one = recipe(steps=10, warmup_steps=0, decay_steps=0, peak_rate=1.0)
    assert [one.rate(step) for step in range(1, 10)] == [1.0] * 9


def test_a_fall_that_begins_during_warm_up_takes_the_lower_of_both() -> None:
    one = recipe(steps=10, warmup_steps=10, decay_steps=10, peak_rate=1.0)
    assert max(one.rate(step) for step in range(1, 11)) == pytest.approx(0.5)


@pytest.mark.parametrize(("d_model", "warmup"), [(512, 4000), (128, 1), (64, 0)])
def test_the_inverse_square_root_is_that_of_section_5_3(d_model: int, warmup: int) -> None:
    warm = max(1, warmup)
    one = recipe(
        schedule="inverse_sqrt", warmup_steps=warmup, decay_steps=0, steps=100_000, peak_rate=d_model**-0.5 * warm**-0.5
    )
    for step in (1, 2, 100, 3999, 4000, 4001, 20_000, 100_000):
        assert one.rate(step) == pytest.approx(d_model**-0.5 * min(step**-0.5, step * warm**-1.5))


@pytest.mark.parametrize(
    ("steps", "count", "expected"),
    [
        (10_000, 0, ()),
        (10_000, 6, (1, 10, 100, 1000)),
        (10_000, 3, (1,)),
        (10_000, 2, ()),
        (64, 8, (1, 2, 4, 8, 16, 32)),
        (3, 9, (1, 2)),
    ],
)
def test_snapshots_stand_evenly_in_log_steps_between_the_ends(
    steps: int, count: int, expected: tuple[int, ...]
) -> None:
    assert recipe(steps=steps, decay_steps=0, snapshots=count).snapshot_steps() == expected


def test_snapshots_may_be_named_by_their_steps() -> None:
    assert recipe(steps=3000, snapshots=[64, 4, 4, 0, 3000, 9000]).snapshot_steps() == (4, 64)
    one, longer = recipe(steps=3000, snapshots=[4, 64]), recipe(steps=9000, snapshots=[4, 64])
    assert longer.find_resume_mismatches(one, 1000) == {}


def test_the_model_of_a_recipe_has_its_vocabulary_and_may_start_from_a_preset() -> None:
    plain = build_config(recipe(vocab_size=300, model={"d_model": 64}))
    assert plain == TransformerConfig(vocab_size=300, target_vocab_size=300, d_model=64)
    named = build_config(recipe(vocab_size=300, model={"preset": "annotated", "heads": 4}))
    assert named == make_preset_config("annotated", vocab_size=300, target_vocab_size=300, heads=4)


@pytest.mark.parametrize("name", list_checkpoints())
def test_the_recipe_of_a_released_model_builds_its_architecture(name: str) -> None:
    folder = find_checkpoint_folder(name)
    assert build_config(Recipe.load(folder / RECIPE_FILE)) == parse_config(folder, read_checkpoint_config(folder))


def test_a_recipe_may_name_dropout_places_as_a_list() -> None:
    assert build_config(recipe(model={"dropout_places": ["attention"]})).dropout_places == ("attention",)


@pytest.mark.parametrize("model", [{"depth": 3}, {"preset": "annotated", "depth": 3}])
def test_an_unknown_field_of_the_model_is_named(model: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="depth"):
        build_config(recipe(model=model))


@pytest.mark.parametrize(
    ("step", "change", "unlike"),
    [
        (300, {"name": "b", "save_every": 7, "dev_split": "test", "facts": {"title": "B"}}, []),
        (700, {"seed": 2, "label_smoothing": 0.0}, ["label_smoothing", "seed"]),
        (800, {"steps": 2000}, []),  # the rate has not begun to fall in either
        (801, {"steps": 2000}, ["steps"]),
        (300, {"decay_steps": 700}, []),
        (301, {"decay_steps": 700}, ["decay_steps"]),
        (1000, {"steps": 2000, "decay_steps": 1000}, ["decay_steps", "steps"]),
        (50, {"warmup_steps": 100}, ["warmup_steps"]),
        (10, {"schedule": "inverse_sqrt", "decay_steps": 0}, []),  # both are still warming up
        (11, {"schedule": "inverse_sqrt", "decay_steps": 0}, ["decay_steps", "schedule"]),
        (99, {"evaluate_every": 200, "average": 3}, []),
        (100, {"evaluate_every": 200}, ["evaluate_every"]),
        (400, {"average": 5}, []),
        (500, {"average": 5}, []),
        (600, {"average": 6}, ["average"]),
        (800, {"decay_mixture": {"a": 0}}, []),
        (801, {"decay_mixture": {"a": 0}}, ["decay_mixture"]),
        (800, {"decay_mixture": {"a": 0}, "rewritten": "r.tsv"}, []),
        (801, {"decay_mixture": {}, "rewritten": "r.tsv"}, ["decay_mixture", "rewritten"]),
        (1000, {"steps": 1100, "tuning_steps": 100, "tuning_rate": 0.1, "tuning_mixture": {}}, []),
        (1, {"mixture": {"a": 2}}, ["mixture"]),
        (1, {"unlike_dev": True}, ["unlike_dev"]),
        (1, {"byte_fallback": True, "split_digits": True}, ["byte_fallback", "split_digits"]),
        (1, {"joined_share": 0.1, "sloppy_apostrophes": True}, ["joined_share", "sloppy_apostrophes"]),
        (
            1,
            {"renumbered": 3, "renamed_share": 0.1, "shouted_share": 0.1},
            ["renamed_share", "renumbered", "shouted_share"],
        ),
        (1, {"resegmented": 1, "merge_dropout": 0.2}, ["merge_dropout", "resegmented"]),
        (4, {"snapshots": 12}, ["snapshots"]),
        (4, {"steps": 64_000}, ["steps"]),  # its snapshots stand elsewhere
    ],
)
def test_a_run_is_another_recipes_too_until_they_part(step: int, change: dict[str, Any], unlike: list[str]) -> None:
    fields = {"steps": 1000, "decay_steps": 200, "warmup_steps": 10, "evaluate_every": 100}
    fields["snapshots"] = 8 if step < 5 else 0
    begun, now = recipe(**fields), recipe(**{**fields, **change})
    assert sorted(now.find_resume_mismatches(begun, step)) == unlike
    for name, (before, after) in now.find_resume_mismatches(begun, step).items():
        assert (before, after) == (getattr(begun, name), change[name])


def test_once_two_mixtures_have_been_used_the_switch_cannot_move() -> None:
    """Where the warm-up hides the fall of the rate: it is the same in both."""
    fields: dict[str, Any] = {"warmup_steps": 1000, "steps": 1000, "decay_mixture": {"a": 0}}
    begun, now = recipe(**fields, decay_steps=900), recipe(**fields, decay_steps=800)
    assert begun.last_step_before_decay == 100
    assert [begun.rate(step) for step in range(1, 151)] == [now.rate(step) for step in range(1, 151)]
    assert now.find_resume_mismatches(begun, 100) == {}
    assert now.find_resume_mismatches(begun, 101) == {"decay_steps": (900, 800)}
