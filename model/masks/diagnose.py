"""Mask faults, judged from tensors alone: weights, and where given scores, mask, padding and what was meant.

Pure numpy. :func:`diagnose` returns findings whose codes are those of :data:`.catalogue.FAULTS`. Correct attention
gives nothing above ``info``. Files are read by :mod:`.read_files`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..language import join_items, say
from ..trace import KINDS
from .array_normalisation import normalise_arrays
from .arrays import (
    ARRAY_NAMES,
    DiagnosisError,
    assign_roles,
    compute_kernel_mask_cells,
    evaluate_block_mask,
    is_block_mask,
    is_known_array_name,
    is_tensor,
    join_generation_steps,
    stack_layer_tensors,
    tensor_to_array,
)
from .attention_call_origin import CAPTURED_CALLS, CAPTURED_EXTRA_KEYS, AttentionCall
from .diagnosis_checks import convert_cu_seqlens_to_meant, diagnose_arrays, diagnose_document_positions
from .findings import Diagnosis, add_attention_calls
from .fixes import API_OF_FUNCTION, APIS, Api, write_fixes_for_api

__all__ = ["diagnose"]


def diagnose(weights: Any = None, *, meant: Any = None, map: str = "", api: str = "", **arrays: Any) -> Diagnosis:
    """Return the diagnosis of one attention map.

    Args:
        weights: (Q, K), (H, Q, K), (B, H, Q, K) or (B, L, H, Q, K) attention weights. They may be left out where
            ``mask`` or ``masked_scores`` is given: then the softmax of those is judged. Like all arrays they may be
            tensors of torch, or a list of one (B, H, Q, K) tensor a layer; a mask may be a BlockMask.
        meant: what the mask should be: booleans (True = may attend) that broadcast to the weights, or a name such as
            ``causal``, ``padding``, ``causal+window:4`` or ``causal and window 4`` (see :mod:`.rule`);
            ``causal+window:4 / causal`` for layers in turn.
            Proposed when left out; what contradicts only the proposal is ``likely``, never an error.
        map: ``encoder``, ``decoder`` or ``cross`` where that is known.
        api: the interface in which fixes are to be written, one of :data:`.fixes.APIS`, such as ``sdpa`` or
            ``flex_attention``; left out, that of the captured calls where all layers call the same one.
        arrays: any of ``scores`` (scaled, before the mask), ``masked_scores``, ``mask`` (boolean: True = may attend;
            float: added), ``key_keep`` and ``query_keep`` (True = a real token), ``position_ids``, ``cu_seqlens``
            (where packed documents end, 0 first); or any by the name
            of its library, such as ``key_padding_mask``, in its convention (:data:`.arrays.ARGUMENT_ROLES`).

    Raises:
        DiagnosisError: for arrays that do not fit each other, or unknown names.
    """
    calls = _parse_calls(arrays.pop(CAPTURED_CALLS, ()))
    extra_keys = int(arrays.pop(CAPTURED_EXTRA_KEYS, 0))
    if unknown := [name for name in arrays if not is_known_array_name(name)]:
        raise DiagnosisError(
            say(
                "Unknown arrays: {unknown}. The names are {names}, and the arguments of torch and Hugging Face.",
                unknown=join_items(sorted(unknown)),
                names=join_items(ARRAY_NAMES),
            )
        )
    if map and map not in KINDS:
        raise DiagnosisError(say("There is no map {map}; the maps are {maps}.", map=repr(map), maps=join_items(KINDS)))
    meant_name = meant if isinstance(meant, str) else None
    given = {"weights": weights, "meant": None if meant_name else meant, **arrays}
    try:
        raw = {name: _value_to_array(name, value) for name, value in given.items() if value is not None}
        raw |= _collect_differing_block_masks(raw, given, has_meaning=meant is not None)
        named, blocks = assign_roles(raw, meant_name)
        if (documents := diagnose_document_positions(named)) is not None:
            return documents
        named, meant_name = convert_cu_seqlens_to_meant(named, meant_name)
        arranged = normalise_arrays(named, map, blocks, extra_keys)
        return _write_api_fixes(add_attention_calls(diagnose_arrays(arranged, meant_name), calls), api, calls)
    except DiagnosisError:
        raise
    except ValueError as error:
        raise DiagnosisError(str(error)) from error


def _collect_differing_block_masks(
    raw: Mapping[str, np.ndarray], given: Mapping[str, Any], has_meaning: bool
) -> dict[str, np.ndarray]:
    """Return the cells that each BlockMask's blocks let through, by its name, where its mask_mod has others.

    Then the mask_mod is what was meant, unless a meaning is given.
    """
    in_force = {
        name: compute_kernel_mask_cells(name, one, raw[name]) for name, one in given.items() if is_block_mask(one)
    }
    changed = {name: cells for name, cells in in_force.items() if not np.array_equal(cells, raw[name])}
    if not changed or has_meaning:
        return changed
    return changed | {"meant": raw[next(iter(changed))]}


def _write_api_fixes(diagnosis: Diagnosis, api: str, calls: Sequence[AttentionCall]) -> Diagnosis:
    """Return the diagnosis with fixes for ``api``, or else for what all ``calls`` are. Raises DiagnosisError."""
    if api and api not in APIS:
        raise DiagnosisError(
            say("There is no interface {api}; there are {apis}.", api=repr(api), apis=join_items(APIS))
        )
    called = {API_OF_FUNCTION.get(call.inside or call.function, "") for call in calls}
    chosen = api or (called.pop() if len(called) == 1 else "")
    return write_fixes_for_api(diagnosis, cast(Api, chosen)) if chosen else diagnosis


def _parse_calls(texts: Any) -> tuple[AttentionCall, ...]:
    try:
        return tuple(AttentionCall.from_json(str(text)) for text in texts)
    except (TypeError, ValueError) as error:
        raise DiagnosisError(
            say("{name} is not what Capture.arrays gives; leave it out.", name=CAPTURED_CALLS)
        ) from error


def _value_to_array(name: str, value: Any) -> np.ndarray:
    """Return what was given as an array of numpy. Raises ValueError."""
    if is_tensor(value):
        return tensor_to_array(name, value)
    if is_block_mask(value):
        return evaluate_block_mask(name, value)
    if isinstance(value, (list, tuple)) and value and all(map(is_tensor, value)):
        if value[0].ndim == 4:
            return stack_layer_tensors(name, value)
        return np.stack([tensor_to_array(name, tensor) for tensor in value])
    if isinstance(value, (list, tuple)) and value and all(_is_layer_list(step) for step in value):
        return join_generation_steps(name, value)
    array = np.asarray(value)
    if array.dtype == object:
        raise DiagnosisError(
            say("{name} is an array of objects; give numbers: np.stack of arrays of one shape.", name=name)
        )
    return array


def _is_layer_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(is_tensor(one) and one.ndim == 4 for one in value)
