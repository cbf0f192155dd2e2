"""Snapshots: small on disk, loaded as the model they were, refused by the name of their fault."""

from __future__ import annotations

import json
import lzma
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save, save_file

from attenscope.checkpoint.load import (
    CONFIG_FILE,
    Checkpoint,
    CheckpointError,
    load_checkpoint,
    save_checkpoint,
    unique_weights,
)
from attenscope.checkpoint.recipe import RECIPE_FILE, Recipe
from attenscope.checkpoint.snapshots import (
    SNAPSHOTS_FOLDER,
    START_SAMPLE,
    STEPS_SUFFIX,
    build_random_model,
    copy_snapshots_to_checkpoint,
    list_snapshot_steps,
    load_snapshot,
    pack_snapshot,
    read_initial_weight_seed,
    restore_random_initial_weights,
)
from attenscope.experiments.lens import load_training_snapshots, run_snapshots
from attenscope.network.transformer import Transformer
from tests import toy
from tests.model.checkpoint.test_load import SIZES, flip

STEPS = (3, 7, 12)
FILE = f"{SNAPSHOTS_FOLDER}/step-0000003.safetensors.xz"


def model_at(step: int) -> Transformer:
    return toy.random_model(seed=step + 1, **SIZES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small checkpoint with three snapshots."""
    (tmp_path / "run").mkdir()
    for step in STEPS:
        save_file(unique_weights(model_at(step)), tmp_path / "run" / f"snapshot-{step:07d}.safetensors")
    save_checkpoint(toy.checkpoint(model_at(99)), tmp_path / "small")
    Recipe("small", "en", "de").save(tmp_path / "small" / RECIPE_FILE)
    assert copy_snapshots_to_checkpoint(tmp_path / "run", tmp_path / "small") == STEPS
    return tmp_path / "small"


def is_kept(model: Transformer, other: Transformer) -> bool:
    """Whether no weight is off by much of its row's spread; vectors are in half precision."""
    theirs = unique_weights(other)
    for name, tensor in unique_weights(model).items():
        off, wanted = (tensor - theirs[name]).abs(), theirs[name]
        most = 0.45 * wanted.std(1, correction=0, keepdim=True) if wanted.ndim == 2 else wanted.abs() / 1024 + 1e-7
        if not (off <= most).all():
            return False
    return True


@pytest.mark.parametrize("begun", ["random weights", "trained weights"])
def test_snapshots_come_back_as_what_they_were(folder: Path, begun: str) -> None:
    if begun == "trained weights":
        Recipe("small", "en", "de", begin_from="first.json").save(folder / RECIPE_FILE)
        copy_snapshots_to_checkpoint(folder.parent / "run", folder)
    released = load_checkpoint(folder)
    assert list_snapshot_steps(folder) == STEPS
    for step in STEPS:
        found = load_snapshot(released, step, folder)
        assert is_kept(found.model, model_at(step))
        assert not is_kept(found.model, model_at(step + 1))
        assert not found.model.training
        assert found.tokenizer is released.tokenizer
        assert (found.name, found.card) == (released.name, released.card)
        assert found.hash != released.hash
    assert is_kept(released.model, model_at(99))


@pytest.mark.parametrize(("moved", "bits", "off"), [(1e-4, 2.0, 0.76), (0.1, 2.0, 0.76), (2.0, 3.3, 0.33)])
def test_a_file_is_small_and_keeps_what_has_changed(moved: float, bits: float, off: float) -> None:
    """`off`: the largest error of a weight, in standard deviations of what has changed in its row."""
    torch.manual_seed(1)
    start, change = torch.randn(256, 512), moved * torch.randn(256, 512)
    data = pack_snapshot({"weight": start + change}, {"weight": start})
    assert 8 * len(data) / start.numel() < bits
    kept = load(lzma.decompress(data))
    found = kept["weight"] * kept[f"weight{STEPS_SUFFIX}"][:, None]
    assert ((found - change).abs() / change.std(1, keepdim=True)).max() < off


def test_a_later_release_leaves_no_older_snapshot(folder: Path) -> None:
    run = folder.parent / "run"
    (run / "snapshot-0000003.safetensors").unlink()
    assert copy_snapshots_to_checkpoint(run, folder) == (7, 12)
    assert not (folder / FILE).exists()
    assert load_checkpoint(folder).name == "small"


def damaged(data: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda folder: (folder / FILE).write_bytes(data((folder / FILE).read_bytes()))


def vouched(data: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    """Change the snapshot and let config.json vouch for it."""

    def damage(folder: Path) -> None:
        from attenscope.checkpoint.load import sha256_hex

        damaged(data)(folder)
        facts = json.loads((folder / CONFIG_FILE).read_text())
        facts["sha256"][FILE] = sha256_hex((folder / FILE).read_bytes())
        (folder / CONFIG_FILE).write_text(json.dumps(facts))

    return damage


def wider(_: bytes) -> bytes:
    return pack_snapshot(unique_weights(toy.random_model(**{**SIZES, "feed_forward": 30})))


def wider_with_start(_: bytes) -> bytes:
    start = unique_weights(build_random_model(model_at(3).config, 1))
    weights = unique_weights(toy.random_model(**{**SIZES, "feed_forward": 30}))
    kept = load(lzma.decompress(pack_snapshot(weights)))
    return lzma.compress(save({**kept, START_SAMPLE: load(lzma.decompress(pack_snapshot(start, start)))[START_SAMPLE]}))


def with_stray_rows(data: bytes) -> bytes:
    kept = load(lzma.decompress(data))
    return lzma.compress(save({**kept, f"none{STEPS_SUFFIX}{STEPS_SUFFIX}": kept[START_SAMPLE].clone()}))


WIDER = r"step-0000003\.safetensors\.xz: .* has the shape .* but the configuration asks for"


def without_rows(data: bytes) -> bytes:
    kept = load(lzma.decompress(data))
    return lzma.compress(save({name: one[:1] if name.endswith(STEPS_SUFFIX) else one for name, one in kept.items()}))


def with_types(matrix: torch.dtype, rows: torch.dtype) -> Callable[[bytes], bytes]:
    """The snapshot with a matrix and its steps in other types of numbers."""

    def edit(data: bytes) -> bytes:
        kept = load(lzma.decompress(data))
        steps = next(name for name in kept if name.endswith(STEPS_SUFFIX))
        name = steps.removesuffix(STEPS_SUFFIX)
        return lzma.compress(save({**kept, name: kept[name].to(matrix), steps: kept[steps].to(rows)}))

    return edit


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (damaged(flip), r"small/snapshots/step-0000003\.safetensors\.xz is damaged or belongs to another checkpoint"),
        (damaged(lambda data: data[:-1]), r"step-0000003\.safetensors\.xz is damaged"),
        (lambda folder: (folder / FILE).unlink(), r"small has no readable snapshots/step-0000003\.safetensors"),
        (
            vouched(lambda _: b"not one"),
            r"step-0000003\.safetensors\.xz is no snapshot of this model",
        ),
        (vouched(lambda _: lzma.compress(b"not one")), r"step-0000003\.safetensors\.xz is not a safetensors file"),
        (vouched(lambda data: data[:-9]), "it cannot be unpacked"),
        (vouched(lambda _: lzma.compress(bytes(50_000_000))), "it cannot be unpacked"),
        (vouched(without_rows), "it cannot be unpacked"),
        (vouched(with_stray_rows), "it cannot be unpacked"),
        (vouched(with_types(torch.float8_e4m3fn, torch.float32)), "it cannot be unpacked"),
        (vouched(with_types(torch.int8, torch.float8_e4m3fn)), "it cannot be unpacked"),
        (vouched(wider), WIDER),
        (
            vouched(wider_with_start),
            r"step-0000003\.safetensors\.xz: .* has the shape .* but the configuration asks for",
        ),
    ],
)
def test_a_damaged_snapshot_is_refused_by_the_name_of_its_fault(
    folder: Path, damage: Callable[[Path], object], says: str
) -> None:
    damage(folder)
    released = load_checkpoint(folder)
    with pytest.raises(CheckpointError, match=says):
        load_snapshot(released, 3, folder)
    assert load_snapshot(released, 12, folder)


def test_changes_since_another_start_are_refused(folder: Path) -> None:
    Recipe("small", "en", "de", seed=2).save(folder / RECIPE_FILE)
    with pytest.raises(CheckpointError, match=r"\.xz holds what changed .* the start that is drawn here is another"):
        load_snapshot(load_checkpoint(folder), 3, folder)


def test_a_step_without_a_snapshot_lists_what_there_is(folder: Path) -> None:
    with pytest.raises(CheckpointError, match=r"small has no snapshot of step 1,000; it has: 3, 7, 12\."):
        load_snapshot(load_checkpoint(folder), 1000, folder)


def test_no_name_in_the_configuration_leads_out_of_the_folder(folder: Path) -> None:
    facts = json.loads((folder / CONFIG_FILE).read_text())
    facts["sha256"].update({"snapshots/../../step-0000009.safetensors.xz": "x", "snapshots/step-9.safetensors.xz": "x"})
    (folder / CONFIG_FILE).write_text(json.dumps(facts))
    assert list_snapshot_steps(folder) == STEPS


def test_a_file_that_is_no_snapshot_is_not_released(folder: Path) -> None:
    (folder.parent / "run" / "snapshot-0000044.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="is not a safetensors file"):
        copy_snapshots_to_checkpoint(folder.parent / "run", folder)


def test_the_random_start_is_the_one_of_the_recipes_seed(folder: Path) -> None:
    released = load_checkpoint(folder)
    torch.manual_seed(5)
    expected, after = Transformer(released.model.config), torch.rand(1)
    torch.manual_seed(5)
    Transformer(released.model.config)
    start = restore_random_initial_weights(released, 5)
    assert torch.equal(torch.rand(1), after)  # drawing it has left the generator alone
    mine, wanted = unique_weights(start.model), unique_weights(expected)
    assert all(torch.equal(mine[name], wanted[name]) for name in wanted)
    assert unique_weights(build_random_model(released.model.config, 6)).keys() == wanted.keys()
    Recipe("small", "en", "de", seed=5).save(folder / RECIPE_FILE)
    begun = unique_weights(load_snapshot(released, 0, folder).model)
    assert all(torch.equal(begun[name], wanted[name]) for name in wanted)


NAMES = {"name": "small", "source_language": "en", "target_language": "de"}


def test_a_recipe_that_says_no_seed_means_the_default(folder: Path) -> None:
    (folder / RECIPE_FILE).write_text(json.dumps(NAMES))
    assert read_initial_weight_seed(folder) == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "No such file"),
        ("{", "cannot be read"),
        ("[]", "must be a JSON object"),
        (json.dumps({**NAMES, "seed": "x"}), "seed is 'x'"),
    ],
)
def test_without_a_recipe_the_random_start_is_not_guessed(folder: Path, text: str | None, says: str) -> None:
    (folder / RECIPE_FILE).unlink()
    if text is not None:
        (folder / RECIPE_FILE).write_text(text)
    with pytest.raises(CheckpointError, match=rf"The random start of small is not known, .*recipe\.json.*{says}"):
        load_snapshot(load_checkpoint(folder), 0, folder)


