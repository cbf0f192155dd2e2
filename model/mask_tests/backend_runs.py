"""Runs of one Hugging Face model by different kernels, caches, paddings and packing, with layer outputs."""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from ..capture.any_model.module_kinds import DECODER_PATH, is_on_path
from ..capture.any_model.recording import AnyModelRecording
from ..capture.any_model.watcher import watch
from ..language import join_items, say
from ..torch_internals import COMPILER_MODULE, is_flex_attention, run_eagerly
from .subjects import has_position_argument, read_output_tensor

# Every way to run returns the outputs of all layers for the real tokens of each sample, in the same order, so that they
# can be compared row by row. Models are copied before anything of them is changed.


LayerOutputs = dict[str, list[Tensor]]
"""By the path of each layer: for each sample (real tokens, width)."""


class NotPossibleError(RuntimeError):
    """This model, this torch or this machine does not have the way to run; the message says why."""


def _run_batch(model: nn.Module, batch: Batch, **more: Any) -> LayerOutputs:
    recorder = Recorder(model)
    with recorder.record_calls():
        recorder.run(**batch.arguments, **_no_cache_arguments(model), **more)
    rows = recorder.concatenate_layer_outputs()
    return {
        path: [row[kept] for row, kept in zip(found, batch.get_layer_keep_mask(path), strict=True)]
        for path, found in rows.items()
    }


def _no_cache_arguments(model: Any) -> dict[str, Any]:
    return {"use_cache": False} if "use_cache" in inspect.signature(model.forward).parameters else {}


def run_unchanged(model: nn.Module, batch: Batch) -> LayerOutputs:
    """Run the model as it is, on the batch as it is."""
    return _run_batch(model, batch)


def run_doubled_batch(model: nn.Module, batch: Batch) -> LayerOutputs:
    """Run the model with every sample twice in the batch, which shows the noise of rounding."""
    found = _run_batch(model, batch.repeat_samples(2))
    return {path: rows[: len(batch.ids)] for path, rows in found.items()}


def run_with_kernel(model: Any, batch: Batch, implementation: str, backend: SDPBackend | None = None) -> LayerOutputs:
    """Run the model with another attention implementation of transformers, and one kernel of torch."""
    other = copy.deepcopy(model)
    try:
        other.set_attn_implementation(implementation)
    except (AttributeError, ValueError, ImportError) as error:
        said = say("the model has no {kind} attention: {why}", kind=implementation, why=_first_error_line(error))
        raise NotPossibleError(said) from error
    chosen: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if backend is not None:
        chosen = PlainKernel() if backend is SDPBackend.MATH else sdpa_kernel([backend])
    importlib.import_module(COMPILER_MODULE)  # else what loads it inside the block would compile
    kernels = KernelRecorder()
    try:
        with chosen, run_eagerly(), kernels:
            found = _run_batch(other, batch)
    except (RuntimeError, NotImplementedError, ValueError, IndexError) as error:
        raise NotPossibleError(say("it does not run here: {why}", why=_first_error_line(error))) from error
    if kernels.seen != {implementation} - {"eager"}:
        if not kernels.seen:
            raise NotPossibleError(
                say("the model calls neither sdpa nor flex_attention, whatever its configuration says")
            )
        ran = join_items(sorted(kernels.seen))
        raise NotPossibleError(say("the model goes on calling {kernels}, whatever its configuration says", kernels=ran))
    return found


def run_samples_alone(model: nn.Module, batch: Batch) -> LayerOutputs:
    """Run each sample alone, without its padding."""
    runs = [_run_batch(model, batch.alone(sample)) for sample in range(len(batch.ids))]
    return {path: [run[path][0] for run in runs] for path in runs[0]}


def run_with_padding_side(model: nn.Module, batch: Batch, side: str) -> LayerOutputs:
    """Run the batch with all padding at one side; positions count real tokens where the model takes them."""
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
    positions = {"position_ids": (keep.long().cumsum(-1) - 1).clamp(min=0)} if has_position_argument(model) else {}
    return _run_batch(model, Batch(ids, keep, batch.target), **positions)


def run_packed(model: nn.Module, batch: Batch, causal: bool) -> LayerOutputs:
    """Run all samples in one row, with positions that begin anew and a mask of blocks."""
    if batch.target is not None:
        raise NotPossibleError(say("a packed source has no mask of blocks for cross-attention"))
    if not has_position_argument(model):
        raise NotPossibleError(say("the model takes no position_ids, so that its positions cannot begin anew"))
    samples = batch.samples()
    ids = torch.cat(samples)[None]
    document = torch.cat([torch.full((len(one),), at, device=ids.device) for at, one in enumerate(samples)])
    positions = torch.cat([torch.arange(len(one), device=ids.device) for one in samples])[None]
    allowed = document[:, None] == document
    mask = _make_model_masks(model, allowed.tril() if causal else allowed)
    recorder = Recorder(model)
    try:
        with recorder.record_calls():
            recorder.run(input_ids=ids, attention_mask=mask, position_ids=positions, **_no_cache_arguments(model))
    except (RuntimeError, ValueError) as error:
        raise NotPossibleError(
            say("the model takes no mask of four axes: {why}", why=_first_error_line(error))
        ) from error
    lengths = [len(one) for one in samples]
    return {path: list(rows[0].split(lengths)) for path, rows in recorder.concatenate_layer_outputs().items()}


