"""One case: a model, what its capture must be or why it must be refused, and whether it is so."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attenscope.capture.any_model.axes import iterate_tensors
from attenscope.capture.attention import Capture, capture_attention
from attenscope.trace import AttentionTrace, Kind, TraceError
from bench.libraries.computed import softmaxes
from bench.libraries.installed import prepare

Sizes = tuple[int, int, int, int]
"""Layers, heads, queries, keys: as the model was built and called, never read off a capture."""
CLOSE = 1e-5
LONGEST = 240
"""Characters of a reason in the table."""


@dataclass(frozen=True)
class Subject:
    """A model and one run of it."""

    model: nn.Module
    run: Callable[[], object]
    told: Callable[[], Mapping[Kind, Sequence[Tensor]]] | None = None
    """The weights (B, H, Q, K) of each layer that the library returns itself, where it does."""


@dataclass(frozen=True)
class Case:
    """What is expected of one model."""

    library: str
    """The package on PyPI."""
    name: str
    build: Callable[[], Subject]
    maps: Mapping[Kind, Sizes] = field(default_factory=dict)
    """What is captured; empty for a model that is refused."""
    refused: str = ""
    """A pattern in the reason: of the whole model without ``maps``, else of what is left out beside them."""
    samples: int = 2
    lay: Callable[[Tensor], Tensor] = lambda softmax: softmax
    """How a softmax of this model becomes (B, H, Q, K) or (B * H, Q, K), where it does not by itself."""
    modules: Collection[str] | Mapping[str, Kind] = ()
    """What has to be named for it."""
    needs: tuple[str, ...] = ()
    """Other packages."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    right: bool
    what: str
    """Captured or refused, in words."""
    held_against: str = "-"


def outcome(case: Case) -> Outcome:
    """Run one case."""
    prepare()
    torch.manual_seed(0)
    subject = case.build()
    subject.model.eval()
    alone = _output(subject)
    capture, watched = _captured(subject, case)
    if len(alone) != len(watched) or not all(map(_equal, alone, watched)):
        return Outcome(False, "the output is another under capture")
    try:
        traces = [capture.sample(number) for number in range(max(capture.batches(), default=1))]
    except TraceError as error:
        right = not case.maps and bool(re.search(case.refused, str(error)))
        return Outcome(right, f"refused: {_shortened(str(error))}")
    if not case.maps:
        return Outcome(False, f"captured as {_in_words(traces[0])}, and ought to be refused")
    if ("Not recorded" in capture.observer_effect) != bool(case.refused):
        return Outcome(False, capture.observer_effect)
    if not re.search(case.refused, capture.observer_effect):
        return Outcome(False, capture.observer_effect)
    wrong = list(_differences(case, traces, _of_maps(case, softmaxes(_seeded(subject.run)))))
    against = "its softmaxes"
    if told := subject.told() if subject.told is not None else {}:
        wrong += list(_differences(case, traces, told))
        against += ", and what it returns"
    return Outcome(not wrong, "; ".join(wrong) or _in_words(traces[0], bool(case.refused)), against)


def _output(subject: Subject) -> list[Tensor]:
    with torch.no_grad():
        return list(iterate_tensors(_plain(_seeded(subject.run)())))


def _captured(subject: Subject, case: Case) -> tuple[Capture, list[Tensor]]:
    with torch.no_grad(), capture_attention(subject.model, modules=case.modules) as capture:
        output = _seeded(subject.run)()
    return capture, list(iterate_tensors(_plain(output)))


def _seeded(run: Callable[[], object]) -> Callable[[], object]:
    def seeded() -> object:
        torch.manual_seed(1)
        return run()

    return seeded


def _plain(output: Any) -> Any:
    return output.to_tuple() if hasattr(output, "to_tuple") else output


def _equal(first: Tensor, second: Tensor) -> bool:
    return first.shape == second.shape and torch.equal(first.nan_to_num(), second.nan_to_num())


def _of_maps(case: Case, found: Sequence[Tensor]) -> Mapping[Kind, Sequence[Tensor]]:
    """The softmaxes of each kind: those of its size, which no other kind of the case shares.

    Some models compute each softmax twice.
    """
    laid = [case.lay(one) for one in found]
    by_kind = {}
    for kind, (layers, heads, queries, keys) in case.maps.items():
        sizes = (case.samples, heads, queries, keys)
        shapes = {sizes, (case.samples * heads, queries, keys)}
        own = [one.reshape(sizes) for one in laid if tuple(one.shape) in shapes]
        twice = len(own) == 2 * layers and all(map(torch.equal, own[::2], own[1::2]))
        by_kind[kind] = own[::2] if twice else own
    return by_kind


def _differences(case: Case, traces: Sequence[AttentionTrace], meant: Mapping[Kind, Sequence[Tensor]]) -> Iterator[str]:
    """What of the traces is other than it must be, in words."""
    if set(traces[0].maps) != set(case.maps):
        yield f"captured as {_in_words(traces[0])}"
        return
    for kind, weights in meant.items():
        layers, *sizes = case.maps[kind]
        if len(weights) != layers:
            yield f"{len(weights)} softmaxes for {layers} layers of the {kind} attention"
            continue
        for sample in range(len(weights[0])):
            own = torch.from_numpy(traces[sample].maps[kind].weights)
            if tuple(own.shape) != (layers, *sizes):
                yield f"the {kind} attention of sample {sample} has {tuple(own.shape)}"
                continue
            off = max(float((own[at] - one[sample]).abs().max()) for at, one in enumerate(weights))
            if off > CLOSE:
                yield f"the {kind} attention of sample {sample} is off by {off:.1e}"


def _in_words(trace: AttentionTrace, in_part: bool = False) -> str:
    """Kinds and sizes, layers x heads x queries x keys."""
    sizes = (f"{kind} {' x '.join(map(str, one.weights.shape))}" for kind, one in trace.maps.items())
    return ", ".join(sizes) + (", the rest refused" if in_part else "")


def _shortened(reason: str) -> str:
    return reason if len(reason) <= LONGEST else f"{reason[: LONGEST - 3]}..."
