"""The eight mask tests by name, their outcomes, the limits of noise, and which output depends on which input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ..language import join_items, say, to_say
from .subjects import Subject

Status = Literal["pass", "fault", "not applicable"]
STATUS_NAMES: dict[Status, str] = {
    "pass": to_say("pass"),
    "fault": to_say("fault"),
    "not applicable": to_say("not applicable"),
}


@dataclass(frozen=True)
class Check:
    """One of the tests."""

    number: str
    """B1 to B8."""
    code: str
    """Readable, as the codes of the diagnosis are."""
    title: str
    """The statement that holds where it passes: a message for :func:`..language.say`."""

    def __str__(self) -> str:
        return f"{self.code} ({self.number})"


FUTURE_TOKEN = Check("B1", "future-token", to_say("earlier outputs stay when a later token changes"))
PADDING_CONTENT = Check("B2", "padding-content", to_say("real outputs stay when padding changes"))
PADDING_AMOUNT = Check("B3", "padding-amount", to_say("a sentence alone equals the same sentence padded"))
BATCH_NEIGHBOUR = Check("B4", "batch-neighbour", to_say("a sentence stays when its neighbour in the batch changes"))
GRADIENT_REACH = Check(
    "B5", "gradient-reach", to_say("outputs depend on what the mask lets them reach, and on nothing else")
)
OBSERVER = Check("B6", "observer", to_say("observing does not change the output, nor does the kernel"))
CACHE = Check("B7", "cache", to_say("cached decoding equals one full forward"))
POSITION_FREE = Check("B8", "position-free", to_say("without positions, permuted tokens give permuted outputs"))
CHECKS = (
    *(FUTURE_TOKEN, PADDING_CONTENT, PADDING_AMOUNT, BATCH_NEIGHBOUR),
    *(GRADIENT_REACH, OBSERVER, CACHE, POSITION_FREE),
)
"""In the order in which they run."""


@dataclass(frozen=True)
class Outcome:
    """The result of one test."""

    check: Check
    status: Status
    reason: str
    """Why, in the language in which the test ran."""
    difference: float = 0.0
    """The largest change of an output that should not have changed."""

    @property
    def code(self) -> str:
        return self.check.code


def select_checks(names: Iterable[str]) -> tuple[Check, ...]:
    """Return the tests that are named by number or by code, in their order. Raises ValueError for another name."""
    chosen = set(names)
    if unknown := chosen - {name for check in CHECKS for name in (check.number, check.code)}:
        raise ValueError(
            say(
                "There is no behaviour test {unknown}; there are {known}.",
                unknown=join_items(sorted(unknown)),
                known=join_items(map(str, CHECKS)),
            )
        )
    return tuple(check for check in CHECKS if chosen & {check.number, check.code})


def judge_difference(check: Check, difference: float, limit: float = 0.0, where: str = "") -> Outcome:
    """Return the outcome of a test that is passed up to a limit; NaN is a fault.

    ``where``, a clause in the current language, says where or how the change was made; it ends the reason.
    """
    title = say(check.title)
    if difference <= limit:
        return Outcome(check, "pass", say("{title}, {where}", title=title, where=where) if where else title, difference)
    said = {"title": title, "change": difference}
    reason = (
        say("not so: {title}; the largest change is {change:.2g}, {where}", where=where, **said)
        if where
        else say("not so: {title}; the largest change is {change:.2g}", **said)
    )
    return Outcome(check, "fault", reason, difference)


def not_applicable_outcome(check: Check, reason: str) -> Outcome:
    """Return the outcome of a test that a subject does not allow, for a reason in the current language."""
    return Outcome(check, "not applicable", reason)


# How far outputs may change by noise alone: rounding, and another batch size.


_ROUNDING_UNITS, _MAX_NOISE_UNITS = 64, 256
"""Units of rounding of the largest output: those that are always granted, and those that a model may need."""


def largest_change(change: Tensor, rows: Tensor) -> float:
    """Return the largest absolute change (B, T, ...) at the rows (B, T) that count; NaN if there is one."""
    return float(change[rows].abs().max()) if bool(rows.any()) else 0.0


def larger_change(one: float, other: float) -> float:
    """Return the larger of two changes, NaN being the largest."""
    return other if other != other or other > one else one


def tolerance_limit(outputs: Tensor, rows: Tensor, tolerance: float) -> float:
    """Return how far two computations may differ: ``tolerance`` of the largest output (B, T, ...), or of 1."""
    return tolerance * max(1.0, largest_change(outputs, rows))


def rounding_limit(outputs: Tensor, rows: Tensor) -> float:
    """Return what rounding alone may change in outputs (B, T, ...), as in a Fourier transform."""
    return tolerance_limit(outputs, rows, _ROUNDING_UNITS * torch.finfo(outputs.dtype).eps)


def noise_limit(subject: Subject, outputs: Tensor) -> float:
    """Return the largest change of (B, T', ...) outputs that is no more than the noise of this model.

    That is rounding, as of a softmax before the mask, and within bounds what another batch size changes.
    """
    rows = subject.real_output_mask
    granted = rounding_limit(outputs, rows)
    if subject.output_keep is not None:
        return granted
    alone = subject.run(subject.embeddings[:1], subject.keep[:1])
    return max(
        granted, min(largest_change(outputs[:1] - alone, rows[:1]), granted * _MAX_NOISE_UNITS / _ROUNDING_UNITS)
    )


def is_more_than_rounding(depends: Tensor) -> Tensor:
    """Return where (B, T, T) gradients are more than rounding beside the largest of their row; NaN is."""
    row = depends.nan_to_num().amax(-1, keepdim=True)
    return ~(depends <= _ROUNDING_UNITS * torch.finfo(depends.dtype).eps * row)


# Which output depends on which input, by gradients, and which may, by the mask.


def make_probe_noise(like: Tensor) -> Tensor:
    """Return finite noise of the size of the embeddings `like`, the same at every call."""
    generator = torch.Generator().manual_seed(0)
    size = float(like.detach().float().std()) or 1.0
    return (3 * size * torch.randn(like.shape, generator=generator, device="cpu")).to(like)


def measure_dependencies(subject: Subject) -> Tensor | None:
    """Return the size of the gradient of output i by input j, (B, T, T); None when no gradient can be taken.

    Each output is first projected on noise: a plain sum has no gradient through a layer norm.
    """
    x = subject.embeddings.detach().clone().requires_grad_()
    with torch.enable_grad():
        try:
            outputs = subject.run(x, subject.keep)
        except NotImplementedError:  # a kernel without gradients on this device, as flex_attention on a processor
            return None
        if not outputs.requires_grad:
            return None
        scalars = (outputs * make_probe_noise(outputs)).flatten(2).sum((0, 2))
        try:
            gradients = [torch.autograd.grad(scalars[i], x, retain_graph=True)[0] for i in range(len(scalars))]
        except RuntimeError:  # a model that changes its own state in place, as RWKV does, or without a way to x
            return None
    return torch.stack(gradients, 1).abs().amax(-1)


def find_reachable_inputs(subject: Subject) -> Tensor:
    """Return which inputs may reach each output, (B, T, T) bool: windows add up over the layers."""
    length = subject.keep.shape[1]
    device = subject.keep.device
    everything = torch.ones(length, length, dtype=torch.bool, device=device)
    allowed = everything if subject.allowed is None else subject.allowed.to(device)
    within = everything.tril(subject.ahead) if subject.causal else everything
    step = allowed & within & subject.keep[:, None, :]
    reached = compute_layer_reach(step.cpu().numpy(), subject.layers or length)
    return torch.from_numpy(reached).to(device) & within


def compute_layer_reach(allowed: np.ndarray, layers: int) -> np.ndarray:
    """Return what is reached through so many layers of one mask (..., T, T) with a residual stream: (I + A)^layers."""
    step = (allowed | np.eye(allowed.shape[-1], dtype=bool)).astype(np.float32)
    reached = step
    for _ in range(layers - 1):
        reached = ((reached @ step) > 0).astype(np.float32)
    return reached > 0
