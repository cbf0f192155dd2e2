"""Training: it learns, it can be killed at any moment, and many processes give what one gives."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from model.__main__ import main
from model.checkpoint import WEIGHTS, load_checkpoint, unique_weights
from model.data import collate
from model.recipe import Recipe
from model.training import STATE, HistoryRow, Trainer
from model.transformer import Transformer

from .. import toy

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 240
"""Seconds in which a process of its own has begun, or ended, on a machine that has much else to do."""
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
    batch = collate(fresh.batches.pairs(fresh.batches.epoch(0)[0]))
    with torch.no_grad():
        logits = fresh.model(batch.source, batch.target_in).flatten(0, 1)
    expected = torch.nn.functional.cross_entropy(
        logits, batch.target_out.flatten(), label_smoothing=0.1, ignore_index=0
    )
    assert next(fresh.run()).loss == pytest.approx(expected.item(), abs=1e-3)


@pytest.mark.parametrize(
    ("stop", "bpe_dropout"), [(1, 0.0), (2, 0.0), (3, 0.0), (5, 0.0), (7, 0.0), (11, 0.0), (5, 0.2), (7, 0.2)]
)
def test_stopping_anywhere_and_going_on_changes_no_bit(tmp_path: Path, stop: int, bpe_dropout: float) -> None:
    """With dropout, of pieces too, and over the end of an epoch."""
    text = toy.batches(count=60, tokens=300, bpe_dropout=bpe_dropout)
    whole = trainer(tmp_path / "whole", recipe(), text)
    assert len({row.epoch for row in whole.run()}) > 1
    first = trainer(tmp_path / "parts", recipe(), text)
    list(first.run(last=stop))
    assert first.step == stop
    second = trainer(tmp_path / "parts", recipe(), text)
    assert second.step == stop
    list(second.run())
    assert_bitwise(weights(whole), weights(second))
    assert_bitwise(whole.averaged(), second.averaged())


def test_a_listener_that_stops_at_the_last_row_has_lost_nothing(tmp_path: Path) -> None:
    """The files of the last step are there when its row arrives."""
    one = recipe(steps=8, evaluate_every=4)
    for row in trainer(tmp_path, one).run():
        if row.step == 8:
            break
    assert (tmp_path / "weights-0000008.safetensors").exists()
    assert trainer(tmp_path, one).step == 8


def test_a_kill_between_two_states_goes_back_to_the_older_one(tmp_path: Path) -> None:
    whole, broken = trainer(tmp_path / "whole", recipe()), trainer(tmp_path / "broken", recipe())
    list(whole.run())
    killed = broken.run()
    next(killed)
    next(killed)  # step 8 is evaluated and its weights kept, but the last state is that of step 6
    killed.close()  # type: ignore[attr-defined]
    (tmp_path / "broken" / f"{STATE}.new").write_bytes(b"half a state")
    resumed = trainer(tmp_path / "broken", recipe())
    assert resumed.step == 6
    list(resumed.run())
    assert_bitwise(whole.averaged(), resumed.averaged())
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
    for name, mean in trained.averaged().items():
        torch.testing.assert_close(mean, (seen[0][name] + seen[1][name] + seen[2][name]) / 3)


def test_snapshots_are_kept_from_the_random_start_to_the_end(tmp_path: Path) -> None:
    one = recipe(steps=8, snapshots=5, decay_steps=0)
    fresh = trainer(tmp_path, one)
    start = weights(fresh)
    list(fresh.run())
    names = [f"snapshot-{step:07d}.safetensors" for step in one.snapshot_steps()]
    assert one.snapshot_steps() == (0, 1, 2, 4, 8)
    assert [path.name for path in sorted(tmp_path.glob("snapshot-*"))] == names
    assert_bitwise(load_file(tmp_path / names[0]), start)
    assert_bitwise(load_file(tmp_path / names[-1]), weights(fresh))


def test_gradients_are_clipped(tmp_path: Path) -> None:
    """With a tiny norm allowed, Adam's first step is all that moves a weight: at most the learning rate."""
    one = recipe(steps=1, decay_steps=0, warmup_steps=0, clip_norm=1e-30, peak_rate=1.0)
    fresh = trainer(tmp_path, one)
    before = weights(fresh)
    list(fresh.run())
    # eps is 1e-9: gradients of 1e-30 / sqrt(number of weights) leave practically nothing.
    assert all(torch.allclose(tensor, before[name], atol=1e-6) for name, tensor in weights(fresh).items())


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


# The command line, in processes of its own.


def command(folder: Path, one: dict[str, Any]) -> list[str]:
    """`python -m model train` on toy text; the run's state and the checkpoint go below `folder`."""
    data = toy.write_text(folder.parent / "data")
    folder.mkdir(exist_ok=True)
    path = folder / "recipe.json"
    path.write_text(json.dumps(one))
    arguments = ["--config", path, "--data", data, "--state", folder / "run", "--output", folder / "out"]
    return ["-m", "model", "train", *map(str, arguments), "--device", "cpu"]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error::UserWarning"}


def run(*command: str) -> None:
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