def _make_model_masks(model: Any, allowed: Tensor) -> Any:
    """Return a mask (T, T) as the model takes it: additive, (1, 1, T, T), with its window, for each type of layer."""
    kind = next(model.parameters()).dtype
    window, types = getattr(model.config, "sliding_window", None), getattr(model.config, "layer_types", None)
    age = torch.arange(len(allowed), device=allowed.device)
    near = (age[:, None] - age).abs() < (window or len(allowed))

    def make_added_mask(mask: Tensor) -> Tensor:
        zeros = torch.zeros(mask.shape, dtype=kind, device=mask.device)
        return zeros.masked_fill(~mask, torch.finfo(kind).min)[None, None]

    if types is None:
        return make_added_mask(allowed & near)
    each = {name: make_added_mask(allowed & near if name == "sliding_attention" else allowed) for name in set(types)}
    if other := set(each) - {"sliding_attention", "full_attention"}:
        raise NotPossibleError(
            say("a mask of blocks is not known for its layers of {kinds}", kinds=join_items(sorted(other)))
        )
    return each if len(each) > 1 else each.popitem()[1]


def run_with_cache(model: Any, batch: Batch, make_cache: Callable[[int], Any] = lambda size: None) -> LayerOutputs:
    """Run each sample with a cache: the first half, then two tokens, then one by one."""
    if batch.target is not None:
        return _run_decoder_with_cache(model, batch)
    runs = []
    for ids in batch.samples():
        recorder, past, at = Recorder(model), make_cache(len(ids) + 2), 0
        with recorder.record_calls():
            for size in _split_cache_steps(len(ids)):
                found = recorder.run(input_ids=ids[None, at : at + size], past_key_values=past, use_cache=True)
                past, at = found.past_key_values, at + size
                if past is None:
                    raise NotPossibleError(say("the model returns no cache"))
        runs.append({path: rows[0] for path, rows in recorder.concatenate_layer_outputs().items()})
    return {path: [run[path] for run in runs] for path in runs[0]}


def _run_decoder_with_cache(model: Any, batch: Batch) -> LayerOutputs:
    """Run the decoder of an encoder-decoder model with a cache, each sample alone, on its source encoded once."""
    runs = []
    for sample in range(len(batch.ids)):
        one = batch.alone(sample)
        target = one.arguments["decoder_input_ids"]
        recorder, past, at = Recorder(model), None, 0
        with torch.no_grad():
            memory = model.get_encoder()(input_ids=one.ids, attention_mask=one.keep.long())
        with recorder.record_calls():
            for size in _split_cache_steps(target.shape[1]):
                given = {"encoder_outputs": memory, "attention_mask": one.keep.long()}
                ids = target[:, at : at + size]
                found = recorder.run(decoder_input_ids=ids, past_key_values=past, use_cache=True, **given)
                past, at = found.past_key_values, at + size
        runs.append({path: rows[0] for path, rows in recorder.concatenate_layer_outputs().items()})
    return {path: [run[path] for run in runs] for path in runs[0]}


def run_with_static_cache(model: Any, batch: Batch) -> LayerOutputs:
    """Run each sample with a static cache of transformers, which has room for more tokens than there are."""
    if batch.target is not None:
        raise NotPossibleError(say("a static cache of two stacks is not tried"))
    try:
        from transformers import StaticCache
    except ImportError as error:
        raise NotPossibleError(say("transformers, whose static cache it needs, is not installed")) from error
    try:
        return run_with_cache(model, batch, lambda size: StaticCache(config=model.config, max_cache_len=size))
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        raise NotPossibleError(say("the model takes no static cache: {why}", why=_first_error_line(error))) from error


def _split_cache_steps(length: int) -> list[int]:
    half = max(1, length // 2)
    pair = [2] if length - half > 2 else []
    return [half, *pair, *[1] * (length - half - sum(pair))]


def _first_error_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].partition(". ")[0]


# The batch that each way is given.


OUTPUT_LAYER = "output"
"""The name of what stands after the last layer: logits, or the last hidden state."""


