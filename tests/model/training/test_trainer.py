"""Training: it learns, it can be killed at any moment, and many processes give what one gives."""

from __future__ import annotations

import csv
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from attenscope.checkpoint.load import unique_weights
from attenscope.checkpoint.measurements import HistoryRow
from attenscope.checkpoint.recipe import Recipe
from attenscope.network.transformer import Transformer
from attenscope.training.data import Batches, TrainingPhase
from attenscope.training.trainer import STATE_FILE, Trainer
from tests import toy

SMALL = {"d_model": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 64, "max_length": 64}


def recipe(**fields: Any) -> Recipe:
    defaults = {
        "name": "toy",
        "source_language": "en",
        "target_language": "de",
        "vocab_size": toy.VOCABULARY,
        "steps": 12,
        "warmup_steps": 4,
        "decay_steps": 4,
        "peak_rate": 3e-3,
        "tokens_per_batch": 300,
        "save_every": 3,
        "evaluate_every": 4,
        "average": 2,
        "precision": "float32",
        "model": {**SMALL, "dropout": 0.1},
    }
    return Recipe(**{**defaults, **fields})


def trainer(folder: Path, one: Recipe, text: Any = None) -> Trainer:
    torch.manual_seed(one.seed)
    model = Transformer(toy.config(**one.model))
    return Trainer(one, model, text or toy.batches(count=60, tokens=one.tokens_per_batch), folder)


def weights(trained: Trainer) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in unique_weights(trained.model).items()}


