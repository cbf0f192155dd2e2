"""Training on the GPU: it learns, goes on where it was stopped, and several processes share it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from attenscope.__main__ import main
from attenscope.checkpoint.load import load_checkpoint
from attenscope.network.transformer import Transformer
from attenscope.training.trainer import Trainer
from tests import toy
from tests.model.cli.test_train import STEADY, command, free_port, losses, run
from tests.model.training.test_trainer import SMALL, recipe, weights

pytestmark = pytest.mark.gpu


def trainer(folder: Path, device: torch.device, **fields: object) -> Trainer:
    one = recipe(**fields, model={**SMALL, "dropout": 0.0})
    torch.manual_seed(one.seed)
    model = Transformer(toy.config(**one.model)).to(device)
    return Trainer(one, model, toy.batches(count=60, tokens=one.tokens_per_batch), folder)


def test_the_loss_is_that_of_the_cpu(tmp_path: Path, gpu: torch.device) -> None:
    here, there = trainer(tmp_path / "here", torch.device("cpu")), trainer(tmp_path / "there", gpu)
    expected, found = ([row.loss for row in one.run()] for one in (here, there))
    assert found == pytest.approx(expected, abs=1e-3)


def test_bfloat16_learns_the_same(tmp_path: Path, gpu: torch.device) -> None:
    steps = {"steps": 60, "warmup_steps": 10, "decay_steps": 10, "evaluate_every": 20}
    here = trainer(tmp_path / "here", gpu, **steps)
    there = trainer(tmp_path / "there", gpu, **steps, precision="bfloat16")
    expected, found = ([row.loss for row in one.run()] for one in (here, there))
    assert found[-1] < found[0]
    assert found == pytest.approx(expected, rel=0.05)


def test_it_goes_on_where_it_was_stopped(tmp_path: Path, gpu: torch.device) -> None:
    whole = trainer(tmp_path / "whole", gpu)
    list(whole.run())
    list(trainer(tmp_path / "parts", gpu).run(last=5))
    rest = trainer(tmp_path / "parts", gpu)
    assert rest.step == 5
    list(rest.run())
    for name, one in weights(whole).items():
        torch.testing.assert_close(weights(rest)[name], one, rtol=1e-4, atol=1e-5)


def test_a_state_of_the_gpu_goes_on_on_the_cpu(tmp_path: Path, gpu: torch.device) -> None:
    list(trainer(tmp_path, gpu).run(last=5))
    rest = trainer(tmp_path, torch.device("cpu"))
    assert rest.step == 5
    assert [row.step for row in rest.run()][-1] == rest.recipe.steps


def test_processes_of_torchrun_share_it(tmp_path: Path, gpu: torch.device) -> None:
    """By nccl, one process a GPU: as many as there are, two at most."""
    count = min(2, max(1, torch.cuda.device_count()))
    assert main(command(tmp_path / "one", STEADY)[2:]) == 0
    launcher = ["--nproc-per-node", str(count), "--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    run("-m", "torch.distributed.run", *launcher, "-m", "--", *command(tmp_path / "two", STEADY)[1:])
    alone, together = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert [loss for _, loss in together] == pytest.approx([loss for _, loss in alone], rel=1e-3)
    assert load_checkpoint(tmp_path / "two" / "out", gpu).model.training is False