@dataclass(frozen=True, eq=False)
class Batch:
    """What a model is given."""

    ids: Tensor
    """(B, T) token ids."""
    keep: Tensor
    """(B, T) bool, True = a real token."""
    target: Batch | None = None
    """What the decoder of an encoder-decoder model is given; None for a model of one sequence."""

    def samples(self) -> list[Tensor]:
        """Return the real token ids of each sample."""
        return [row[kept] for row, kept in zip(self.ids, self.keep, strict=True)]

    def repeat_samples(self, times: int) -> Batch:
        """Return every sample so many times, one batch after the other."""
        target = None if self.target is None else self.target.repeat_samples(times)
        return Batch(self.ids.repeat(times, 1), self.keep.repeat(times, 1), target)

    def alone(self, sample: int) -> Batch:
        """Return one sample without its padding."""
        ids = self.samples()[sample][None]
        target = None if self.target is None else self.target.alone(sample)
        return Batch(ids, torch.ones_like(ids, dtype=torch.bool), target)

    @property
    def arguments(self) -> dict[str, Tensor]:
        """The arguments of a Hugging Face model."""
        given = {"input_ids": self.ids, "attention_mask": self.keep.long()}
        if self.target is None:
            return given
        return given | {"decoder_input_ids": self.target.ids, "decoder_attention_mask": self.target.keep.long()}

    def get_layer_keep_mask(self, path: str) -> Tensor:
        """Return which positions count of the outputs of a layer, by its path."""
        decoded = path == OUTPUT_LAYER or is_on_path(DECODER_PATH, path)
        return self.target.keep if self.target is not None and decoded else self.keep


# Recording the outputs of all layers, and attention where it is asked for.


_recordings: ContextVar[list[AnyModelRecording] | None] = ContextVar("recordings", default=None)


@dataclass
class Recorder:
    """The outputs of the layers of one model, call after call."""

    model: nn.Module
    calls: dict[str, list[Tensor]] = field(default_factory=dict)

    @contextlib.contextmanager
    def record_calls(self) -> Iterator[None]:
        """Note what the layers give inside the block, and what :func:`record_attention_masks` asks for."""
        handles = [
            module.register_forward_hook(partial(self._note, path))
            for path, module in find_outermost_layers(self.model)
        ]
        kept = _recordings.get()
        try:
            with contextlib.nullcontext() if kept is None else watch(self.model) as attention:
                yield
        finally:
            for handle in handles:
                handle.remove()
        if kept is not None and attention is not None:
            kept.append(attention)

    def _note(self, path: str, module: nn.Module, args: Any, output: Any) -> None:
        first = output[0] if isinstance(output, tuple) else output
        if isinstance(first, Tensor) and first.dim() == 3:
            self.calls.setdefault(path, []).append(first.detach())

    @torch.no_grad()
    def run(self, **given: Any) -> Any:
        """Run the model without gradients, note its output, and return what it returned."""
        found = self.model(**given)
        self.calls.setdefault(OUTPUT_LAYER, []).append(read_output_tensor(found).detach())
        return found

    def concatenate_layer_outputs(self) -> dict[str, Tensor]:
        """Return the outputs of all calls below each other: (B, T, D) by path."""
        return {path: torch.cat(parts, 1) for path, parts in self.calls.items()}


@contextlib.contextmanager
def record_attention_masks() -> Iterator[list[AnyModelRecording]]:
    """Record the attention of all that runs inside the block: one recording of each batch, or of each sample alone."""
    kept: list[AnyModelRecording] = []
    token = _recordings.set(kept)
    try:
        yield kept
    finally:
        _recordings.reset(token)


def find_outermost_layers(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the modules in the outermost lists of modules, in order: the layers."""
    lists = [path for path, module in model.named_modules() if isinstance(module, nn.ModuleList)]
    outer = [path for path in lists if not any(path.startswith(f"{other}.") for other in lists)]
    return [(f"{path}.{name}", child) for path in outer for name, child in model.get_submodule(path).named_children()]


# Kernels of attention: which of them a model calls, and the plain one in place of all.


class PlainKernel(TorchFunctionMode):
    """F.scaled_dot_product_attention by its plain kernel: for one thread, where torch's own switch is for all."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        if func is not F.scaled_dot_product_attention:
            return func(*args, **given)
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        given |= dict(zip(names, args, strict=False))
        query, key, value = (given.pop(name) for name in names[:3])
        mask = given.pop("attn_mask", None)
        if mask is not None and mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape, dtype=query.dtype, device=mask.device).masked_fill(~mask, -torch.inf)
        return torch.ops.aten._scaled_dot_product_attention_math(query, key, value, mask, **given)[0]


class KernelRecorder(TorchFunctionMode):
    """Which implementations of attention are called."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention:
            self.seen.add("sdpa")
        elif is_flex_attention(func):
            self.seen.add("flex_attention")
        return func(*args, **(kwargs or {}))
