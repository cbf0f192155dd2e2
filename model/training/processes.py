"""Training on many processes: one group, gradients summed over it, all at the same step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..language.say import say


class WorkerLostError(RuntimeError):
    """The loss of another process of a distributed run."""


@contextmanager
def process_group(device: torch.device) -> Iterator[tuple[int, int]]:
    """Join torchrun's group if it started this process, each on a GPU of its own: (rank, world size), else (0, 1)."""
    if "RANK" not in os.environ:
        yield 0, 1
        return
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


def sum_gradients(model: nn.Module, loss: Tensor | None) -> float:
    """Put the sum of all processes' gradients in place of this one's, and return the sum of their losses.

    One buffer for all of it; None for a process that had no sentence. RuntimeError when another process is lost.
    """
    parameters = list(model.parameters())
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    summed = torch.zeros(1, device=parameters[0].device) if loss is None else loss.detach().view(1)
    buffer = torch.cat([gradient.flatten() for gradient in gradients] + [summed])
    dist.all_reduce(buffer)
    parts = buffer[:-1].split([p.numel() for p in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.grad = part.view_as(parameter)
    return buffer[-1].item()


def check_same_step(step: int, device: torch.device, folder: Path) -> None:
    """ValueError unless all processes stand at the same step: machines that do not share `folder` would not."""
    ends = torch.tensor([step, -step], device=device)
    dist.all_reduce(ends, dist.ReduceOp.MAX)
    last, first = ends[0].item(), -ends[1].item()
    if first != last:
        raise ValueError(
            say(
                "The processes would go on from different steps, {first} to {last}: the folder of the state "
                "({folder}) must be one that all machines share; choose it with --state.",
                first=first,
                last=last,
                folder=folder,
            )
        )
