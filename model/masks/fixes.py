"""Fixes applied to the arrays themselves, and fixes written as the call of a library."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ..language import say, to_say
from .arrays import ARRAY_NAMES, Arrays, broadcast_key_mask
from .findings import Diagnosis
from .fix_lines import has_position_based_cells, write_structure_cells
from .scores import has_bias
from .softmax import softmax
from .structure import CAUSAL, FULL, Structure, parse_structure

# Fixes of the arrays, which can then be judged again. A fix changes the mask or how it is applied, and the softmax is
# taken again over the scores. Where only weights are known, their logarithms stand in for the scores, which is exact
# for every cell that had weight: leaving cells out of a softmax and dividing by the new sum are the same. A cell
# without weight has no score, and gets the mean of its row.


_CODES_FIXED_BY_MEANT = (
    "diagonal-blocked",
    "causal-on-cross",
    "padding-swapped",
    "wrong-axis",
    "head-order",
    "top-left-causal",
    "window-off-by-one",
    "window-missing",
    "wrong-layer-pattern",
    "mask-shifted",
    "sample-order",
    "stale-cache",
    "document-leak",
    "mask-ignored",
    "hole-inside",
    "leak",
    "over-blocked",
)
"""Codes whose fix puts the meant mask in the place of the one in force."""
_SOFTMAX_TEXT = to_say("the softmax was taken again, over the keys")


@dataclass(frozen=True, eq=False)
class FixResult:
    """The arrays after a fix, by name, and what was done, without the end of the sentence."""

    arrays: dict[str, np.ndarray]
    description: str
    invented_scores: int = 0
    """Number of cells whose score had to be made up."""


@dataclass(frozen=True, eq=False)
class _FixState:
    """What a fix works on."""

    arrays: Arrays
    mask: np.ndarray
    """(B, L, H, Q, K) bool: the mask in force, as given, or read off the weights."""
    meant: np.ndarray
    """(B, L, H, Q, K) bool."""
    keep: np.ndarray
    """(B, 1, 1, 1, K) bool: real keys."""


def can_fix(code: str, arrays: Arrays, diagnosis: Diagnosis) -> bool:
    """Whether the fix of ``code`` can be applied to these arrays; else a person has to make it in the model."""
    if code in ("softmax-axis", "dropout-on"):
        return arrays.scores is not None
    if code == "transposed":
        return not arrays.transposed
    if code == "hole-inside" and arrays.key_keep is not None:
        return False  # Which tokens are real is for their ids to say.
    if code == "bias-wrong":
        return arrays.scores is not None and has_bias(arrays)
    return code in _MASK_FIXES and diagnosis.meant is not None


def apply_fix(code: str, arrays: Arrays, diagnosis: Diagnosis) -> FixResult:
    """Return the arrays with the fix of ``code`` applied. Raises ValueError where :func:`can_fix` returns False."""
    if not can_fix(code, arrays, diagnosis):
        raise ValueError(say("The fix of {code} cannot be carried out on these arrays.", code=code))
    if code == "transposed":
        weights = np.swapaxes(arrays.weights, -1, -2)
        return FixResult(_collect_arrays_by_name(arrays, weights=weights), say("queries and keys were exchanged"))
    if code == "bias-wrong":
        return _add_bias(arrays)
    shape = arrays.weights.shape
    if diagnosis.meant is None:
        mask = np.broadcast_to(np.ones((), bool) if arrays.mask is None else arrays.mask, shape)
        return _reapply_mask(arrays, mask, say(_SOFTMAX_TEXT))
    nonzero = np.nan_to_num(arrays.weights) > 0
    mask = np.broadcast_to(nonzero if arrays.mask is None else arrays.mask, shape)
    keep = np.ones((shape[0], shape[4]), bool) if arrays.key_keep is None else arrays.key_keep
    meant = np.broadcast_to(diagnosis.meant, shape)
    change, description = _MASK_FIXES.get(code, (_use_current_mask, _SOFTMAX_TEXT))
    if code == "leak" and not diagnosis.stated and arrays.key_keep is not None:
        change, description = _MASK_FIXES["padding-visible"]  # The guess says nothing about the other cells.
    return _reapply_mask(arrays, change(_FixState(arrays, mask, meant, broadcast_key_mask(keep))), say(description))


def _add_bias(arrays: Arrays) -> FixResult:
    """Add the bias given, with what it blocks, to the scores, and take the softmax."""
    assert arrays.scores is not None
    assert arrays.bias is not None
    masked = arrays.scores.astype(np.float32) + arrays.bias.astype(np.float32)
    named = _collect_arrays_by_name(arrays, weights=softmax(masked), mask=arrays.bias)
    return FixResult(
        {name: array for name, array in named.items() if name != "masked_scores"}, say("the bias was added")
    )


def _reapply_mask(arrays: Arrays, mask: np.ndarray, description: str) -> FixResult:
    """Fill with -inf where ``mask`` is False, take the softmax over the keys, zeros where no key is left."""
    scores, invented = _recover_scores(arrays, mask)
    masked = np.where(mask, scores, -np.inf)
    weights = softmax(masked)
    more = {"masked_scores": masked} if arrays.masked_scores is not None or arrays.scores is not None else {}
    return FixResult(_collect_arrays_by_name(arrays, weights=weights, mask=mask, **more), description, invented)


def _recover_scores(arrays: Arrays, mask: np.ndarray) -> tuple[np.ndarray, int]:
    """Return (B, L, H, Q, K) scores before the mask, and how many cells of ``mask`` had none."""
    if arrays.scores is not None:
        return arrays.scores.astype(np.float32), 0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(arrays.weights.astype(np.float32))
    known = np.isfinite(logs)
    count = np.maximum(known.sum(-1, keepdims=True), 1)
    mean = np.where(known, logs, 0).sum(-1, keepdims=True) / count
    return np.where(known, logs, mean).astype(np.float32), int((mask & ~known).sum())


def _collect_arrays_by_name(arrays: Arrays, **changed: np.ndarray) -> dict[str, np.ndarray]:
    """Return the arrays that were given, by name, with the changed ones in their place."""
    given = {name: getattr(arrays, name) for name in ARRAY_NAMES if name in arrays.given and name != "weights"}
    return {name: array for name, array in (given | changed).items() if array is not None}


def _use_current_mask(state: _FixState) -> np.ndarray:
    return state.mask


def _invert_mask(state: _FixState) -> np.ndarray:
    return ~state.mask


def _use_meant_mask(state: _FixState) -> np.ndarray:
    return state.meant


def _block_future(state: _FixState) -> np.ndarray:
    return state.mask & CAUSAL.build_mask(*state.mask.shape[-2:])


def _block_padding(state: _FixState) -> np.ndarray:
    columns = state.meant.any((1, 2, 3), keepdims=True)
    return state.mask & state.keep & columns


def _use_given_or_meant_mask(state: _FixState) -> np.ndarray:
    """Return the mask given, which blocks by a fill; without one the cells that were meant to be blocked."""
    return state.meant if state.arrays.mask is None else state.mask


_MASK_FIXES: dict[str, tuple[Callable[[_FixState], np.ndarray], str]] = {
    **dict.fromkeys(_CODES_FIXED_BY_MEANT, (_use_meant_mask, to_say("the mask was replaced by what was meant"))),
    "inverted": (_invert_mask, to_say("True and False of the mask were exchanged")),
    "future-visible": (_block_future, to_say("the future was blocked")),
    "padding-visible": (_block_padding, to_say("the padding keys were blocked")),
    "soft-mask": (_use_meant_mask, to_say("blocked cells were filled with -inf, in place of adding the mask")),
    "weak-fill": (_use_meant_mask, to_say("blocked cells were filled with -inf")),
    "fill-overflow": (
        _use_given_or_meant_mask,
        to_say("blocked cells were filled with -inf, and rows without a key set to zero"),
    ),
    "double-fill": (_use_meant_mask, to_say("the masks were joined and filled once, with -inf")),
    "applied-late": (_use_current_mask, to_say("the mask was applied before the softmax")),
    "empty-row": (_use_given_or_meant_mask, to_say("rows without an allowed key were set to zero")),
}
"""By code, the function that makes the fixed mask, and what it does in words."""

# Calls of a library that apply the mask that was meant, to be copied in the place of the one at hand.
#
# Names in the lines: q, k and v as the library takes them, Q and K their numbers of queries and keys, key_keep (B, K),
# True = a real token, and document (K,), the number of the document of each token.


Api = Literal[
    "sdpa", "multihead_attention", "transformer", "hugging_face", "flex_attention", "xformers", "jax", "keras"
]
APIS: tuple[Api, ...] = get_args(Api)
API_NAMES: dict[Api, str] = {
    "sdpa": "F.scaled_dot_product_attention",
    "multihead_attention": "nn.MultiheadAttention",
    "transformer": "nn.Transformer",
    "hugging_face": to_say("a model of Hugging Face"),
    "flex_attention": "flex_attention",
    "xformers": "xFormers",
    "jax": "jax.nn.dot_product_attention",
    "keras": "Keras MultiHeadAttention",
}
API_OF_FUNCTION: dict[str, Api] = {
    "F.scaled_dot_product_attention": "sdpa",
    "flex_attention": "flex_attention",
    "nn.MultiheadAttention": "multihead_attention",
    "nn.Transformer": "transformer",
}
"""The interface of a captured call, or of what runs around it."""
CODES_FIXED_BY_CALL = (
    *("inverted", "future-visible", "diagonal-blocked", "causal-on-cross", "padding-visible", "padding-swapped"),
    *("soft-mask", "weak-fill", "wrong-axis", "head-order", "mask-ignored", "top-left-causal", "window-off-by-one"),
    *("window-missing", "document-leak", "leak", "over-blocked", "applied-late"),
)
"""Codes that are fixed by passing the right mask; others are fixed where their arrays are made."""
_INDEX_LINE = "i, j = {range}(K - Q, K)[:, None], {range}(K)"
_PADDING_CELLS = "key_keep[:, None, None, :]"
_TORCH_RANGE, _JAX_RANGE, _KERAS_RANGE = "torch.arange", "jnp.arange", "ops.arange"


def write_fixes_for_api(diagnosis: Diagnosis, api: Api) -> Diagnosis:
    """Return the diagnosis with fixes written for an interface, where the meant mask is one that has a name."""
    line = write_meant_mask_call(diagnosis, api)
    if not line:
        return diagnosis
    findings = tuple(
        dataclasses.replace(one, fix=line) if one.code in CODES_FIXED_BY_CALL and one.severity != "info" else one
        for one in diagnosis.findings
    )
    return dataclasses.replace(diagnosis, findings=findings)


def write_meant_mask_call(diagnosis: Diagnosis, api: Api) -> str:
    """Return the call that applies the mask that was meant, with its padding; empty where it has no name."""
    if not diagnosis.guess or diagnosis.meant is None:
        return ""
    structure = parse_structure(diagnosis.guess)
    without_padding = structure.build_mask(*diagnosis.meant.shape[-2:])
    columns = diagnosis.meant.any((1, 2, 3), keepdims=True)
    if (diagnosis.meant ^ (without_padding & columns)).any():
        return ""  # its chunks count from the first real key, or rows of padding are empty
    return write_mask_call(api, structure, bool((without_padding & ~diagnosis.meant).any()))


def write_mask_call(api: Api, structure: Structure, padded: bool) -> str:
    """Return the call that applies ``structure``, and the padding where ``padded``."""
    return _CALL_WRITERS[api](structure, padded)


def _write_allowed_cells_code(structure: Structure, padding: str = "", indices: str = _TORCH_RANGE) -> tuple[str, str]:
    """Return what defines i and j, and the cells that are allowed; each empty where it is not needed."""
    define = f"{_INDEX_LINE.format(range=indices)}; " if has_position_based_cells(structure) else ""
    return define, " & ".join(part for part in (write_structure_cells(structure), padding) if part)


def _write_sdpa_call(structure: Structure, padded: bool) -> str:
    define, cells = _write_allowed_cells_code(structure, _PADDING_CELLS if padded else "")
    mask = f", attn_mask={cells}" if cells else ""
    return f"{define}out = F.scaled_dot_product_attention(q, k, v{mask})" + ("  # True keeps" if cells else "")


def _write_multihead_attention_call(structure: Structure, padded: bool) -> str:
    define, cells = _write_allowed_cells_code(structure)
    masks = (f", attn_mask=~({cells})" if cells else "") + (", key_padding_mask=~key_keep" if padded else "")
    return f"{define}out, weights = attention(q, k, v{masks})" + ("  # True blocks" if masks else "")


def _write_transformer_call(structure: Structure, padded: bool) -> str:
    if structure == FULL:
        masks = ", src_key_padding_mask=~key_keep, memory_key_padding_mask=~key_keep" if padded else ""
        return f"out = model(src, tgt{masks}, tgt_mask=future)  # memory_key_padding_mask has no default"
    define, cells = _write_allowed_cells_code(structure)
    masks = f", tgt_mask=~({cells})" + (", tgt_key_padding_mask=~key_keep" if padded else "")
    return f"{define}out = model(src, tgt{masks})  # True blocks"


def _write_hugging_face_call(structure: Structure, padded: bool) -> str:
    if structure in (CAUSAL, FULL):
        mask = ", attention_mask=key_keep.long()" if padded else ""
        return f"out = model(input_ids{mask})  # 1 is a real token; a decoder adds its causal part"
    define, cells = _write_allowed_cells_code(structure, _PADDING_CELLS if padded else "")
    added = f"torch.zeros(allowed.shape).masked_fill(~allowed, {_LOWEST_FLOAT})"
    return f"{define}allowed = ({cells}).expand(B, 1, Q, K); out = model(input_ids, attention_mask={added})"


_LOWEST_FLOAT = "torch.finfo(torch.float32).min"


def _write_flex_attention_call(structure: Structure, padded: bool) -> str:
    structured = write_structure_cells(structure, "(document[i] == document[j])")
    cells = " & ".join(part for part in (structured, "key_keep[b, j]" if padded else "") if part)
    if not cells:
        return "out = flex_attention(q, k, v)"
    shifted = re.sub(r"\bi\b", "(i + K - Q)", cells)
    made = "create_block_mask(mask_mod, B, None, Q, K)"
    return f"mask_mod = lambda b, h, i, j: {shifted}; out = flex_attention(q, k, v, block_mask={made})"


def _write_xformers_call(structure: Structure, padded: bool) -> str:
    if structure == CAUSAL and not padded:
        bias = "xops.fmha.attn_bias.LowerTriangularFromBottomRightMask()"
        return f"out = xops.memory_efficient_attention(q, k, v, attn_bias={bias})"
    define, cells = _write_allowed_cells_code(structure, _PADDING_CELLS if padded else "")
    if not cells:
        return "out = xops.memory_efficient_attention(q, k, v)"
    added = 'torch.zeros(allowed.shape, dtype=q.dtype).masked_fill(~allowed, float("-inf"))'
    return (
        f"{define}allowed = ({cells}).expand(B, H, Q, K); "
        f"out = xops.memory_efficient_attention(q, k, v, attn_bias={added})"
    )


def _write_jax_call(structure: Structure, padded: bool) -> str:
    define, cells = _write_allowed_cells_code(structure, _PADDING_CELLS if padded else "", _JAX_RANGE)
    cells = cells.replace("(i - j).abs()", "abs(i - j)")
    mask = f", mask={cells}" if padded or not cells else f", mask=({cells})[None, None]"
    return f"{define}out = jax.nn.dot_product_attention(q, k, v{mask if cells else ''})  # [batch, token, head, width]"


def _write_keras_call(structure: Structure, padded: bool) -> str:
    define, cells = _write_allowed_cells_code(structure, "key_keep[:, None, :]" if padded else "", _KERAS_RANGE)
    cells = cells.replace("(i - j).abs()", "ops.abs(i - j)")  # use_causal_mask would count from the top left
    mask = f", attention_mask={cells if padded else f'({cells})[None]'}" if cells else ""
    return f"{define if mask else ''}out = layer(query, value{mask})  # (B, T, S), True keeps"


_CALL_WRITERS: dict[Api, Callable[[Structure, bool], str]] = {
    "sdpa": _write_sdpa_call,
    "multihead_attention": _write_multihead_attention_call,
    "transformer": _write_transformer_call,
    "hugging_face": _write_hugging_face_call,
    "flex_attention": _write_flex_attention_call,
    "xformers": _write_xformers_call,
    "jax": _write_jax_call,
    "keras": _write_keras_call,
}
