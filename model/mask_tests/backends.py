"""Compares a model's layer outputs over kernels, caches, paddings and packing, and asserts that they agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend

from ..capture.any_model.module_kinds import is_causal_language_model_class
from ..capture.any_model.recording import AnyModelRecording
from ..language import join_items, say, to_say
from ..trace import Kind, TraceError
from . import backend_runs
from .backend_runs import OUTPUT_LAYER, Batch, LayerOutputs, NotPossibleError, record_attention_masks

# The comparison: where each way first parts from the model as it is, and by how much.


_ROUNDING_UNITS = 256
"""Units of rounding of the largest output of a layer that two ways may differ by, whatever the noise measured."""
_NOISE_FACTOR = 4
"""How many times the noise measured counts as a difference."""
WAYS: dict[str, str] = {
    "eager": to_say("softmax written out"),
    "sdpa math": to_say("F.scaled_dot_product_attention, plain kernel"),
    "sdpa efficient": to_say("F.scaled_dot_product_attention, memory-efficient kernel"),
    "sdpa flash": to_say("F.scaled_dot_product_attention, flash kernel"),
    "flex": to_say("flex_attention, uncompiled"),
    to_say("cache"): to_say("with a cache: half of it, two tokens, then one by one"),
    to_say("static cache"): to_say("the same with a static cache, against the dynamic one"),
    to_say("left padding"): to_say("padded at the left, positions counted from the first real token"),
    to_say("right padding"): to_say("padded at the right by two more"),
    to_say("packed"): to_say("all samples in one row, with a mask of blocks"),
    to_say("batch of one"): to_say("each sample alone"),
}
"""Every way by its name, in the order in which they run, and what it is."""


MasksByKind = Mapping[Kind, np.ndarray]
"""(L, Q, K) bool of each kind of attention, True = some head may attend."""


@dataclass(frozen=True)
class BackendResult:
    """One way beside the model as it is, on the batch as given."""

    name: str
    status: Literal["same", "parts", "not run"]
    reason: str = ""
    """Why it did not run, in the language in which it was tried, as is `no_masks`."""
    layer: str = ""
    """The path of the first layer whose outputs part, ``output`` after the last; empty where none does."""
    sample: int = 0
    row: int = 0
    """The first row of that layer that parts, counted in real tokens from 0."""
    difference: float = 0.0
    """The largest difference of that layer, NaN if there is one; of all layers where none parts."""
    noise: float = 0.0
    """How far that layer may differ: the noise of another batch size, and rounding."""
    masks: MasksByKind = field(default_factory=dict, compare=False, repr=False)
    """The masks in force of its last sample, with its padding, where they were asked for."""
    no_masks: str = ""
    """Why there are none, where they were asked for."""

    def __str__(self) -> str:
        if self.status == "not run":
            return say("{way}: not run, {reason}", way=self.name, reason=self.reason)
        if self.status == "same":
            return say("{way}: the same, up to {difference:.1e}", way=self.name, difference=self.difference)
        place = {"way": self.name, "layer": self.layer, "sample": self.sample, "token": self.row}
        if not math.isfinite(self.difference):
            return say(
                "{way}: parts at {layer}, sample {sample}, token {token}; outputs of this layer are NaN or infinite",
                **place,
            )
        return say(
            "{way}: parts at {layer}, sample {sample}, token {token}, by {difference:.2g}, {times:.0f} times the noise",
            difference=self.difference,
            times=self.difference / self.noise,
            **place,
        )


@dataclass(frozen=True)
class BackendComparison:
    """The result of each way that :func:`compare_backends` ran."""

    results: tuple[BackendResult, ...]
    masks: MasksByKind = field(default_factory=dict, compare=False, repr=False)
    """Those of the model as it is, where they were asked for."""

    @property
    def differing_results(self) -> tuple[BackendResult, ...]:
        """Return the ways whose outputs part from those of the model as it is."""
        return tuple(one for one in self.results if one.status == "parts")

    def __getitem__(self, name: str) -> BackendResult:
        return next(one for one in self.results if one.name == name)

    def __str__(self) -> str:
        return "\n".join(map(str, self.results))


def compare_backends(
    model: Any,
    inputs: Mapping[str, Tensor] | Tensor,
    *,
    ways: Collection[str] = tuple(WAYS),
    causal: bool | None = None,
    masks: bool = False,
) -> BackendComparison:
    """Compare the outputs of every layer of a Hugging Face model, by each of ``ways`` (:data:`WAYS`).

    Args:
        model: a decoder, an encoder or both, in eval mode; nothing of it is changed.
        inputs: ``input_ids`` (B, T) with ``attention_mask`` (B, T), 1 = a real token, as a tokenizer returns them; for
            both also ``decoder_input_ids`` and ``decoder_attention_mask``, padded at the right. Source and target of a
            sample stay together; the padding that is moved is that of the source.
        causal: whether it hides the future; by its class unless given.
        masks: whether the masks that each way applied are recorded as well.

    Raises:
        TypeError and ValueError: for a model or inputs that cannot be compared, and for unknown ways.
    """
    if unknown := set(ways) - set(WAYS):
        raise ValueError(
            say(
                "There is no way {unknown}; there are {known}.",
                unknown=join_items(sorted(unknown)),
                known=join_items(WAYS),
            )
        )
    batch = _make_input_batch(model, inputs)
    hides = (
        causal
        if causal is not None
        else batch.target is not None or is_causal_language_model_class(type(model).__name__)
    )
    with _record_masks_when_requested(masks) as recordings:
        reference = backend_runs.run_unchanged(model, batch)
    noise = _compute_layer_tolerances(reference, backend_runs.run_doubled_batch(model, batch))
    functions = _make_run_functions(hides)
    found = []
    for name in WAYS:
        if name in ways:
            with _record_masks_when_requested(masks) as seen:
                result = _compare_one_backend(name, functions[name], model, batch, reference, noise)
            found.append(
                replace(result, **_read_recorded_masks(seen)) if masks and result.status != "not run" else result
            )
    return BackendComparison(tuple(found), _read_recorded_masks(recordings)["masks"])


def _record_masks_when_requested(masks: bool) -> AbstractContextManager[list[AnyModelRecording]]:
    return record_attention_masks() if masks else nullcontext([])


def _read_recorded_masks(recordings: Sequence[AnyModelRecording]) -> dict[str, Any]:
    """Return ``masks`` of the last sample that ran, with ``no_masks``, the reason, where they are not known."""
    if not recordings:
        return {"masks": {}}
    last = recordings[-1]
    try:
        trace = last.sample(max(last.batches(), default=1) - 1)
    except TraceError as error:
        steps = _join_static_cache_masks(last)
        return {"masks": steps} if steps else {"masks": {}, "no_masks": str(error)}
    return {"masks": {kind: one.masks.any(1) for kind, one in trace.maps.items()}}


def _make_input_batch(model: Any, inputs: Mapping[str, Tensor] | Tensor) -> Batch:
    if not hasattr(model, "config"):
        raise TypeError(say("Give a Hugging Face model: an encoder, a decoder, or both."))
    if model.training:
        raise ValueError(
            say("The model is in training mode, where dropout changes every run: call model.eval() first.")
        )
    given = {"input_ids": inputs} if isinstance(inputs, Tensor) else inputs
    batch = _read_ids_and_mask(given, "")
    if not getattr(model.config, "is_encoder_decoder", False):
        return batch
    if "decoder_input_ids" not in given:
        raise TypeError(
            say("An encoder-decoder model also needs decoder_input_ids (B, T'), and decoder_attention_mask.")
        )
    return replace(batch, target=_read_ids_and_mask(given, "decoder_"))


def _read_ids_and_mask(given: Mapping[str, Tensor], prefix: str) -> Batch:
    """Return the ids and the mask whose names begin with ``prefix``. Raises ValueError."""
    ids, mask = given[f"{prefix}input_ids"], given.get(f"{prefix}attention_mask")
    keep = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.bool()
    if ids.dim() != 2 or keep.shape != ids.shape or not bool((keep.sum(-1) > 1).all()):
        raise ValueError(
            say(
                "Give {ids} (B, T) and a {mask} of that shape, two real tokens in each sample.",
                ids=f"{prefix}input_ids",
                mask=f"{prefix}attention_mask",
            )
        )
    return Batch(ids, keep)


def _make_run_functions(causal: bool) -> dict[str, Callable[[Any, Batch], LayerOutputs]]:
    def only_causal(function: Callable[[Any, Batch], LayerOutputs], model: Any, batch: Batch) -> LayerOutputs:
        if not causal:
            raise NotPossibleError(say("the model is not causal, so that nothing can be cached"))
        return function(model, batch)

    kernels = {
        "sdpa math": SDPBackend.MATH,
        "sdpa efficient": SDPBackend.EFFICIENT_ATTENTION,
        "sdpa flash": SDPBackend.FLASH_ATTENTION,
    }
    return {
        "eager": partial(backend_runs.run_with_kernel, implementation="eager"),
        **{
            name: partial(backend_runs.run_with_kernel, implementation="sdpa", backend=one)
            for name, one in kernels.items()
        },
        "flex": partial(backend_runs.run_with_kernel, implementation="flex_attention"),
        "cache": partial(only_causal, backend_runs.run_with_cache),
        "static cache": partial(only_causal, backend_runs.run_with_static_cache),
        "left padding": partial(backend_runs.run_with_padding_side, side="left"),
        "right padding": partial(backend_runs.run_with_padding_side, side="right"),
        "packed": partial(backend_runs.run_packed, causal=causal),
        "batch of one": backend_runs.run_samples_alone,
    }


def _compute_layer_tolerances(reference: LayerOutputs, again: LayerOutputs) -> dict[str, float]:
    """Return how far each layer may differ: what another batch size changes, and rounding beside its largest output.

    NaN and infinity are no noise, and hide nothing else.
    """
    found = {}
    for path, rows in reference.items():
        largest = _find_largest_finite(rows)
        measured = _find_largest_finite(_measure_row_changes(rows, again[path]))
        found[path] = max(
            _ROUNDING_UNITS * torch.finfo(rows[0].dtype).eps * max(1.0, largest), _NOISE_FACTOR * measured
        )
    return found


def _measure_row_changes(rows: list[Tensor], others: list[Tensor]) -> list[Tensor]:
    """Return the largest change of each row, (T,) a sample; NaN if there is one, 0 where both are equally infinite."""
    return [(one - other).abs().masked_fill(one == other, 0).amax(-1) for one, other in zip(rows, others, strict=True)]


def _find_largest_finite(values: list[Tensor]) -> float:
    """Return the largest absolute value of all samples that is finite; 0 where none is."""
    return float(torch.cat(values).nan_to_num(0, 0, 0).abs().max())


def _join_static_cache_masks(recording: AnyModelRecording) -> MasksByKind:
    """Return the rows of all steps of a decoder, over the slots of its cache; nothing where slots are used again."""
    by_path: dict[str, list[Tensor]] = {}
    for call in recording.calls:
        by_path.setdefault(call.path, []).append(call.attention.allowed[-1].any(0))
    widths = [[step.shape[1] for step in steps] for steps in by_path.values()]
    if any(one != widths[0] or one != sorted(one) for one in widths):
        return {}
    most = widths[0][-1] if widths else 0
    if most < sum(len(step) for steps in list(by_path.values())[:1] for step in steps):
        return {}
    rows = [[F.pad(step, (0, most - step.shape[1])) for step in steps] for steps in by_path.values()]
    return {"decoder": np.stack([torch.cat(steps).cpu().numpy() for steps in rows])}


def _compare_one_backend(
    name: str,
    function: Callable[[Any, Batch], LayerOutputs],
    model: Any,
    batch: Batch,
    reference: LayerOutputs,
    noise: Mapping[str, float],
) -> BackendResult:
    try:
        found = function(model, batch)
    except NotPossibleError as error:
        return BackendResult(name, "not run", str(error))
    most = 0.0
    for path in (*(one for one in reference if one != OUTPUT_LAYER), OUTPUT_LAYER):
        if path not in found:
            continue
        changes = _measure_row_changes(reference[path], found[path])
        largest = float(torch.cat(changes).max())  # NaN if there is one, as Python's max would not be
        if not largest <= noise[path]:
            sample, row = _find_first_difference(changes, noise[path])
            return BackendResult(name, "parts", "", path, sample, row, largest, noise[path])
        most = max(most, largest)
    return BackendResult(name, "same", "", "", 0, 0, most, max(noise.values()))


def _find_first_difference(changes: list[Tensor], noise: float) -> tuple[int, int]:
    """Return (sample, row) of the first row that parts, in the first sample in which one does."""
    for sample, change in enumerate(changes):
        wrong = torch.nonzero(~(change <= noise))
        if len(wrong):
            return sample, int(wrong[0])
    return 0, 0


# Assertions that a model gives the same by other ways: with a cache and without, packed and apart.
#
# Each takes a Hugging Face model and what its tokenizer returns, as :func:`compare_backends` does.


def assert_backends_agree(model: Any, inputs: Mapping[str, Tensor] | Tensor) -> None:
    """Assert that every way that the model has gives the outputs of the model as it is.

    Raises:
        AssertionError: naming the ways that part, with the first layer and row of each.
    """
    _assert_backends(model, inputs, tuple(WAYS), needed=())


def assert_cache_agrees(model: Any, inputs: Mapping[str, Tensor] | Tensor) -> None:
    """Assert that decoding with a cache gives the outputs of one full forward.

    Raises:
        AssertionError: naming the first layer and row that parts. ValueError: where the model has no cache.
    """
    _assert_backends(model, inputs, ("cache",))


def assert_static_cache_agrees(model: Any, inputs: Mapping[str, Tensor] | Tensor) -> None:
    """Assert that a static and a dynamic cache both give the outputs of one full forward.

    Raises:
        AssertionError: naming the first layer and row that parts. ValueError: where the model has no such caches.
    """
    _assert_backends(model, inputs, ("cache", "static cache"))


def assert_packing_agrees(model: Any, inputs: Mapping[str, Tensor] | Tensor) -> None:
    """Assert that samples packed into one row give the outputs of each alone.

    Raises:
        AssertionError: naming the first layer and row that parts. ValueError: where samples cannot be packed.
    """
    _assert_backends(model, inputs, ("packed", "batch of one"))


def assert_padding_sides_agree(model: Any, inputs: Mapping[str, Tensor] | Tensor) -> None:
    """Assert that padding at the left and at the right give the outputs of the batch as it is.

    Raises:
        AssertionError: naming the first layer and row that parts.
    """
    _assert_backends(model, inputs, ("left padding", "right padding"))


def _assert_backends(
    model: Any, inputs: Mapping[str, Tensor] | Tensor, ways: tuple[str, ...], needed: tuple[str, ...] | None = None
) -> None:
    found = compare_backends(model, inputs, ways=ways)
    missing = [
        one for one in found.results if one.status == "not run" and one.name in (ways if needed is None else needed)
    ]
    if missing:
        raise ValueError(say("{faults}.", faults="; ".join(map(str, missing))))
    if found.differing_results:
        raise AssertionError(say("{faults}.", faults="; ".join(map(str, found.differing_results))))
