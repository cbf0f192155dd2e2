"""The printed fixes of a diagnosis, executed one after the other on the arrays they were printed for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.arrays import Arrays
from attenscope.masks.diagnosis_checks import diagnose_arrays
from attenscope.masks.evidence import gather_evidence
from attenscope.masks.findings import Diagnosis, Finding

MOST = 4
BY_HAND = ("batch-axis", "dropout-on")
"""Codes whose fix is made where the model is run."""
RIGHT_MASK = ("weak-fill", "soft-mask", "fill-overflow", "empty-row", "double-fill", "applied-late", "scores-mismatch")
"""Codes whose mask is right, and what is done with it wrong."""
RESULTS = ("out", "weights", "scores", "mask", "position_ids")
"""Names that a line of a fix gives a new value, the last step first."""


def execute_fixes(named: Mapping[str, Any], meant: str | None = None, map: str = "") -> tuple[Diagnosis, bool]:
    """Return the diagnosis after all fixes, and whether no cell that was meant lost its weight by them."""
    arrays = normalise_arrays(named, map)
    first = found = diagnose_arrays(arrays, meant)
    before = np.nan_to_num(arrays.weights) > 0
    for _ in range(MOST):
        finding = next((one for one in found.findings if one.severity != "info" and one.code not in BY_HAND), None)
        if finding is None:
            break
        arrays = normalise_arrays(_execute(finding, arrays, found), map)
        found = diagnose_arrays(arrays, meant)
    after = np.nan_to_num(arrays.weights) > 0
    if first.meant is None:
        return found, True
    real = arrays.real_queries[:, None, None, :, None]
    unmasked = before & first.meant & real & ~after
    return found, not (unmasked & first.meant.any(-1, keepdims=True)).any()


def _execute(finding: Finding, arrays: Arrays, found: Diagnosis) -> dict[str, np.ndarray]:
    """Return the named arrays after the fix of one finding, layer by layer."""
    b, layers, heads, queries, keys = arrays.sizes
    if finding.fix.startswith("key_keep") and arrays.key_keep is not None:
        inside = (
            np.maximum.accumulate(arrays.key_keep, -1) & np.maximum.accumulate(arrays.key_keep[:, ::-1], -1)[:, ::-1]
        )
        return _named(arrays) | {"key_keep": inside}
    made = [_execute_in_layer(finding, arrays, found, layer) for layer in range(layers)]
    changed = {name: np.stack([one[name] for one in made], 1) for name in made[0] if name != "position_ids"}
    changed |= {name: made[0][name] for name in made[0] if name == "position_ids"}
    assert changed["weights"].shape == (b, layers, heads, queries, keys) if "weights" in changed else True
    kept = _named(arrays)
    if "weights" in changed:
        kept.pop("masked_scores", None)
    if arrays.mask is None or "weights" in changed:
        kept.pop("mask", None)
    return kept | changed


def _named(arrays: Arrays) -> dict[str, np.ndarray]:
    names = ("scores", "masked_scores", "meant", "key_keep", "query_keep", "position_ids")
    given = {name: getattr(arrays, name) for name in names if name in arrays.given}
    if "mask" in arrays.given and arrays.mask is not None:
        given["mask"] = arrays.mask if arrays.bias is None else arrays.bias
    return given | {"weights": arrays.weights}


def _execute_in_layer(finding: Finding, arrays: Arrays, found: Diagnosis, layer: int) -> dict[str, np.ndarray]:
    line, names = finding.fix, _reader_names(finding.code, arrays, found, layer)
    before = dict(names)
    exec(line, names)
    changed = next(name for name in RESULTS if name in names and names[name] is not before.get(name))
    value: Tensor = names[changed]
    if changed == "position_ids":
        return {"position_ids": value.numpy()}
    shape = arrays.sizes[0], *arrays.sizes[2:]
    if changed == "mask":
        if value.ndim == 3 and len(value) == shape[0] * shape[1]:
            major = "repeat(heads" in line
            value = value.unflatten(0, (shape[1], shape[0]) if major else (shape[0], shape[1]))
            value = value.swapaxes(0, 1) if major else value
        value = names["plain"] + _added(torch.broadcast_to(value, shape), arrays)
    if changed in ("mask", "scores"):
        value = value.float().softmax(-1).nan_to_num()
    return {"weights": torch.broadcast_to(value, shape).float().numpy()}


def _added(mask: Tensor, arrays: Arrays) -> Tensor:
    if arrays.writing == "added":
        return mask.float()
    keeps = mask if arrays.writing == "keeps" else ~mask
    return torch.zeros(mask.shape).masked_fill(~keeps, float("-inf"))


def _reader_names(code: str, arrays: Arrays, found: Diagnosis, layer: int) -> dict[str, Any]:
    """Return what the person has who reads the line: the arrays given, the sizes, and the parts of the model."""
    b, _, heads, queries, keys = arrays.sizes
    weights = torch.from_numpy(np.array(arrays.weights[:, layer], np.float32))
    scores = arrays.scores if arrays.scores is not None else arrays.masked_scores
    if scores is not None:
        plain = torch.from_numpy(np.array(scores[:, layer], np.float32))
    else:
        plain = weights.clamp(min=1e-30).log().nan_to_num()
    meant = np.ones((1,) * 5, bool) if found.meant is None else found.meant
    meant_here = torch.from_numpy(np.array(np.broadcast_to(meant, arrays.sizes)[:, layer]))
    keep = arrays.key_keep if arrays.key_keep is not None else np.broadcast_to(meant.any((1, 2, 3)), (b, keys))
    names: dict[str, Any] = {
        **{"torch": torch, "F": F, "B": b, "Q": queries, "K": keys, "heads": heads, "layer": layer},
        **{"weights": weights, "scores": plain.clone(), "plain": plain, "key_keep": torch.from_numpy(np.array(keep))},
        **{
            "q": plain * keys**0.5,
            "k": torch.eye(keys).expand(b, heads, keys, keys),
            "v": torch.eye(keys).expand(b, heads, keys, keys),
        },
        **{"causal": torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries), "d": 1},
        "mask": _mask_in_force(arrays, meant, layer),
    }
    if "meant" in arrays.given:
        names["meant"] = meant_here
    if code == "transposed" and arrays.transposed:
        names["weights"] = weights.mT  # as they were given
    if code == "softmax-axis":
        names["scores"] = plain.masked_fill(~meant_here, float("-inf"))
    if code == "head-order":
        names["mask"] = meant_here[:, 0]
    if code == "inverted" and "mask" not in arrays.given:
        names["mask"] = ~meant_here
    if code in RIGHT_MASK and "mask" not in arrays.given:
        names["mask"] = meant_here
    if arrays.bias is not None:
        bias = np.array(np.broadcast_to(arrays.bias, arrays.sizes)[:, layer], np.float32)
        names["bias"] = torch.from_numpy(bias)
    return names


def _mask_in_force(arrays: Arrays, meant: np.ndarray, layer: int) -> Tensor:
    """Return the mask as it was given, or else what the weights show of it, True = may attend."""
    if arrays.bias is not None:
        return torch.from_numpy(np.array(np.broadcast_to(arrays.bias, arrays.sizes)[:, layer], np.float32))
    if arrays.mask is not None:
        mask = np.broadcast_to(arrays.mask, arrays.sizes)
        mask = ~mask if arrays.writing == "blocks" else mask
    else:
        evidence = gather_evidence(arrays.weights, arrays.real_queries)
        mask = evidence.nonzero | (meant & evidence.maybe_underflow)
    return torch.from_numpy(np.array(mask[:, layer]))
