"""Calls to maps: which of them belong together, and their tensors as (layer, head, query, key)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise

import numpy as np
import torch
from torch import Tensor

from ...language.say import listed, say, to_say
from ...trace import AttentionMap, Kind, TraceError
from .calls.call import Call
from .calls.fused_weights import Attention
from .kinds import is_one_number
from .layer_store import as_view

Run = list[Call]
"""The calls of one kind in one run: its layers, in order."""
_HEAD = re.compile(r"(.*\bheads?)\.\d+$")
"""A module for each head: together they are one layer."""
NEVER_COMPUTED = {"scores": math.nan, "masked_scores": -math.inf}
"""What stands for a key that did not exist yet when a cached decoding made a row; 0 for weights."""
WINDOW = to_say(
    "The cache of this model keeps a window of keys or a fixed number of them, so its steps cannot be put into one "
    "map. Capture one forward pass over the whole text instead."
)

BEAMS = to_say(
    "This is a beam search, whose rows change places at every step: run the model once more on what was found, with "
    "the whole text given."
)
MISFIT = to_say(
    "What was captured as {kind} does not stack into layers: {paths} (heads, queries, keys). Name what belongs "
    "together: capture_attention(model, modules=[...])."
)
MISFIT_OF_STEPS = to_say(
    "What was captured as {kind} does not stack into layers over {steps} steps: {paths} (heads, queries, keys). Name "
    "what belongs together: capture_attention(model, modules=[...])."
)
OF_KIND: dict[Kind, str] = {
    "encoder": to_say("encoder attention"),
    "decoder": to_say("decoder attention"),
    "cross": to_say("cross attention"),
}


def no_sentence(index: int, sentences: int) -> TraceError:
    """Return the error of a sentence that a batch has not."""
    return TraceError(
        say(
            "There is no sentence {index} in a batch of {sentences}; they count from 0.",
            index=index,
            sentences=sentences,
        )
    )


def check_one_sentence(sizes: set[int]) -> None:
    """Raise TraceError for what ran in other batches than of one sentence; `sizes` are those that ran."""
    if sizes and sizes != {1}:
        raise TraceError(
            say(
                "A trace is of one sentence, but batches of {sizes} ran: use .sample(i).",
                sizes=str(sorted(sizes)),
            )
        )


def last_runs(kind: Kind, by_kind: dict[Kind, list[Call]]) -> list[Run]:
    """Return the runs that make up a map: the last one, or all the steps of a cached decoding."""
    runs = runs_of(by_kind[kind])
    if kind == "encoder":
        return runs[-1:]
    steps = _steps(runs_of(by_kind.get("decoder", [])))
    numbers = {run[0].run for run in steps}
    return [run for run in runs if run[0].run in numbers] or runs[-1:]


def runs_of(calls: Sequence[Call]) -> list[Run]:
    """Return the calls of each run of the model."""
    return [_heads_joined(list(run)) for _, run in groupby(calls, key=lambda call: call.run)]


def _steps(runs: list[Run]) -> list[Run]:
    """The runs from the last one on that had as many keys as queries: nothing was cached before it.

    Raises TraceError for a cache of a window, or of a fixed size: which of its columns is which key cannot be told.
    """
    shapes = [run[0].shape for run in runs]
    start = max((number for number, (queries, keys) in enumerate(shapes) if queries == keys), default=None)
    if start is None:
        if len(shapes) > 1 and shapes[-1][0] < max(shapes[-2][0], 2) and shapes[-1][1] == shapes[-2][1]:
            raise TraceError(say(WINDOW))
        return runs[-1:]
    if any(after[1] <= before[1] for before, after in pairwise(shapes[start:])):
        raise TraceError(say(WINDOW))
    return runs[start:]


def _heads_joined(run: Run) -> Run:
    """Modules that are a head each, side by side, as one call."""
    joined: Run = []
    for name, found in groupby(run, key=lambda call: match[1] if (match := _HEAD.match(call.path)) else None):
        calls = list(found)
        joined += calls if name is None else [side_by_side(calls)]
    return joined


def side_by_side(calls: Run) -> Call:
    """Return several calls of as many samples, queries and keys as one, with the heads of all."""
    parts = [call.attention for call in calls]
    names = set.intersection(*(set(part.tensors) for part in parts))
    tensors = {name: torch.cat([part.tensors[name] for part in parts], 1) for name in names}
    weights, allowed = (torch.cat([getattr(part, name) for part in parts], 1) for name in ("weights", "allowed"))
    masks = [part.passed for part in parts if part.passed is not None]
    passed = torch.cat(masks, 1) if len(masks) == len(parts) else None
    joined = replace(parts[0], weights=weights, allowed=allowed, passed=passed, tensors=tensors)
    return replace(calls[0], attention=joined)


def map_of(kind: Kind, runs: list[Run], sample: int) -> AttentionMap:
    """Return one sentence's map. The rows of several runs stand below each other.

    In its mask, a query may attend to a key when it may in any layer and head; where they differ, each layer has its
    own too. Raises TraceError when the layers do not fit on each other, or the batch has no such sample.
    """
    _check(kind, runs, sample)
    names = set.intersection(*(set(call.attention.tensors) for run in runs for call in run))
    steps = [[call.attention for call in run] for run in runs]
    queries = [str(number + 1) for number in range(sum(run[0].shape[0] for run in runs))]
    extra = runs[-1][0].attention.extra_keys
    keys = [*(str(number + 1) for number in range(runs[-1][0].shape[1])), *extra]
    mask, layer_masks = _masks([[_without_copies(one.allowed[sample]) for one in step] for step in steps], len(extra))
    calls = _calls(runs[-1])
    return AttentionMap(
        kind,
        weights=_below([[one.weights[sample] for one in step] for step in steps], 0.0, len(extra)),
        query_tokens=tuple(queries),
        key_tokens=tuple(keys),
        mask=mask,
        layer_masks=layer_masks,
        layer_paths=tuple(call.path for call in runs[-1]),
        layer_calls=calls,
        passed_masks=_passed(steps, sample, len(extra)) if calls else None,
        tensors={name: _tensor(name, steps, sample, len(extra)) for name in sorted(names)},
    )


def _calls(run: Run) -> tuple[str, ...]:
    """Where each layer was called, as text; nothing where that is not known of all."""
    known = tuple(call.origin.as_json() for call in run if call.origin is not None)
    return known if len(known) == len(run) else ()


def _passed(steps: list[list[Attention]], sample: int, extra: int) -> np.ndarray | None:
    """The masks that the calls were given, (1 or L, 1 or H, Q, K), all open where none was; None if none was at all."""
    if all(one.passed is None for step in steps for one in step):
        return None
    own = [[_without_copies(_passed_or_open(one)[sample]) for one in step] for step in steps]
    heads = max(len(one) for step in own for one in step)
    found = _below([[one.expand(heads, -1, -1) for one in step] for step in own], 0, extra, bool)
    found = found[:, :1] if (found == found[:, :1]).all() else found
    return found[:1] if (found == found[:1]).all() else found


def _passed_or_open(one: Attention) -> Tensor:
    return torch.ones_like(one.allowed[:, :1]).expand(one.allowed.shape) if one.passed is None else one.passed


def _without_copies(allowed: Tensor) -> Tensor:
    """(H, Q, K), or (1, Q, K) where that was broadcast to all heads."""
    return allowed[:1] if allowed.stride(0) == 0 else allowed


def _masks(steps: list[list[Tensor]], extra: int) -> tuple[np.ndarray, np.ndarray | None]:
    """The mask of all layers and heads together, and those of layers or heads where they differ."""
    if len(steps) == 1 and all(is_one_number(one) for one in steps[0]):
        allowed = {bool(one.flatten()[0]) for one in steps[0] if one.numel()}
        if len(allowed) == 1:
            return np.full(tuple(steps[0][0].shape[-2:]), allowed.pop()), None
    heads = max(len(one) for step in steps for one in step)
    own = _below([[one.expand(heads, -1, -1) for one in step] for step in steps], 0, extra, bool)
    own = own[:, :1] if (own == own[:, :1]).all() else own
    mask = np.logical_or.reduce(own, axis=(0, 1))
    return mask, None if (own == mask).all() else own


def _tensor(name: str, steps: list[list[Attention]], sample: int, extra: int) -> np.ndarray:
    found = [[one.tensors[name][sample] for one in step] for step in steps]
    if name in ("k", "v"):
        found = found[-1:]  # a cache holds all of them in the end
    return _below(found, NEVER_COMPUTED.get(name, 0.0), extra if name in NEVER_COMPUTED else 0)


def _below(steps: list[list[Tensor]], empty: float, extra: int, dtype: type = np.float32) -> np.ndarray:
    """The layers (H, Q, K) of each step, with ever more keys, as (L, H, Q, K); `empty` where there was no key yet.

    The last `extra` keys are no tokens, and stay the last. Every number is copied once, or none that lies in place.
    """
    if len(steps) == 1 and dtype is np.float32 and (view := as_view(steps[0])) is not None:
        return view
    rows = sum(step[0].shape[1] for step in steps)
    columns = steps[-1][0].shape[-1]
    stacked: np.ndarray = np.empty((len(steps[0]), len(steps[0][0]), rows, columns), dtype)
    if len(steps) > 1:
        stacked.fill(empty)
    whole, start = torch.from_numpy(stacked), 0
    for step in steps:
        end, own = start + step[0].shape[1], step[0].shape[-1] - extra
        for layer, tensor in enumerate(step):
            whole[layer, :, start:end, :own] = tensor[..., :own]
            whole[layer, :, start:end, columns - extra :] = tensor[..., own:]
        start = end
    return stacked


def _check(kind: Kind, runs: list[Run], sample: int) -> None:
    batches = {len(call.attention.weights) for run in runs for call in run}
    if len(runs) > 1 and (len(batches) > 1 or any(call.reordered for run in runs for call in run)):
        raise TraceError(say(BEAMS))
    if sample >= min(batches):
        raise no_sentence(sample, min(batches))
    for run in runs:
        shapes = {tuple(call.attention.weights.shape[1:]) for call in run}
        if len(shapes) > 1:
            raise TraceError(_misfit(MISFIT, kind, run))
    steps = [(len(run), run[0].attention.weights.shape[1], kind == "cross" and run[0].shape[1]) for run in runs]
    if odd := next((number for number, step in enumerate(steps) if step != steps[0]), 0):
        raise TraceError(_misfit(MISFIT_OF_STEPS, kind, [*runs[0][:3], *runs[odd][:3]], steps=len(runs)))


def _misfit(message: str, kind: Kind, calls: Run, **values: int) -> str:
    paths = (f"{call.path} {tuple(call.attention.weights.shape[1:])}" for call in calls[:6])
    return say(message, kind=say(OF_KIND[kind]), paths=listed(paths), **values)