def assert_bitwise(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    assert [name for name in one if not torch.equal(one[name], other[name])] == []


@pytest.mark.sweep
def test_the_loss_falls_and_history_says_so(tmp_path: Path) -> None:
    one = recipe(
        steps=120, decay_steps=40, warmup_steps=20, evaluate_every=20, average=1, model={**SMALL, "dropout": 0.0}
    )
    rows = list(trainer(tmp_path, one).run(evaluate=lambda model: 12.345))
    assert [row.step for row in rows] == [20, 40, 50, 60, 80, 100, 120]
    assert rows[-1].loss < 0.6 * rows[0].loss
    assert [row.bleu for row in rows] == [12.35, 12.35, None, 12.35, 12.35, 12.35, 12.35]
    assert [row.rate for row in rows] == [one.rate(row.step) for row in rows]
    with (tmp_path / "history.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert list(written[0]) == ["step", "epoch", "loss", "rate", "tokens_per_second", "seconds", "bleu"]
    assert [(int(row["step"]), float(row["loss"]), row["bleu"]) for row in written] == [
        (row.step, row.loss, "" if row.bleu is None else str(row.bleu)) for row in rows
    ]


def test_the_loss_is_the_smoothed_cross_entropy_a_token(tmp_path: Path) -> None:
    """Of the first step, before any update: by torch's own loss on the same batch."""
    one = recipe(steps=1, decay_steps=0, evaluate_every=1, model={**SMALL, "dropout": 0.0})
    fresh = trainer(tmp_path, one)
    batch = fresh.batches.batch(fresh.batches.epoch(0)[0])
    with torch.no_grad():
        logits = fresh.model(batch.source, batch.target_in).flatten(0, 1)
    expected = torch.nn.functional.cross_entropy(
        logits, batch.target_out.flatten(), label_smoothing=0.1, ignore_index=0
    )
    assert next(fresh.run()).loss == pytest.approx(expected.item(), abs=1e-3)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Trainer:
    """The unbroken run of `recipe()` at its end: with dropout, and over the end of an epoch."""
    unbroken = trainer(tmp_path_factory.mktemp("whole"), recipe())
    assert len({row.epoch for row in unbroken.run()}) > 1
    return unbroken


@pytest.mark.parametrize("stop", [1, 2, 3, 5, 7, 11])
def test_stopping_anywhere_and_going_on_changes_no_bit(tmp_path: Path, whole: Trainer, stop: int) -> None:
    first = trainer(tmp_path, recipe())
    list(first.run(last=stop))
    assert first.step == stop
    second = trainer(tmp_path, recipe())
    assert second.step == stop
    list(second.run())
    assert_bitwise(weights(whole), weights(second))
    assert_bitwise(whole.average_weights(), second.average_weights())


def test_a_listener_that_stops_at_the_last_row_has_lost_nothing(tmp_path: Path) -> None:
    """The files of the last step are there when its row arrives."""
    one = recipe(steps=8, evaluate_every=4)
    for row in trainer(tmp_path, one).run():
        if row.step == 8:
            break
    assert (tmp_path / "weights-0000008.safetensors").exists()
    assert trainer(tmp_path, one).step == 8


def test_a_kill_between_two_states_goes_back_to_the_older_one(tmp_path: Path, whole: Trainer) -> None:
    killed = trainer(tmp_path, recipe()).run()
    next(killed)
    next(killed)  # step 8 is evaluated and its weights kept, but the last state is that of step 6
    killed.close()  # type: ignore[attr-defined]
    (tmp_path / f"{STATE_FILE}.new").write_bytes(b"half a state")
    resumed = trainer(tmp_path, recipe())
    assert resumed.step == 6
    list(resumed.run())
    assert_bitwise(whole.average_weights(), resumed.average_weights())
    assert_bitwise(weights(whole), weights(resumed))


def test_a_row_after_a_resume_counts_the_steps_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after step 7, with the state of step 6, between the rows of steps 4 and 8."""
    one = recipe(steps=8, evaluate_every=4, save_every=3)
    whole = list(trainer(tmp_path / "whole", one).run())
    killed = trainer(tmp_path / "broken", one)
    train_step = killed._train_step
    monkeypatch.setattr(killed, "_train_step", lambda rows: 1 / 0 if killed.step == 7 else train_step(rows))
    with pytest.raises(ZeroDivisionError):
        list(killed.run())
    resumed = trainer(tmp_path / "broken", one)
    assert resumed.step == 6
    (row,) = resumed.run()
    assert (row.step, row.loss) == (8, whole[1].loss)
    assert row.tokens_per_second > 0


def test_averaging_is_the_mean_of_the_last_kept_weights(tmp_path: Path) -> None:
    one = recipe(steps=12, evaluate_every=3, average=3)
    trained = trainer(tmp_path, one)
    seen = [weights(trained) for row in trained.run() if row.step > 3]
    assert [path.name for path in sorted(tmp_path.glob("weights-*"))] == [
        f"weights-{step:07d}.safetensors" for step in (6, 9, 12)
    ]
    for name, mean in trained.average_weights().items():
        torch.testing.assert_close(mean, (seen[0][name] + seen[1][name] + seen[2][name]) / 3)


def test_snapshots_are_kept_between_the_random_start_and_the_end(tmp_path: Path) -> None:
    one = recipe(steps=8, snapshots=5, decay_steps=0)
    list(trainer(tmp_path / "whole", one).run())
    assert [path.name for path in sorted((tmp_path / "whole").glob("snapshot-*"))] == [
        f"snapshot-{step:07d}.safetensors" for step in (1, 2, 4)
    ]
    shorter = trainer(tmp_path / "short", one)
    list(shorter.run(last=2))
    assert_bitwise(load_file(tmp_path / "whole" / "snapshot-0000002.safetensors"), weights(shorter))


def test_gradients_are_clipped(tmp_path: Path) -> None:
    """With a tiny norm allowed, Adam's first step is all that moves a weight: at most the learning rate."""
    one = recipe(steps=1, decay_steps=0, warmup_steps=0, clip_norm=1e-30, peak_rate=1.0)
    fresh = trainer(tmp_path, one)
    before = weights(fresh)
    list(fresh.run())
    # eps is 1e-9: gradients of 1e-30 / sqrt(number of weights) leave practically nothing.
    assert all(torch.allclose(tensor, before[name], atol=1e-6) for name, tensor in weights(fresh).items())


@pytest.mark.sweep
def test_bfloat16_learns_as_well(tmp_path: Path) -> None:
    rows = list(trainer(tmp_path, recipe(steps=60, decay_steps=20, evaluate_every=10, precision="bfloat16")).run())
    assert rows[-1].loss < 0.85 * rows[0].loss


def test_history_survives_a_resume(tmp_path: Path) -> None:
    one = recipe(steps=12, evaluate_every=2, save_every=2)
    rows = list(islice(trainer(tmp_path, one).run(), 3))
    resumed = trainer(tmp_path, one)
    assert resumed.history == rows
    assert [row.step for row in resumed.run()] == [8, 10, 12]
    assert [row.step for row in resumed.history] == [2, 4, 6, 8, 10, 12]
    assert all(isinstance(row, HistoryRow) for row in resumed.history)


def test_processes_that_do_not_share_the_state_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process stands at step 7, this one at 0."""

    def all_reduce(ends: Tensor, op: object) -> None:
        assert op == torch.distributed.ReduceOp.MAX
        ends.copy_(torch.maximum(ends, torch.tensor([7, -7])))

    monkeypatch.setattr(torch.distributed, "all_reduce", all_reduce)
    model = Transformer(toy.config(**SMALL))
    with pytest.raises(ValueError, match=r"from different steps, 0 to 7: .* all machines share"):
        Trainer(recipe(), model, toy.batches(count=60), tmp_path, rank=0, world=2)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": {**SMALL, "dropout": 0.1, "heads": 4}}, "heads was 2 and is now 4"),
        ({"model": {**SMALL, "dropout": 0.1, "d_model": 64}}, "d_model was 32 and is now 64"),
        (
            {"seed": 2, "betas": (0.9, 0.99)},
            r"betas was \(0.9, 0.98\) and is now \(0.9, 0.99\); seed was 1 and is now 2",
        ),
        ({"peak_rate": 1e-3}, "peak_rate was 0.003 and is now 0.001"),
    ],
)
def test_a_state_goes_on_as_it_was_begun_or_not_at_all(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    list(trainer(tmp_path, recipe()).run(last=5))
    before = (tmp_path / STATE_FILE).read_bytes()
    with pytest.raises(ValueError, match=rf"stands at step 5 and was begun otherwise: {says}\. .*--state") as error:
        trainer(tmp_path, recipe(**change))
    assert "\n" not in str(error.value)
    assert (tmp_path / STATE_FILE).read_bytes() == before
    assert trainer(tmp_path, recipe()).step == 5


def test_other_text_does_not_go_on(tmp_path: Path) -> None:
    list(trainer(tmp_path, recipe()).run(last=5))
    with pytest.raises(ValueError, match="the text of --data or its vocabulary is another"):
        trainer(tmp_path, recipe(), toy.batches(count=61, tokens=300))


def test_other_text_of_the_same_lengths_does_not_go_on(tmp_path: Path) -> None:
    list(trainer(tmp_path, recipe()).run(last=5))
    text = toy.batches(count=60, tokens=300)
    others = [[one[0] + 1, *one[1:]] for one in text.targets]
    other = Batches(text.sources, others, 300, 60, text.seed)
    assert (other.lengths == text.lengths).all()
    with pytest.raises(ValueError, match="the text of --data or its vocabulary is another"):
        trainer(tmp_path, recipe(), other)


@pytest.mark.sweep
def test_more_steps_asked_for_before_the_rate_falls_give_the_weights_of_the_longer_run(tmp_path: Path) -> None:
    short, long = recipe(steps=12), recipe(steps=20, save_every=5)
    whole, parts = trainer(tmp_path / "whole", long), trainer(tmp_path / "parts", short)
    list(whole.run())
    list(parts.run(last=7))
    parts = trainer(tmp_path / "parts", long)
    list(parts.run())
    assert parts.step == 20
    assert_bitwise(whole.average_weights(), parts.average_weights())
    with pytest.raises(ValueError, match="steps was 20 and is now 30"):
        trainer(tmp_path / "parts", recipe(steps=30))


def mixed(one: Recipe) -> Batches:
    """60 toy pairs, the first half of them used twice and then not at all."""
    text = toy.batches(count=60, tokens=one.tokens_per_batch)
    often = [np.repeat([half, 1.0], 30) for half in (2.0, 0.0)]
    phases = [TrainingPhase(0, often[0]), TrainingPhase(one.last_step_before_decay, often[1])]
    return Batches(text.sources, text.targets, one.tokens_per_batch, 60, one.seed, phases)


@pytest.mark.parametrize("stop", [3, 7, 8, 9, 11])
def test_going_on_over_a_switch_of_mixtures_changes_no_bit(tmp_path: Path, stop: int) -> None:
    """The rate falls after step 8; what it will fall on may still change there."""
    begun, one = recipe(decay_mixture={"a": 1}), recipe(decay_mixture={"a": 0})
    whole = trainer(tmp_path / "whole", one, mixed(one))
    list(whole.run())
    first = trainer(tmp_path / "parts", begun if stop <= 8 else one, mixed(one))
    list(first.run(last=stop))
    second = trainer(tmp_path / "parts", one, mixed(one))
    list(second.run())
    assert_bitwise(weights(whole), weights(second))
    with pytest.raises(ValueError, match=r"decay_mixture was \{'a': 0\} and is now None"):
        trainer(tmp_path / "parts", recipe(), mixed(one))


@pytest.mark.parametrize("fault", ["older", "damaged", "other"])
def test_a_state_that_does_not_say_how_it_was_begun_gets_a_sentence(tmp_path: Path, fault: str) -> None:
    list(trainer(tmp_path, recipe()).run(last=5))
    path = tmp_path / STATE_FILE
    state = torch.load(path, weights_only=True)
    if fault == "older":
        del state["begun"]
    state.get("begun", {}).get("recipe", {})["gone"] = 1
    torch.save(state, path)
    if fault == "damaged":
        path.write_bytes(path.read_bytes()[:100])
    said = {"older": "does not say what", "damaged": "is damaged", "other": "was written by another version"}
    with pytest.raises(ValueError, match=rf"state\.pt {said[fault]}.*--state"):
        trainer(tmp_path, recipe())


def test_weights_of_another_run_in_the_folder_are_not_averaged(tmp_path: Path, whole: Trainer) -> None:
    """Its state was removed, and nothing else."""
    list(trainer(tmp_path, recipe(seed=2, snapshots=4)).run())
    (tmp_path / STATE_FILE).unlink()
    again = trainer(tmp_path, recipe())
    list(again.run())
    assert_bitwise(again.average_weights(), whole.average_weights())
    assert not list(tmp_path.glob("snapshot-*"))


def test_the_step_to_stop_after_may_be_done_already(tmp_path: Path) -> None:
    assert list(trainer(tmp_path, recipe()).run(last=0)) == []