def test_every_moment_reads_the_same_translation(folder: Path) -> None:
    released = load_checkpoint(folder)
    found = load_training_snapshots(released, folder)
    assert [stop.step for stop in found] == [0, *STEPS, None]
    ids = found[-1].translator.encode("der Hund sieht ein Haus.").ids
    moments = run_snapshots(found, "the dog sees a house.", ids)
    assert len({moment.reading.target_ids for moment in moments}) == 1
    assert len({moment.trace.cross.weights.shape for moment in moments if moment.trace.cross}) == 1
    assert all(0 < moment.mean_token_probability < 1 for moment in moments)
    again = found[1].translator.force("the dog sees a house.", ids)
    assert again.trace.cross is not None
    assert moments[1].trace.cross is not None
    assert (again.trace.cross.weights == moments[1].trace.cross.weights).all()


def test_snapshots_that_stayed_elsewhere_are_none(folder: Path) -> None:
    """As in the installed package, whose checkpoints come without theirs; one that is missing among them is a fault."""
    (folder / FILE).unlink()
    with pytest.raises(CheckpointError, match="step-0000003"):
        load_training_snapshots(load_checkpoint(folder), folder)
    shutil.rmtree(folder / SNAPSHOTS_FOLDER)
    assert list_snapshot_steps(folder) == ()
    assert [stop.step for stop in load_training_snapshots(load_checkpoint(folder), folder)] == [0, None]


