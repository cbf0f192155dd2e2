"""Pairs of runs of one model whose outputs must agree at some positions, for each test that changes its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from .dependencies import probe, reachable
from .noise import largest_change
from .outcomes import BATCH_NEIGHBOUR, FUTURE_TOKEN, GRADIENT_REACH, PADDING_AMOUNT, PADDING_CONTENT, Check
from .subject import Side, Subject


@dataclass(frozen=True, eq=False)
class Probe:
    """One run of a model, and the positions that count."""

    inputs: Tensor
    """(B, T, D) embeddings, or (B, T) ids."""
    keep: Tensor
    """(B, T) bool, True = a real token."""
    rows: Tensor
    """(B, T) bool: positions of the input sequence that count."""
    outputs: Tensor
    """(B, T') bool: outputs that count."""

    def run(self, subject: Subject) -> Tensor:
        """Return the outputs (B, T', ...). The subject has ``run_ids`` where the inputs are ids."""
        if self.inputs.dim() == 2 and subject.run_ids is not None:
            return subject.run_ids(self.inputs, self.keep)
        return subject.run(self.inputs, self.keep)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two runs, of which as many positions count; what stands there must be the same in both."""

    before: Probe
    after: Probe

    def change(self, subject: Subject, before: Tensor | None = None) -> float:
        """Return the largest change of an output that must stay; ``before``, where it is known, are those of before."""
        first = self.before.run(subject) if before is None else before
        change = self.after.run(subject)[self.after.outputs] - first[self.before.outputs]
        return largest_change(change, torch.ones(len(change), dtype=torch.bool, device=change.device))


def _as_it_is(subject: Subject, rows: Tensor, outputs: Tensor | None = None) -> Probe:
    return Probe(subject.embeddings, subject.keep, rows, rows if outputs is None else outputs)


def _changed(subject: Subject, inputs: Tensor, rows: Tensor, outputs: Tensor | None = None) -> Pair:
    """Other embeddings in the place of those of the subject."""
    counted = rows if outputs is None else outputs
    return Pair(_as_it_is(subject, rows, outputs), Probe(inputs, subject.keep, rows, counted))


def later_tokens(subject: Subject) -> Iterator[Pair]:
    """Yield a pair for each token: it changes, and outputs of earlier ones must not."""
    x, keep = subject.embeddings, subject.keep
    noise, places = probe(x), torch.arange(x.shape[1], device=keep.device)
    for t in range(1, x.shape[1]):
        changed = x.clone()
        changed[:, t] = noise[:, t]
        yield _changed(subject, changed, keep & (places < t))


def later_ids(subject: Subject) -> Iterator[Pair]:
    """Yield the same with other ids, as long as the subject knows its ids."""
    if subject.ids is None or subject.run_ids is None:
        return
    ids, keep = subject.ids, subject.keep
    places = torch.arange(ids.shape[1], device=keep.device)
    for t in range(1, ids.shape[1]):
        for other in (ids.roll(1, 1)[:, t], ids.roll(1, 0)[:, t]):
            changed = ids.clone()
            changed[:, t] = other
            rows = keep & keep[:, t : t + 1] & (places < t)
            yield Pair(Probe(ids, keep, rows, rows), Probe(changed, keep, rows, rows))


def unreachable_tokens(subject: Subject) -> Iterator[Pair]:
    """Yield a pair for each token: it changes, and the outputs that its mask keeps it from must not."""
    x, noise, may = subject.embeddings, probe(subject.embeddings), reachable(subject)
    for t in range(x.shape[1]):
        changed = x.clone()
        changed[:, t] = noise[:, t]
        yield _changed(subject, changed, subject.keep & ~may[:, :, t])


def padding(subject: Subject) -> Iterator[Pair]:
    """Yield the pair in which all padding changes."""
    x, keep = subject.embeddings, subject.keep
    yield _changed(subject, torch.where(keep[..., None], x, probe(x)), keep, subject.outputs_real)


def more_padding(subject: Subject) -> Iterator[tuple[Side, Pair]]:
    """Yield a pair for each end that is padded: the first sentence alone, a little shorter, and with padding there."""
    sentence = subject.embeddings[:1, subject.keep[0]]
    width = min(3, sentence.shape[1] // 2) or 1  # room for padding: a learned table of positions may end at T
    x = sentence[:, : max(1, sentence.shape[1] - width)]
    whole = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    noise, gap = probe(x)[:, :1].expand(-1, width, -1), torch.zeros_like(whole[:, :1]).expand(-1, width)
    for side in subject.sides:
        padded, keep = (torch.cat(two if side == "left" else two[::-1], 1) for two in ((noise, x), (gap, whole)))
        yield side, Pair(Probe(x, whole, whole, whole), Probe(padded, keep, keep, keep))


def other_samples(subject: Subject) -> Iterator[Pair]:
    """Yield two pairs for each sample: all the others change, to noise and to its opposite, and it must not."""
    x, keep, real = subject.embeddings, subject.keep, subject.outputs_real
    noise = probe(x)
    for sample, others in product(range(x.shape[0]), (noise, -noise)):  # the opposite, for what has a threshold
        changed = others.clone()
        changed[sample] = x[sample]
        own, outputs = torch.zeros_like(keep), torch.zeros_like(real)
        own[sample], outputs[sample] = keep[sample], real[sample]
        yield _changed(subject, changed, own, outputs)


def alone(subject: Subject) -> Iterator[Pair]:
    """Yield the first sentence in its batch and alone, without the padding at its right that only the batch needs."""
    if subject.output_keep is not None:
        return
    end = int(subject.keep[0].nonzero()[-1]) + 1
    keep, first = subject.keep[:1, :end], torch.zeros_like(subject.keep)
    first[0] = subject.keep[0]
    yield Pair(_as_it_is(subject, first), Probe(subject.embeddings[:1, :end], keep, keep, keep))


def _by_check(subject: Subject) -> dict[Check, Callable[[], Iterator[Pair]]]:
    return {
        FUTURE_TOKEN: lambda: (pair for find in (later_tokens, later_ids) for pair in find(subject)),
        GRADIENT_REACH: lambda: unreachable_tokens(subject),
        PADDING_CONTENT: lambda: padding(subject),
        PADDING_AMOUNT: lambda: (pair for _, pair in more_padding(subject)),
        BATCH_NEIGHBOUR: lambda: (pair for find in (other_samples, alone) for pair in find(subject)),
    }


@torch.no_grad()
def worst_pair(subject: Subject, check: Check) -> Pair | None:
    """Return the pair of a failed test whose outputs differ most; None where it changes no inputs, or nothing moves."""
    find = _by_check(subject).get(check)
    pairs = [] if find is None else [(pair.change(subject), pair) for pair in find()]
    moved = [(change, pair) for change, pair in pairs if not change <= 0]  # NaN has moved
    return max(moved, key=lambda one: (one[0] != one[0], one[0]))[1] if moved else None
