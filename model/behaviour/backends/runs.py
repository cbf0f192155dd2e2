"""Ways to compute the same outputs with one Hugging Face model: kernels, caches, paddings, packing, a batch of one.

Every way returns the outputs of all layers for the real tokens of each sample, in the same order, so that they can be
compared row by row. Models are copied before anything of them is changed.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from ...language.say import listed, say
from ...pytorch.torch_internals import COMPILER, eagerly
from ..hugging_face import takes_positions
from .batch import Batch
from .kernels import KernelsSeen, PlainKernel
from .recorder import Recorder

Layers = dict[str, list[Tensor]]
"""By the path of each layer: for each sample (real tokens, width)."""


class NotPossibleError(RuntimeError):
    """A way that this model, this torch or this machine does not have; the message says why."""


def _run_batch(model: nn.Module, batch: Batch, **more: Any) -> Layers:
    recorder = Recorder(model)
    with recorder.recording():
        recorder.run(**batch.arguments, **_uncached(model), **more)
    rows = recorder.joined()
    return {
        path: [row[kept] for row, kept in zip(found, batch.keep_at(path), strict=True)] for path, found in rows.items()
    }


def _uncached(model: Any) -> dict[str, Any]:
    return {"use_cache": False} if "use_cache" in inspect.signature(model.forward).parameters else {}


def as_given(model: nn.Module, batch: Batch) -> Layers:
    """The model as it is, on the batch as it is."""
    return _run_batch(model, batch)


def twice(model: nn.Module, batch: Batch) -> Layers:
    """The same with every sample twice in the batch, which shows the noise of rounding."""
    found = _run_batch(model, batch.repeated(2))
    return {path: rows[: len(batch.ids)] for path, rows in found.items()}


def by_kernel(model: Any, batch: Batch, implementation: str, backend: SDPBackend | None = None) -> Layers:
    """The model with another implementation of attention of transformers, and one kernel of torch."""
    other = copy.deepcopy(model)
    try:
        other.set_attn_implementation(implementation)
    except (AttributeError, ValueError, ImportError) as error:
        said = say("the model has no {kind} attention: {why}", kind=implementation, why=_first_line(error))
        raise NotPossibleError(said) from error
    chosen: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if backend is not None:
        chosen = PlainKernel() if backend is SDPBackend.MATH else sdpa_kernel([backend])
    importlib.import_module(COMPILER)  # else what loads it inside the block would compile
    kernels = KernelsSeen()
    try:
        with chosen, eagerly(), kernels:
            found = _run_batch(other, batch)
    except (RuntimeError, NotImplementedError, ValueError, IndexError) as error:
        raise NotPossibleError(say("it does not run here: {why}", why=_first_line(error))) from error
    if kernels.seen != {implementation} - {"eager"}:
        if not kernels.seen:
            raise NotPossibleError(
                say("the model calls neither sdpa nor flex_attention, whatever its configuration says")
            )
        ran = listed(sorted(kernels.seen))
        raise NotPossibleError(say("the model goes on calling {kernels}, whatever its configuration says", kernels=ran))
    return found


def alone(model: nn.Module, batch: Batch) -> Layers:
    """Each sample alone, without its padding."""
    runs = [_run_batch(model, batch.alone(sample)) for sample in range(len(batch.ids))]
    return {path: [run[path][0] for run in runs] for path in runs[0]}


def padded_at(model: nn.Module, batch: Batch, side: str) -> Layers:
    """The batch with all padding at one side; positions count real tokens where the model takes them."""
    relative = any("relative_attention_bias" in name for name, _ in model.named_parameters())
    if side == "left" and batch.target is not None and not relative:
        raise NotPossibleError(
            say("it has no relative bias and takes no position_ids, so padding may move its positions")
        )
    samples = batch.samples()
    width = max(map(len, samples)) + 2
    keep = torch.zeros(len(samples), width, dtype=torch.bool, device=batch.ids.device)
    ids = batch.ids.new_full((len(samples), width), int(batch.ids[~batch.keep][0]) if not batch.keep.all() else 0)
    for row, sample in enumerate(samples):
        place = slice(width - len(sample), None) if side == "left" else slice(0, len(sample))
        keep[row, place], ids[row, place] = True, sample
    positions = {"position_ids": (keep.long().cumsum(-1) - 1).clamp(min=0)} if takes_positions(model) else {}
    return _run_batch(model, Batch(ids, keep, batch.target), **positions)


def packed(model: nn.Module, batch: Batch, causal: bool) -> Layers:
    """All samples in one row, with positions that begin anew and a mask of blocks."""
    if batch.target is not None:
        raise NotPossibleError(say("a packed source has no mask of blocks for cross-attention"))
    if not takes_positions(model):
        raise NotPossibleError(say("the model takes no position_ids, so that its positions cannot begin anew"))
    samples = batch.samples()
    ids = torch.cat(samples)[None]
    document = torch.cat([torch.full((len(one),), at, device=ids.device) for at, one in enumerate(samples)])
    positions = torch.cat([torch.arange(len(one), device=ids.device) for one in samples])[None]
    allowed = document[:, None] == document
    mask = _masks(model, allowed.tril() if causal else allowed)
    recorder = Recorder(model)
    try:
        with recorder.recording():
            recorder.run(input_ids=ids, attention_mask=mask, position_ids=positions, **_uncached(model))
    except (RuntimeError, ValueError) as error:
        raise NotPossibleError(say("the model takes no mask of four axes: {why}", why=_first_line(error))) from error
    lengths = [len(one) for one in samples]
    return {path: list(rows[0].split(lengths)) for path, rows in recorder.joined().items()}


def _masks(model: Any, allowed: Tensor) -> Any:
    """Return a mask (T, T) as the model takes it: additive, (1, 1, T, T), with its window, for each type of layer."""
    kind = next(model.parameters()).dtype
    window, types = getattr(model.config, "sliding_window", None), getattr(model.config, "layer_types", None)
    age = torch.arange(len(allowed), device=allowed.device)
    near = (age[:, None] - age).abs() < (window or len(allowed))

    def added(mask: Tensor) -> Tensor:
        zeros = torch.zeros(mask.shape, dtype=kind, device=mask.device)
        return zeros.masked_fill(~mask, torch.finfo(kind).min)[None, None]

    if types is None:
        return added(allowed & near)
    each = {name: added(allowed & near if name == "sliding_attention" else allowed) for name in set(types)}
    if other := set(each) - {"sliding_attention", "full_attention"}:
        raise NotPossibleError(
            say("a mask of blocks is not known for its layers of {kinds}", kinds=listed(sorted(other)))
        )
    return each if len(each) > 1 else each.popitem()[1]


def cached(model: Any, batch: Batch, make_cache: Callable[[int], Any] = lambda size: None) -> Layers:
    """Each sample with a cache: the first half, then two tokens, then one by one."""
    if batch.target is not None:
        return _cached_decoder(model, batch)
    runs = []
    for ids in batch.samples():
        recorder, past, at = Recorder(model), make_cache(len(ids) + 2), 0
        with recorder.recording():
            for size in _steps(len(ids)):
                found = recorder.run(input_ids=ids[None, at : at + size], past_key_values=past, use_cache=True)
                past, at = found.past_key_values, at + size
                if past is None:
                    raise NotPossibleError(say("the model returns no cache"))
        runs.append({path: rows[0] for path, rows in recorder.joined().items()})
    return {path: [run[path] for run in runs] for path in runs[0]}


def _cached_decoder(model: Any, batch: Batch) -> Layers:
    """The decoder of an encoder-decoder model with a cache, each sample alone, on its source encoded once."""
    runs = []
    for sample in range(len(batch.ids)):
        one = batch.alone(sample)
        target = one.arguments["decoder_input_ids"]
        recorder, past, at = Recorder(model), None, 0
        with torch.no_grad():
            memory = model.get_encoder()(input_ids=one.ids, attention_mask=one.keep.long())
        with recorder.recording():
            for size in _steps(target.shape[1]):
                given = {"encoder_outputs": memory, "attention_mask": one.keep.long()}
                ids = target[:, at : at + size]
                found = recorder.run(decoder_input_ids=ids, past_key_values=past, use_cache=True, **given)
                past, at = found.past_key_values, at + size
        runs.append({path: rows[0] for path, rows in recorder.joined().items()})
    return {path: [run[path] for run in runs] for path in runs[0]}


def statically_cached(model: Any, batch: Batch) -> Layers:
    """The same with a static cache of transformers, which has room for more tokens than there are."""
    if batch.target is not None:
        raise NotPossibleError(say("a static cache of two stacks is not tried"))
    try:
        from transformers import StaticCache
    except ImportError as error:
        raise NotPossibleError(say("transformers, whose static cache it needs, is not installed")) from error
    try:
        return cached(model, batch, lambda size: StaticCache(config=model.config, max_cache_len=size))
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        raise NotPossibleError(say("the model takes no static cache: {why}", why=_first_line(error))) from error


def _steps(length: int) -> list[int]:
    half = max(1, length // 2)
    pair = [2] if length - half > 2 else []
    return [half, *pair, *[1] * (length - half - sum(pair))]


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].partition(". ")[0]
