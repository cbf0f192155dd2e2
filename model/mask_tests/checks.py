"""Eight tests of a running model's masks: they change an input and see which outputs move."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product

import torch
from torch import Tensor

from ..language import say, to_say
from .outcomes import (
    BATCH_NEIGHBOUR,
    CACHE,
    CHECKS,
    FUTURE_TOKEN,
    GRADIENT_REACH,
    OBSERVER,
    PADDING_AMOUNT,
    PADDING_CONTENT,
    POSITION_FREE,
    Check,
    Outcome,
    find_reachable_inputs,
    is_more_than_rounding,
    judge_difference,
    larger_change,
    largest_change,
    make_probe_noise,
    measure_dependencies,
    noise_limit,
    not_applicable_outcome,
    rounding_limit,
    select_checks,
    tolerance_limit,
)
from .subjects import SequenceSide, Subject, find_padded_sides

# Pairs of runs of one model whose outputs must agree at some positions, for each test that changes its inputs.


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
class ProbePair:
    """Two runs, of which as many positions count; what stands there must be the same in both."""

    before: Probe
    after: Probe

    def change(self, subject: Subject, before: Tensor | None = None) -> float:
        """Return the largest change of an output that must stay; ``before`` are the first outputs, where known."""
        first = self.before.run(subject) if before is None else before
        change = self.after.run(subject)[self.after.outputs] - first[self.before.outputs]
        return largest_change(change, torch.ones(len(change), dtype=torch.bool, device=change.device))


def _make_unchanged_probe(subject: Subject, rows: Tensor, outputs: Tensor | None = None) -> Probe:
    return Probe(subject.embeddings, subject.keep, rows, rows if outputs is None else outputs)


def _build_probe_pair(subject: Subject, inputs: Tensor, rows: Tensor, outputs: Tensor | None = None) -> ProbePair:
    """Return the subject as it is, and with other embeddings in the place of its own."""
    counted = rows if outputs is None else outputs
    return ProbePair(_make_unchanged_probe(subject, rows, outputs), Probe(inputs, subject.keep, rows, counted))


def make_later_token_pairs(subject: Subject) -> Iterator[ProbePair]:
    """Yield a pair for each token: it changes, and outputs of earlier ones must not."""
    x, keep = subject.embeddings, subject.keep
    noise, places = make_probe_noise(x), torch.arange(x.shape[1], device=keep.device)
    for t in range(1 + subject.ahead, x.shape[1]):
        changed = x.clone()
        changed[:, t] = noise[:, t]
        yield _build_probe_pair(subject, changed, keep & (places < t - subject.ahead))


def make_unpadded_later_token_pairs(subject: Subject) -> Iterator[ProbePair]:
    """Yield the same pairs with every token called real; none where every token is.

    Where nothing is padded, some models are given no mask at all.
    """
    whole = torch.ones_like(subject.keep)
    for pair in () if bool(subject.keep.all()) else make_later_token_pairs(subject):
        yield ProbePair(replace(pair.before, keep=whole), replace(pair.after, keep=whole))


def make_later_id_pairs(subject: Subject) -> Iterator[ProbePair]:
    """Yield two pairs for each token: its id changes, and outputs of earlier ones must not; none without ids."""
    if subject.ids is None or subject.run_ids is None:
        return
    ids, keep = subject.ids, subject.keep
    places = torch.arange(ids.shape[1], device=keep.device)
    for t in range(1 + subject.ahead, ids.shape[1]):
        for other in (ids.roll(1, 1)[:, t], ids.roll(1, 0)[:, t]):
            changed = ids.clone()
            changed[:, t] = other
            rows = keep & keep[:, t : t + 1] & (places < t - subject.ahead)
            yield ProbePair(Probe(ids, keep, rows, rows), Probe(changed, keep, rows, rows))


def make_unreachable_token_pairs(subject: Subject) -> Iterator[ProbePair]:
    """Yield a pair for each token: it changes, and the outputs that its mask keeps it from must not."""
    x, noise, may = subject.embeddings, make_probe_noise(subject.embeddings), find_reachable_inputs(subject)
    for t in range(x.shape[1]):
        changed = x.clone()
        changed[:, t] = noise[:, t]
        yield _build_probe_pair(subject, changed, subject.keep & ~may[:, :, t])


def make_padding_content_pair(subject: Subject) -> Iterator[ProbePair]:
    """Yield the pair in which all padding changes."""
    x, keep = subject.embeddings, subject.keep
    yield _build_probe_pair(
        subject, torch.where(keep[..., None], x, make_probe_noise(x)), keep, subject.real_output_mask
    )


def make_padding_amount_pairs(subject: Subject) -> Iterator[tuple[SequenceSide, ProbePair]]:
    """Yield a pair for each end that is padded: the first sentence alone, a little shorter, and with padding there."""
    sentence = subject.embeddings[:1, subject.keep[0]]
    width = min(3, sentence.shape[1] // 2) or 1  # room for padding: a learned table of positions may end at T
    x = sentence[:, : max(1, sentence.shape[1] - width)]
    whole = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    noise, gap = make_probe_noise(x)[:, :1].expand(-1, width, -1), torch.zeros_like(whole[:, :1]).expand(-1, width)
    for side in subject.sides:
        padded, keep = (torch.cat(two if side == "left" else two[::-1], 1) for two in ((noise, x), (gap, whole)))
        yield side, ProbePair(Probe(x, whole, whole, whole), Probe(padded, keep, keep, keep))


def make_batch_neighbour_pairs(subject: Subject) -> Iterator[ProbePair]:
    """Yield two pairs for each sample: all the others change, to noise and to its opposite, and it must not."""
    x, keep, real = subject.embeddings, subject.keep, subject.real_output_mask
    noise = make_probe_noise(x)
    for sample, others in product(range(x.shape[0]), (noise, -noise)):  # the opposite, for what has a threshold
        changed = others.clone()
        changed[sample] = x[sample]
        own, outputs = torch.zeros_like(keep), torch.zeros_like(real)
        own[sample], outputs[sample] = keep[sample], real[sample]
        yield _build_probe_pair(subject, changed, own, outputs)


def make_first_sentence_alone_pair(subject: Subject) -> Iterator[ProbePair]:
    """Yield the first sentence in its batch and alone, without the padding at its right that only the batch needs."""
    if subject.output_keep is not None:
        return
    end = int(subject.keep[0].nonzero()[-1]) + 1
    keep, first = subject.keep[:1, :end], torch.zeros_like(subject.keep)
    first[0] = subject.keep[0]
    yield ProbePair(_make_unchanged_probe(subject, first), Probe(subject.embeddings[:1, :end], keep, keep, keep))


def _map_checks_to_pair_generators(subject: Subject) -> dict[Check, Callable[[], Iterator[ProbePair]]]:
    return {
        FUTURE_TOKEN: lambda: (
            pair
            for find in (make_later_token_pairs, make_unpadded_later_token_pairs, make_later_id_pairs)
            for pair in find(subject)
        ),
        GRADIENT_REACH: lambda: make_unreachable_token_pairs(subject),
        PADDING_CONTENT: lambda: make_padding_content_pair(subject),
        PADDING_AMOUNT: lambda: (pair for _, pair in make_padding_amount_pairs(subject)),
        BATCH_NEIGHBOUR: lambda: (
            pair for find in (make_batch_neighbour_pairs, make_first_sentence_alone_pair) for pair in find(subject)
        ),
    }


@torch.no_grad()
def find_worst_pair(subject: Subject, check: Check) -> ProbePair | None:
    """Return the pair of a failed test whose outputs differ most; None where it changes no inputs, or nothing moves."""
    find = _map_checks_to_pair_generators(subject).get(check)
    pairs = [] if find is None else [(pair.change(subject), pair) for pair in find()]
    moved = [(change, pair) for change, pair in pairs if not change <= 0]  # NaN has moved
    return max(moved, key=lambda one: (one[0] != one[0], one[0]))[1] if moved else None


# The eight tests. Correct models give a difference of zero but for rounding, and real leaks can be as small as 1e-4
# beside effects of 0.2, so all but the comparisons of two different computations (padding-amount, observer, cache,
# position-free) compare with the noise of the model itself: what rounding, or another batch size, changes in its
# outputs. The probes are finite: with NaN or infinity a correct mask looks leaky, since 0 x NaN is NaN. Outputs at
# padding positions are left out everywhere.


def run_mask_tests(
    subject: Subject, tolerance: float = 1e-4, codes: Collection[str] | None = None
) -> tuple[Outcome, ...]:
    """Return the outcomes of all eight tests, or of those named, in order.

    Args:
        subject: the model and what it is meant to do.
        tolerance: where two computations are compared, the largest difference relative to the largest output.
        codes: the tests by code or by number, ``future-token`` or ``B1``. Raises ValueError for another name.
    """
    return tuple(
        TEST_FUNCTIONS[check](subject, tolerance) for check in (CHECKS if codes is None else select_checks(codes))
    )


def run_future_tests(subject: Subject) -> tuple[Outcome, ...]:
    """Return the outcomes of future-token, and of gradient-reach as far as it is about later tokens.

    A window may leave earlier tokens unused, and padding has tests of its own.
    """
    changed = _check_future_token(subject, 0.0)
    if changed.status == "not applicable":
        return (changed,)
    depends = measure_dependencies(subject)
    if depends is None:
        return changed, _no_gradient_outcome()
    later = torch.ones_like(depends, dtype=torch.bool).triu(1 + subject.ahead)
    leaks = subject.keep[:, :, None] & later & is_more_than_rounding(depends)
    return changed, _find_forbidden_dependency(depends, leaks) or judge_difference(GRADIENT_REACH, 0.0)


@torch.no_grad()
def _check_future_token(subject: Subject, tolerance: float) -> Outcome:
    if not subject.causal:
        return not_applicable_outcome(FUTURE_TOKEN, say("the model is meant to see the future"))
    if subject.output_keep is not None:
        return _not_applicable_cross_sequence_outcome(FUTURE_TOKEN)
    before = subject.run(subject.embeddings, subject.keep)
    worst = reduce(larger_change, (pair.change(subject, before) for pair in make_later_token_pairs(subject)), 0.0)
    where = say("more than {count} ahead", count=subject.ahead) if subject.ahead else ""
    outcome = judge_difference(FUTURE_TOKEN, worst, noise_limit(subject, before), where)
    if outcome.status == "fault":
        return outcome
    return _check_unpadded_future(subject) or _check_later_ids(subject) or outcome


def _check_unpadded_future(subject: Subject) -> Outcome | None:
    """Return the fault of a model that shows the future only where nothing is padded; None without one."""
    if bool(subject.keep.all()):
        return None
    before = subject.run(subject.embeddings, torch.ones_like(subject.keep))
    pairs = make_unpadded_later_token_pairs(subject)
    worst = reduce(larger_change, (pair.change(subject, before) for pair in pairs), 0.0)
    outcome = judge_difference(FUTURE_TOKEN, worst, noise_limit(subject, before), say("where nothing is padded"))
    return outcome if outcome.status == "fault" else None


def _check_later_ids(subject: Subject) -> Outcome | None:
    """Return the fault of a model whose earlier outputs change with the id of a later token; None without one."""
    if subject.ids is None or subject.run_ids is None:
        return None
    before = subject.run_ids(subject.ids, subject.keep)
    worst = reduce(larger_change, (pair.change(subject, before) for pair in make_later_id_pairs(subject)), 0.0)
    outcome = judge_difference(
        FUTURE_TOKEN, worst, rounding_limit(before, subject.keep), say("read from the token ids")
    )
    return outcome if outcome.status == "fault" else None


def _not_applicable_cross_sequence_outcome(check: Check) -> Outcome:
    return not_applicable_outcome(check, say("the outputs are of another sequence"))


@torch.no_grad()
def _check_padding_content(subject: Subject, tolerance: float) -> Outcome:
    if bool(subject.keep.all()):
        return not_applicable_outcome(PADDING_CONTENT, say("no sample has padding"))
    before = subject.run(subject.embeddings, subject.keep)
    (change,) = (pair.change(subject, before) for pair in make_padding_content_pair(subject))
    return judge_difference(
        PADDING_CONTENT, change, noise_limit(subject, before), _padding_side_text(find_padded_sides(subject.keep))
    )


def _padding_side_text(sides: Sequence[SequenceSide]) -> str:
    """Where the padding was; nowhere at an end where it stands between real tokens."""
    if len(sides) > 1:
        return say("padded at the left and the right")
    if not sides:
        return ""
    return say("padded at the left") if sides[0] == "left" else say("padded at the right")


@torch.no_grad()
def _check_padding_amount(subject: Subject, tolerance: float) -> Outcome:
    if subject.output_keep is not None:
        return _not_applicable_cross_sequence_outcome(PADDING_AMOUNT)
    pairs = dict(make_padding_amount_pairs(subject))
    first = next(iter(pairs.values())).before
    alone = first.run(subject)
    changes = {side: pair.change(subject, alone) for side, pair in pairs.items()}
    limit = tolerance_limit(alone, first.keep, tolerance)
    bad = [side for side, change in changes.items() if not change <= limit]  # NaN is bad
    return judge_difference(
        PADDING_AMOUNT, reduce(larger_change, changes.values()), limit, _padding_side_text(bad or subject.sides)
    )


@torch.no_grad()
def _check_batch_neighbour(subject: Subject, tolerance: float) -> Outcome:
    if subject.embeddings.shape[0] < 2:
        return not_applicable_outcome(BATCH_NEIGHBOUR, say("one sample has no neighbour"))
    before = subject.run(subject.embeddings, subject.keep)
    worst = reduce(larger_change, (pair.change(subject, before) for pair in make_batch_neighbour_pairs(subject)), 0.0)
    outcome = judge_difference(BATCH_NEIGHBOUR, worst, noise_limit(subject, before))
    return outcome if outcome.status == "fault" else _check_first_sentence_alone(subject, before, tolerance) or outcome


def _check_first_sentence_alone(subject: Subject, before: Tensor, tolerance: float) -> Outcome | None:
    """Return the fault of a first sentence whose outputs (1, T, ...) are others when it is run alone; else None."""
    for pair in make_first_sentence_alone_pair(subject):
        change, limit = pair.change(subject, before), tolerance_limit(before, subject.keep, tolerance)
        found = judge_difference(
            BATCH_NEIGHBOUR, change, limit, say("between the first sentence alone and in the batch")
        )
        if found.status == "fault":
            return found
    return None


def _check_gradient_reach(subject: Subject, tolerance: float) -> Outcome:
    if subject.output_keep is not None:
        return _not_applicable_cross_sequence_outcome(GRADIENT_REACH)
    may, depends = find_reachable_inputs(subject), measure_dependencies(subject)
    if depends is None:
        return _no_gradient_outcome()
    real = subject.keep[:, :, None] & subject.keep[:, None, :]
    rows = subject.keep[:, :, None].expand_as(depends)
    leak = _find_forbidden_dependency(depends, rows & ~may & is_more_than_rounding(depends))
    return (
        leak or _find_missing_dependency(depends, real & may & ~(depends > 0)) or judge_difference(GRADIENT_REACH, 0.0)
    )


def _no_gradient_outcome() -> Outcome:
    return not_applicable_outcome(GRADIENT_REACH, say("no gradient can be taken through the model"))


def _find_forbidden_dependency(depends: Tensor, bad: Tensor) -> Outcome | None:
    """A fault naming the first of the cells (B, T, T) on which an output must not depend, None if there is none."""
    return _make_dependency_fault_outcome(
        depends,
        bad,
        to_say("output {output} of sample {sample} depends on input {input}"),
        to_say("output {output} of sample {sample} depends on input {input}, and {more} more"),
    )


def _find_missing_dependency(depends: Tensor, bad: Tensor) -> Outcome | None:
    """A fault naming the first of the cells on which an output should depend."""
    return _make_dependency_fault_outcome(
        depends,
        bad,
        to_say("output {output} of sample {sample} does not depend on input {input}"),
        to_say("output {output} of sample {sample} does not depend on input {input}, and {more} more"),
    )


def _make_dependency_fault_outcome(depends: Tensor, bad: Tensor, one: str, several: str) -> Outcome | None:
    cells = bad.nonzero().tolist()
    if not cells:
        return None
    b, i, j = cells[0]
    place = {"output": i + 1, "sample": b + 1, "input": j + 1}
    reason = say(several, more=len(cells) - 1, **place) if len(cells) > 1 else say(one, **place)
    return Outcome(GRADIENT_REACH, "fault", reason, float(depends[b, i, j]))


@torch.no_grad()
def _check_alternative_runs_agree(subject: Subject, tolerance: float) -> Outcome:
    if not subject.others:
        return not_applicable_outcome(OBSERVER, say("there is only one way through this model"))
    before, worst, name = subject.run(subject.embeddings, subject.keep), 0.0, ""
    for way, run in subject.others.items():
        change = largest_change(run(subject.embeddings, subject.keep) - before, subject.real_output_mask)
        worst, name = (change, way) if larger_change(worst, change) is change else (worst, name)
    limit = tolerance_limit(before, subject.real_output_mask, tolerance)
    return judge_difference(OBSERVER, worst, limit, "" if worst <= limit else say(name))


@torch.no_grad()
def _check_cache(subject: Subject, tolerance: float) -> Outcome:
    if subject.cached is None:
        return not_applicable_outcome(CACHE, say("the model has no cache"))
    before = subject.run(subject.embeddings, subject.keep)
    change = largest_change(subject.cached(subject.embeddings, subject.keep) - before, subject.real_output_mask)
    return judge_difference(CACHE, change, tolerance_limit(before, subject.real_output_mask, tolerance))


@torch.no_grad()
def _check_permutation_equivariance(subject: Subject, tolerance: float) -> Outcome:
    if subject.unpositioned is None:
        return not_applicable_outcome(POSITION_FREE, say("the position encoding cannot be taken out"))
    if subject.causal or subject.allowed is not None or subject.output_keep is not None:
        return not_applicable_outcome(
            POSITION_FREE, say("the mask is built inside and cannot be permuted with the tokens")
        )
    order = torch.arange(subject.keep.shape[1] - 1, -1, -1, device=subject.keep.device)
    before = subject.unpositioned(subject.embeddings, subject.keep)
    after = subject.unpositioned(subject.embeddings[:, order], subject.keep[:, order])
    change = largest_change(after - before[:, order], subject.keep[:, order])
    return judge_difference(POSITION_FREE, change, tolerance_limit(before, subject.keep, tolerance))


TEST_FUNCTIONS: dict[Check, Callable[[Subject, float], Outcome]] = {
    FUTURE_TOKEN: _check_future_token,
    PADDING_CONTENT: _check_padding_content,
    PADDING_AMOUNT: _check_padding_amount,
    BATCH_NEIGHBOUR: _check_batch_neighbour,
    GRADIENT_REACH: _check_gradient_reach,
    OBSERVER: _check_alternative_runs_agree,
    CACHE: _check_cache,
    POSITION_FREE: _check_permutation_equivariance,
}