def test_without_snapshots_there_are_the_two_ends(tmp_path: Path) -> None:
    checkpoint: Checkpoint = toy.checkpoint(model_at(99))
    save_checkpoint(checkpoint, tmp_path / "plain")
    assert [stop.step for stop in load_training_snapshots(checkpoint, tmp_path / "plain")] == [
        None
    ]  # Nobody knows its seed.
    Recipe("plain", "en", "de").save(tmp_path / "plain" / RECIPE_FILE)
    found = load_training_snapshots(load_checkpoint(tmp_path / "plain"), tmp_path / "plain")
    assert [stop.step for stop in found] == [0, None]
    assert list_snapshot_steps(tmp_path / "plain") == ()
    Recipe("plain", "en", "de", begin_from="first.json").save(tmp_path / "plain" / RECIPE_FILE)
    assert [stop.step for stop in load_training_snapshots(checkpoint, tmp_path / "plain")] == [
        None
    ]  # It began with trained weights.


def test_a_moment_that_ends_no_sentence_writes_little_more_than_the_fixed_translation(folder: Path) -> None:
    found = load_training_snapshots(load_checkpoint(folder), folder)
    moments = run_snapshots(found, "the dog sees a house.", found[-1].translator.encode("ein Haus.").ids)
    lengths = {len(one.translation.steps) for one in moments if one.translation.stop_reason == "length"}
    assert lengths == {2 * len(moments[0].reading.target_ids) + 10}
