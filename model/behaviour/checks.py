"""Eight tests of a running model's masks: change an input, and see which outputs move.

Correct models give a difference of exactly zero, and real leaks can be as small as 1e-4 beside effects of 0.2, so all
but the comparisons of two different computations (B3, B6, B7, B8) compare with zero. The probes are finite: with NaN
or infinity a correct mask looks leaky, since 0 x NaN is NaN. Outputs at padding positions are left out everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Literal

import torch
from torch import Tensor

Status = Literal["pass", "fault", "not applicable"]
Side = Literal["left", "right"]
SIDES: tuple[Side, ...] = ("left", "right")
Run = Callable[[Tensor, Tensor], Tensor]
"""(B, T, D) embeddings and (B, T) bool, True = a real token, to outputs (B, T, ...)."""

TITLES = {
    "B1": "earlier outputs stay when a later token changes",
    "B2": "real outputs stay when padding changes",
    "B3": "a sentence alone equals the same sentence padded",
    "B4": "a sentence stays when its neighbour in the batch changes",
    "B5": "outputs depend on what the mask lets them reach, and on nothing else",
    "B6": "looking does not change the output, nor does the kernel",
    "B7": "cached decoding equals one full forward",
    "B8": "without positions, permuted tokens give permuted outputs",
}


@dataclass(frozen=True, eq=False)
class Subject:
    """A model as the tests see it: one sequence of embeddings in, one sequence of outputs out."""

    run: Run
    embeddings: Tensor
    """(B, T, D), at least two samples."""
    keep: Tensor
    """(B, T) bool, True = a real token; padded at the right where there is a cache, the first sample without."""
    causal: bool
    """Whether the model is meant to hide the future."""
    output_keep: Tensor | None = None
    """(B, T') bool where the outputs are of another sequence (cross-attention), else None."""
    layers: int | None = None
    """Attention layers between input and output, for B5; None takes any number."""
    allowed: Tensor | None = None
    """(T, T) bool, True = may attend in one layer, where it is neither full nor causal (a window)."""
    padding_sides: tuple[Side, ...] | None = None
    """Where padding may change nothing. None for the sides at which ``keep`` has some, else the right: padding at the
    left does change absolute positions, and the rows of a causal mask that it leaves without keys may be NaN."""
    others: Mapping[str, Run] = field(default_factory=dict)
    """Other ways to the same outputs, by name: with capture, another kernel."""
    cached: Run | None = None
    """The same outputs, one position at a time with a key/value cache."""
    unpositioned: Run | None = None
    """The model without its position encoding."""

    @property
    def outputs_real(self) -> Tensor:
        """(B, T') bool: outputs that count."""
        return self.keep if self.output_keep is None else self.output_keep

    @property
    def sides(self) -> tuple[Side, ...]:
        """Where B3 pads."""
        return self.padding_sides or padded_sides(self.keep) or ("right",)


def padded_sides(keep: Tensor) -> tuple[Side, ...]:
    """The ends at which any sample of (B, T) has padding."""
    return tuple(side for side, end in zip(SIDES, (0, -1), strict=True) if not bool(keep[:, end].all()))


@dataclass(frozen=True)
class Outcome:
    """What one test said."""

    code: str
    status: Status
    reason: str
    difference: float = 0.0
    """The largest change of an output that should not have changed."""


def examine(subject: Subject, tolerance: float = 1e-4, codes: Collection[str] = tuple(TITLES)) -> tuple[Outcome, ...]:
    """All eight, or those asked for, in order. ``tolerance`` is relative to the largest output, where two computations
    are compared."""
    tests = (_future, _padding, _alone, _neighbour, _gradient, _ways, _cache, _permuted)
    return tuple(test(subject, code, tolerance) for code, test in zip(TITLES, tests, strict=True) if code in codes)


def examine_future(subject: Subject) -> tuple[Outcome, ...]:
    """B1, and of B5 only what is about later tokens: a window may leave earlier ones unused, and padding is for B2."""
    changed = _future(subject, "B1", 0.0)
    depends = None if changed.status == "not applicable" else dependencies(subject)
    if depends is None:
        return (changed,)
    later = torch.ones_like(depends, dtype=torch.bool).triu(1)
    leaks = subject.keep[:, :, None] & later & (depends != 0)
    return changed, _cell("B5", depends, leaks, "depends on") or _outcome("B5", 0.0)


def _outcome(code: str, difference: float, limit: float = 0.0) -> Outcome:
    if difference <= limit:  # NaN is a fault
        return Outcome(code, "pass", TITLES[code], difference)
    return Outcome(code, "fault", f"not so: {TITLES[code]}; the largest change is {difference:.2g}", difference)


def _skip(code: str, reason: str) -> Outcome:
    return Outcome(code, "not applicable", reason)


def _largest(change: Tensor, rows: Tensor) -> float:
    """Largest absolute change (B, T, ...) at the rows (B, T) that count; NaN if there is one."""
    return float(change[rows].abs().max()) if bool(rows.any()) else 0.0


def _limit(outputs: Tensor, rows: Tensor, tolerance: float) -> float:
    return tolerance * max(1.0, _largest(outputs, rows))


def _probe(like: Tensor) -> Tensor:
    """Finite noise of the same size as the embeddings, the same at every call."""
    generator = torch.Generator().manual_seed(0)
    size = float(like.detach().float().std()) or 1.0
    return (3 * size * torch.randn(like.shape, generator=generator)).to(like)


@torch.no_grad()
def _future(subject: Subject, code: str, tolerance: float) -> Outcome:
    if not subject.causal:
        return _skip(code, "the model is meant to see the future")
    if subject.output_keep is not None:
        return _skip(code, "the outputs are of another sequence")
    x, keep = subject.embeddings, subject.keep
    before, noise, worst = subject.run(x, keep), _probe(x), 0.0
    for t in range(1, x.shape[1]):
        changed = x.clone()
        changed[:, t] = noise[:, t]
        earlier = keep & (torch.arange(x.shape[1], device=keep.device) < t)
        worst = _worse(worst, _largest(subject.run(changed, keep) - before, earlier))
    return _outcome(code, worst)


def _worse(one: float, other: float) -> float:
    return other if other != other or other > one else one


@torch.no_grad()
def _padding(subject: Subject, code: str, tolerance: float) -> Outcome:
    if bool(subject.keep.all()):
        return _skip(code, "no sample has padding")
    x, keep = subject.embeddings, subject.keep
    changed = torch.where(keep[..., None], x, _probe(x))
    outcome = _outcome(code, _largest(subject.run(changed, keep) - subject.run(x, keep), subject.outputs_real))
    return _padded_at(outcome, padded_sides(keep))


def _padded_at(outcome: Outcome, sides: Sequence[Side]) -> Outcome:
    """The outcome, saying where the padding was; nowhere at an end where it stands between real tokens."""
    where = f", padded at the {' and the '.join(sides)}" if sides else ""
    return replace(outcome, reason=outcome.reason + where)


@torch.no_grad()
def _alone(subject: Subject, code: str, tolerance: float) -> Outcome:
    if subject.output_keep is not None:
        return _skip(code, "the outputs are of another sequence")
    sentence = subject.embeddings[:1, subject.keep[0]]
    width = min(3, sentence.shape[1] // 2) or 1  # room for padding: a learned table of positions may end at T
    x = sentence[:, : max(1, sentence.shape[1] - width)]
    whole = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    alone = subject.run(x, whole)
    noise, gap = _probe(x)[:, :1].expand(-1, width, -1), torch.zeros_like(whole[:, :1]).expand(-1, width)
    changes: dict[Side, float] = {}
    for side in subject.sides:
        padded, keep = (torch.cat(two if side == "left" else two[::-1], 1) for two in ((noise, x), (gap, whole)))
        changes[side] = _largest(subject.run(padded, keep)[keep] - alone[0], whole[0])
    limit = _limit(alone, whole, tolerance)
    bad = [side for side, change in changes.items() if not change <= limit]  # NaN is bad
    worst = reduce(_worse, changes.values())
    return _padded_at(_outcome(code, worst, limit), bad or subject.sides)


@torch.no_grad()
def _neighbour(subject: Subject, code: str, tolerance: float) -> Outcome:
    if subject.embeddings.shape[0] < 2:
        return _skip(code, "one sample has no neighbour")
    x, keep = subject.embeddings, subject.keep
    changed = x.clone()
    changed[1:] = _probe(x)[1:]
    first = subject.outputs_real.clone()
    first[1:] = False
    return _outcome(code, _largest(subject.run(changed, keep) - subject.run(x, keep), first))


def _gradient(subject: Subject, code: str, tolerance: float) -> Outcome:
    if subject.output_keep is not None:
        return _skip(code, "the outputs are of another sequence")
    reach, depends = reachable(subject), dependencies(subject)
    if depends is None:
        return _skip(code, "the outputs carry no gradient")
    real = subject.keep[:, :, None] & subject.keep[:, None, :]
    rows = subject.keep[:, :, None].expand_as(depends)
    leak = _cell(code, depends, rows & ~reach & (depends != 0), "depends on")
    gap = _cell(code, depends, real & reach & ~(depends > 0), "does not depend on")
    return leak or gap or _outcome(code, 0.0)


def _cell(code: str, depends: Tensor, bad: Tensor, what: str) -> Outcome | None:
    """A fault naming the first of the bad cells (B, T, T), None if there is none."""
    cells = bad.nonzero().tolist()
    if not cells:
        return None
    b, i, j = cells[0]
    reason = f"output {i + 1} of sample {b + 1} {what} input {j + 1}, and {len(cells) - 1} more"
    return Outcome(code, "fault", reason, float(depends[b, i, j]))


def dependencies(subject: Subject) -> Tensor | None:
    """(B, T, T): size of the gradient of output i by input j; None when there is no gradient.

    Each output is first projected on noise: a plain sum has no gradient through a layer norm.
    """
    x = subject.embeddings.detach().clone().requires_grad_()
    with torch.enable_grad():
        outputs = subject.run(x, subject.keep)
        if not outputs.requires_grad:
            return None
        scalars = (outputs * _probe(outputs)).flatten(2).sum((0, 2))
        found = [torch.autograd.grad(scalars[i], x, retain_graph=True)[0] for i in range(len(scalars))]
    return torch.stack(found, 1).abs().amax(-1)


def reachable(subject: Subject) -> Tensor:
    """(B, T, T) bool: inputs that may reach each output, (I + A)^layers, not A: windows add up over the layers."""
    length = subject.keep.shape[1]
    allowed = subject.allowed if subject.allowed is not None else torch.ones(length, length, dtype=torch.bool)
    step = (allowed.tril() if subject.causal else allowed).to(subject.keep.device) & subject.keep[:, None, :]
    step = (step | torch.eye(length, dtype=torch.bool, device=step.device)).float()
    reach = step
    for _ in range((subject.layers or length) - 1):
        reach = ((reach @ step) > 0).float()
    return reach > 0


@torch.no_grad()
def _ways(subject: Subject, code: str, tolerance: float) -> Outcome:
    if not subject.others:
        return _skip(code, "there is only one way through this model")
    before, worst, name = subject.run(subject.embeddings, subject.keep), 0.0, ""
    for way, run in subject.others.items():
        change = _largest(run(subject.embeddings, subject.keep) - before, subject.outputs_real)
        worst, name = (change, way) if _worse(worst, change) is change else (worst, name)
    outcome = _outcome(code, worst, _limit(before, subject.outputs_real, tolerance))
    return outcome if outcome.status == "pass" else Outcome(code, "fault", f"{outcome.reason}, {name}", worst)


@torch.no_grad()
def _cache(subject: Subject, code: str, tolerance: float) -> Outcome:
    if subject.cached is None:
        return _skip(code, "the model has no cache")
    return _equal(subject, subject.cached, code, tolerance)


def _equal(subject: Subject, run: Run, code: str, tolerance: float) -> Outcome:
    before = subject.run(subject.embeddings, subject.keep)
    change = _largest(run(subject.embeddings, subject.keep) - before, subject.outputs_real)
    return _outcome(code, change, _limit(before, subject.outputs_real, tolerance))


@torch.no_grad()
def _permuted(subject: Subject, code: str, tolerance: float) -> Outcome:
    if subject.unpositioned is None:
        return _skip(code, "the position encoding cannot be taken out")
    if subject.causal or subject.allowed is not None or subject.output_keep is not None:
        return _skip(code, "the mask is built inside and cannot be permuted with the tokens")
    order = torch.arange(subject.keep.shape[1] - 1, -1, -1, device=subject.keep.device)
    before = subject.unpositioned(subject.embeddings, subject.keep)
    after = subject.unpositioned(subject.embeddings[:, order], subject.keep[:, order])
    change = _largest(after - before[:, order], subject.keep[:, order])
    return _outcome(code, change, _limit(before, subject.keep, tolerance))
