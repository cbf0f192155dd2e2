"""Stack captured calls into attention maps: runs, heads, time steps, masks and gradients."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise

import numpy as np
import torch
from torch import Tensor

from ...language import join_items, say, to_say
from ...trace import AttentionMap, Kind, TraceError
from .call import CapturedCall
from .kernel_weights import ComputedAttention
from .module_kinds import Remark, get_path_in_layer, is_broadcast_scalar_mask, stack_as_view

# From calls to maps.


CallRun = list[CapturedCall]
"""The calls of one kind in one run: its layers, in order."""
_HEAD_PATH = re.compile(r"(.*\bheads?)\.\d+$")
"""A module for each head: together they are one layer."""
MISSING_KEY_VALUES = {"scores": math.nan, "masked_scores": -math.inf}
"""What stands for a key that did not exist yet when a cached decoding made a row; 0 for weights."""
WINDOW_MESSAGE = to_say(
    "The cache of this model keeps a window of keys or a fixed number of them, so its steps cannot be put into one "
    "map. Capture one forward pass over the whole text instead."
)

BEAM_SEARCH_MESSAGE = to_say(
    "This is a beam search, whose rows change places at every step: run the model once more on what was found, with "
    "the whole text given."
)
MISFIT_MESSAGE = to_say(
    "What was captured as {kind} does not stack into layers: {paths} (heads, queries, keys). Name what belongs "
    "together: capture_attention(model, modules=[...])."
)
STEP_MISFIT_MESSAGE = to_say(
    "What was captured as {kind} does not stack into layers over {steps} steps: {paths} (heads, queries, keys). Name "
    "what belongs together: capture_attention(model, modules=[...])."
)
KIND_LABELS: dict[Kind, str] = {
    "encoder": to_say("encoder attention"),
    "decoder": to_say("decoder attention"),
    "cross": to_say("cross attention"),
}


def make_missing_sentence_error(index: int, sentences: int) -> TraceError:
    """Return the error for a sentence that a batch does not have."""
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


def select_last_runs(kind: Kind, by_kind: dict[Kind, list[CapturedCall]]) -> list[CallRun]:
    """Return the runs that make up a map: the last one, or all the steps of a cached decoding."""
    runs = group_calls_by_run(by_kind[kind])
    if kind == "encoder":
        return runs[-1:]
    steps = _select_cached_decoding_runs(group_calls_by_run(by_kind.get("decoder", [])))
    numbers = {run[0].run for run in steps}
    return [run for run in runs if run[0].run in numbers] or runs[-1:]


def separate_texts(calls: Sequence[CapturedCall]) -> list[CapturedCall]:
    """Return the calls with the texts that a network ran on in one forward as runs of their own."""
    runs = (_split_by_text(list(run)) for _, run in groupby(calls, key=lambda call: call.run))
    texts = enumerate(text for run in runs for text in run)
    return [replace(call, run=number) for number, text in texts for call in text]


def _split_by_text(run: CallRun) -> list[CallRun]:
    """A text begins where a module comes again for another one, always the same module.

    Where several do, layers take turns, as on two texts side by side: which are of one text is not known, and the calls
    stay together.
    """
    texts: list[CallRun] = [[]]
    for call in run:
        if call.is_other_text and any(one.path == call.path for one in texts[-1]):
            texts.append([])
        texts[-1].append(call)
    return texts if len({text[0].path for text in texts[1:]}) == 1 else [run]


def make_repeat_remarks(calls: Sequence[CapturedCall]) -> list[Remark]:
    """Return what is to be said of modules that ran several times in one forward, each remark of the first of them."""
    found: dict[str, str] = {}
    for _, run in groupby(separate_texts(calls), key=lambda call: call.run):
        paths = set()
        for call in run:
            if call.path in paths and call.is_other_text is None:
                found.setdefault("perhaps-texts", call.path)
            elif call.is_other_text:
                found.setdefault("side-by-side" if call.path in paths else "several-texts", call.path)
            paths.add(call.path)
    return [(code, {"module": path}) for code, path in found.items()]


def group_calls_by_run(calls: Sequence[CapturedCall]) -> list[CallRun]:
    """Return the calls of each run of the model."""
    return [_join_head_modules(list(run)) for _, run in groupby(calls, key=lambda call: call.run)]


def _select_cached_decoding_runs(runs: list[CallRun]) -> list[CallRun]:
    """The runs from the last one on that had as many keys as queries: nothing was cached before it.

    Raises TraceError for a cache of a window, or of a fixed size: which of its columns is which key cannot be told.
    """
    shapes = [run[0].shape for run in runs]
    start = max((number for number, (queries, keys) in enumerate(shapes) if queries == keys), default=None)
    if start is None:
        if len(shapes) > 1 and shapes[-1][0] < max(shapes[-2][0], 2) and shapes[-1][1] == shapes[-2][1]:
            raise TraceError(say(WINDOW_MESSAGE))
        return runs[-1:]
    if any(after[1] <= before[1] for before, after in pairwise(shapes[start:])):
        raise TraceError(say(WINDOW_MESSAGE))
    return runs[start:]


def _join_head_modules(run: CallRun) -> CallRun:
    """Modules that are a head each, side by side, as one call."""
    joined: CallRun = []
    for name, found in groupby(run, key=lambda call: match[1] if (match := _HEAD_PATH.match(call.path)) else None):
        calls = list(found)
        joined += calls if name is None else [join_heads(calls)]
    return joined


def join_heads(calls: CallRun) -> CapturedCall:
    """Return several calls of as many samples, queries and keys as one, with the heads of all."""
    parts = [call.attention for call in calls]
    names = set.intersection(*(set(part.tensors) for part in parts))
    tensors = {name: torch.cat([part.tensors[name] for part in parts], 1) for name in names}
    weights, allowed = (torch.cat([getattr(part, name) for part in parts], 1) for name in ("weights", "allowed"))
    masks = [part.passed for part in parts if part.passed is not None]
    passed = torch.cat(masks, 1) if len(masks) == len(parts) else None
    joined = replace(parts[0], weights=weights, allowed=allowed, passed=passed, tensors=tensors)
    return replace(calls[0], attention=joined)


def stack_map(kind: Kind, runs: list[CallRun], sample: int) -> AttentionMap:
    """Return one sentence's map. The rows of several runs stand below each other.

    In its mask, a query may attend to a key when it may in any layer and head; where they differ, each layer has its
    own too. Raises TraceError when the layers do not fit on each other, or the batch has no such sample.
    """
    _check_runs_fit(kind, runs, sample)
    names = set.intersection(*(set(call.attention.tensors) for run in runs for call in run))
    steps = [[call.attention for call in run] for run in runs]
    queries = [str(number + 1) for number in range(sum(run[0].shape[0] for run in runs))]
    extra = runs[-1][0].attention.extra_keys
    keys = [*(str(number + 1) for number in range(runs[-1][0].shape[1])), *extra]
    mask, layer_masks = _stack_masks(
        [[_drop_head_copies(one.allowed[sample]) for one in step] for step in steps], len(extra)
    )
    calls = _list_layer_call_sites(runs[-1])
    return AttentionMap(
        kind,
        weights=_stack_rows([[one.weights[sample] for one in step] for step in steps], 0.0, len(extra)),
        query_tokens=tuple(queries),
        key_tokens=tuple(keys),
        mask=mask,
        layer_masks=layer_masks,
        layer_paths=tuple(call.path for call in runs[-1]),
        layer_calls=calls,
        passed_masks=_stack_passed_masks(steps, sample, len(extra)) if calls else None,
        tensors={name: _stack_tensor(name, steps, sample, len(extra)) for name in sorted(names)},
    )


def _list_layer_call_sites(run: CallRun) -> tuple[str, ...]:
    """Where each layer was called, as text; nothing where that is not known of all."""
    known = tuple(call.origin.as_json() for call in run if call.origin is not None)
    return known if len(known) == len(run) else ()


def _stack_passed_masks(steps: list[list[ComputedAttention]], sample: int, extra: int) -> np.ndarray | None:
    """The masks that the calls were given, (1 or L, 1 or H, Q, K), all open where none was; None if none was at all."""
    if all(one.passed is None for step in steps for one in step):
        return None
    own = [[_drop_head_copies(_get_passed_mask(one)[sample]) for one in step] for step in steps]
    heads = max(len(one) for step in own for one in step)
    found = _stack_rows([[one.expand(heads, -1, -1) for one in step] for step in own], 0, extra, bool)
    found = found[:, :1] if (found == found[:, :1]).all() else found
    return found[:1] if (found == found[:1]).all() else found


def _get_passed_mask(one: ComputedAttention) -> Tensor:
    return torch.ones_like(one.allowed[:, :1]).expand(one.allowed.shape) if one.passed is None else one.passed


def _drop_head_copies(allowed: Tensor) -> Tensor:
    """(H, Q, K), or (1, Q, K) where that was broadcast to all heads."""
    return allowed[:1] if allowed.stride(0) == 0 else allowed


def _stack_masks(steps: list[list[Tensor]], extra: int) -> tuple[np.ndarray, np.ndarray | None]:
    """The mask of all layers and heads together, and those of layers or heads where they differ."""
    if len(steps) == 1 and all(is_broadcast_scalar_mask(one) for one in steps[0]):
        allowed = {bool(one.flatten()[0]) for one in steps[0] if one.numel()}
        if len(allowed) == 1:
            return np.full(tuple(steps[0][0].shape[-2:]), allowed.pop()), None
    heads = max(len(one) for step in steps for one in step)
    own = _stack_rows([[one.expand(heads, -1, -1) for one in step] for step in steps], 0, extra, bool)
    own = own[:, :1] if (own == own[:, :1]).all() else own
    mask = np.logical_or.reduce(own, axis=(0, 1))
    return mask, None if (own == mask).all() else own


def _stack_tensor(name: str, steps: list[list[ComputedAttention]], sample: int, extra: int) -> np.ndarray:
    found = [[one.tensors[name][sample] for one in step] for step in steps]
    if name in ("k", "v"):
        found = found[-1:]  # a cache holds all of them in the end
    return _stack_rows(found, MISSING_KEY_VALUES.get(name, 0.0), extra if name in MISSING_KEY_VALUES else 0)


def _stack_rows(steps: list[list[Tensor]], empty: float, extra: int, dtype: type = np.float32) -> np.ndarray:
    """The layers (H, Q, K) of each step, with ever more keys, as (L, H, Q, K); `empty` where there was no key yet.

    The last `extra` keys are no tokens, and stay the last. Every number is copied once, or none that lies in place.
    """
    if len(steps) == 1 and dtype is np.float32 and (view := stack_as_view(steps[0])) is not None:
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


def _check_runs_fit(kind: Kind, runs: list[CallRun], sample: int) -> None:
    batches = {len(call.attention.weights) for run in runs for call in run}
    if len(runs) > 1 and (len(batches) > 1 or any(call.reordered for run in runs for call in run)):
        raise TraceError(say(BEAM_SEARCH_MESSAGE))
    if sample >= min(batches):
        raise make_missing_sentence_error(sample, min(batches))
    for run in runs:
        shapes = {tuple(call.attention.weights.shape[1:]) for call in run}
        if len(shapes) > 1:
            raise TraceError(_format_shape_mismatch_message(MISFIT_MESSAGE, kind, run))
    steps = [(len(run), run[0].attention.weights.shape[1], kind == "cross" and run[0].shape[1]) for run in runs]
    if odd := next((number for number, step in enumerate(steps) if step != steps[0]), 0):
        raise TraceError(
            _format_shape_mismatch_message(STEP_MISFIT_MESSAGE, kind, [*runs[0][:3], *runs[odd][:3]], steps=len(runs))
        )


def _format_shape_mismatch_message(message: str, kind: Kind, calls: CallRun, **values: int) -> str:
    paths = (f"{call.path} {tuple(call.attention.weights.shape[1:])}" for call in calls[:6])
    return say(message, kind=say(KIND_LABELS[kind]), paths=join_items(paths), **values)


# Attention that a recurrent decoder calls once a time step.


def is_time_step(call: CapturedCall) -> bool:
    """Whether this may be one time step of a recurrent decoder: one query, over keys that are not its own."""
    queries, keys = call.shape
    return queries == 1 and keys > 1 and "self" not in get_path_in_layer(call.path)


def join_time_steps(calls: Sequence[CapturedCall]) -> list[CapturedCall]:
    """Return the calls, with those of time steps joined: of a module that was only ever called with one query.

    A module that is called with several, or once more in another forward, is shared by layers, which stay apart.
    """
    others = {call.path for call in calls if not is_time_step(call)}
    steps: dict[tuple[str, int], list[CapturedCall]] = {}
    for call in calls:
        if call.path not in others:
            steps.setdefault((call.path, call.run), []).append(call)
    joined: list[CapturedCall] = []
    for call in calls:
        found = steps.get((call.path, call.run), [])
        if len({one.attention.weights.shape for one in found}) != 1 or len(found) == 1:
            joined.append(call)
        elif call is found[0]:
            joined.append(_concatenate_rows(found))
    return joined


def _concatenate_rows(steps: list[CapturedCall]) -> CapturedCall:
    parts = [call.attention for call in steps]
    tensors = {}
    for name in set.intersection(*(set(part.tensors) for part in parts)):
        found = [part.tensors[name] for part in parts]
        if name not in ("k", "v"):
            tensors[name] = torch.cat(found, 2)
        elif all(torch.equal(found[0], one) for one in found):
            tensors[name] = found[0]
    weights, allowed = (torch.cat([getattr(part, name) for part in parts], 2) for name in ("weights", "allowed"))
    masks = [part.passed for part in parts if part.passed is not None]
    passed = torch.cat(masks, 2) if len(masks) == len(parts) else None
    return replace(steps[0], attention=ComputedAttention(weights, allowed, tensors, passed=passed), is_cross=True)


# Gradients with respect to captured weights.


NO_GRAPH_MESSAGE = to_say(
    "These weights are no part of a graph of gradients: capture with detach=False, without torch.no_grad(), and give a "
    "number that was computed inside the block."
)


def compute_attention_weight_gradients(target: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
    """Return d target / d weights for each tensor, zeros where there is no way from one to the other.

    Raises TraceError without a graph.
    """
    if target.numel() != 1 or not target.requires_grad or not all(one.requires_grad for one in weights) or not weights:
        raise TraceError(say(NO_GRAPH_MESSAGE))
    found = torch.autograd.grad(target, list(weights), retain_graph=True, allow_unused=True)
    pairs = zip(weights, found, strict=True)
    return [torch.zeros_like(one) if gradient is None else gradient for one, gradient in pairs]


def replace_weights_by_gradients(calls: Sequence[CapturedCall], target: Tensor) -> list[CapturedCall]:
    """Return the calls with gradients for weights. Raises TraceError for a call whose gradients are not known."""
    kept = [call.graph for call in calls if call.graph is not None]
    if len(kept) < len(calls) and kept:
        path = next(call.path for call in calls if call.graph is None)
        raise TraceError(
            say(
                "The weights of {path} are made of blocks or beside a kernel: their gradients are not known.", path=path
            )
        )
    changed = []
    for call, gradient, (_, layout) in zip(
        calls, compute_attention_weight_gradients(target, [one for one, _ in kept]), kept, strict=True
    ):
        weights = layout(gradient).float()
        if weights.shape != call.attention.weights.shape:
            raise TraceError(
                say("The heads of {path} are put together from several: their gradients are not known.", path=call.path)
            )
        changed.append(replace(call, attention=replace(call.attention, weights=weights, tensors={})))
    return changed