RUN = {
    "name": "toy-en-de",
    "source_language": "en",
    "target_language": "de",
    "facts": {"licence": "CC0"},
    "vocab_size": 120,
    "steps": 90,
    "decay_steps": 20,
    "warmup_steps": 10,
    "tokens_per_batch": 400,
    "save_every": 7,
    "evaluate_every": 30,
    "evaluate_sentences": 4,
    "average": 2,
    "model": {**SMALL, "dropout": 0.1},
}


def state_step(folder: Path) -> int:
    return torch.load(folder / "run" / STATE, weights_only=True)["step"]


def test_killed_and_started_again_gives_the_weights_of_an_unbroken_run(tmp_path: Path) -> None:
    """kill -9 in the middle of a real run; then the same command once more."""
    assert main(command(tmp_path / "whole", RUN)[2:]) == 0
    broken = command(tmp_path / "broken", RUN)
    process = subprocess.Popen([sys.executable, *broken], cwd=ROOT, env=environment(), stderr=subprocess.DEVNULL)
    wait_for_state(tmp_path / "broken", process)
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert 0 < state_step(tmp_path / "broken") < RUN["steps"]  # type: ignore[operator]
    assert not (tmp_path / "broken" / "out").exists()
    run(*broken)
    for name in ("run/weights-0000060.safetensors", "run/weights-0000090.safetensors", f"out/{WEIGHTS}"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "broken" / name).read_bytes()
    released = load_checkpoint(tmp_path / "broken" / "out")
    assert released.card == {"source_language": "en", "target_language": "de", "licence": "CC0"}
    assert (tmp_path / "broken" / "out" / "history.csv").exists()


def losses(folder: Path) -> list[tuple[int, float]]:
    with (folder / "run" / "history.csv").open(newline="") as file:
        return [(int(row["step"]), float(row["loss"])) for row in csv.DictReader(file)]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


STEADY = {**RUN, "steps": 24, "decay_steps": 8, "evaluate_every": 4, "precision": "float32", "evaluate_sentences": 1}
STEADY["model"] = {**SMALL, "dropout": 0.0}


def test_two_processes_have_the_loss_curve_of_one(tmp_path: Path) -> None:
    assert main(command(tmp_path / "one", STEADY)[2:]) == 0
    launcher = ["--nproc-per-node", "2", "--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    # The "--" keeps the launcher from reading --run as its own --run-path.
    run("-m", "torch.distributed.run", *launcher, "-m", "--", *command(tmp_path / "two", STEADY)[1:])
    alone, together = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert [step for step, _ in together] == [step for step, _ in alone] == [4, 8, 12, 16, 20, 24]
    assert [loss for _, loss in together] == pytest.approx([loss for _, loss in alone], rel=1e-4)
    assert alone[-1][1] < alone[0][1]


def pair(arguments: list[str]) -> list[subprocess.Popen[str]]:
    """Two processes of one run, started as torchrun starts them, but without its watching over them."""
    port = str(free_port())
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    return [
        subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**environment(), **group, "RANK": rank, "LOCAL_RANK": rank},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1")
    ]


def wait_for_state(folder: Path, process: subprocess.Popen[Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not (folder / "run" / STATE).exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.timeout(4 * PATIENCE)
def test_a_lost_worker_ends_the_run_with_a_sentence_and_it_goes_on_from_its_state(tmp_path: Path) -> None:
    """kill -9 to one of two processes; then the same command once more gives the curve of an unbroken run."""
    long = {**STEADY, "steps": 100, "save_every": 10, "evaluate_every": 50}
    assert main(command(tmp_path / "whole", long)[2:]) == 0
    broken = command(tmp_path / "broken", long)
    first, second = pair(broken)
    try:
        wait_for_state(tmp_path / "broken", first)
        second.kill()
        said = first.communicate(timeout=PATIENCE)[1]
    finally:
        first.kill()
        second.kill()
        second.communicate()
    assert first.returncode == 1
    assert "Another training process was lost at step" in said
    assert "Start the same command again: the run goes on from the state in" in said
    assert "Traceback" not in said
    reached = state_step(tmp_path / "broken")
    assert 0 < reached < 100
    assert not (tmp_path / "broken" / "out").exists()
    for process in pair(broken):
        said = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode == 0, said
    whole, resumed = losses(tmp_path / "whole"), losses(tmp_path / "broken")
    assert [step for step, _ in resumed] == [step for step, _ in whole] == [50, 100]
    assert [loss for _, loss in resumed] == pytest.approx([loss for _, loss in whole], rel=1e-4)
    assert load_checkpoint(tmp_path / "broken" / "out").name == "out"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"steps": 0}, "steps is 0; it must be at least 1"),
        ({"model": {"d_model": 30, "heads": 4}}, "d_model (30) must be divisible by heads (4)"),
        ({"vocab_size": 50_000}, "No vocabulary of 50000 pieces can be learned from this text"),
        ({"target_language": "fr"}, "a data folder holds train.en and train.fr"),
    ],
)
def test_what_a_person_can_mend_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], says: str
) -> None:
    assert main(command(tmp_path / "run", {**RUN, **change})[2:]) == 2
    error = capsys.readouterr().err
    assert re.match(r"python -m model train: ", error)
    assert says in error
    assert "Traceback" not in error
