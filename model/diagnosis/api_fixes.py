"""The call of a library that applies the mask that was meant, to be copied in the place of the one at hand.

Names in the lines: q, k and v as the library takes them, Q and K their numbers of queries and keys, key_keep (B, K),
True = a real token, and document (K,), the number of the document of each token.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Literal, get_args

from ..language.say import to_say
from ..masking.structure import CAUSAL, FULL, Structure
from ..masking.structure_names import parse_structure
from .rules.findings import Diagnosis
from .rules.fix_code import band

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
OF_FUNCTIONS: dict[str, Api] = {
    "F.scaled_dot_product_attention": "sdpa",
    "flex_attention": "flex_attention",
    "nn.MultiheadAttention": "multihead_attention",
}
"""The interface of a captured call."""
ANOTHER_CALL = (
    *("inverted", "future-visible", "diagonal-blocked", "causal-on-cross", "padding-visible", "padding-swapped"),
    *("soft-mask", "weak-fill", "wrong-axis", "head-order", "mask-ignored", "top-left-causal", "window-off-by-one"),
    *("window-missing", "document-leak", "leak", "over-blocked", "applied-late"),
)
"""Codes that are fixed by passing the right mask; others are fixed where their arrays are made."""
_INDICES = "i, j = {range}(K - Q, K)[:, None], {range}(K)"
_COLUMNS = "key_keep[:, None, None, :]"
_TORCH, _JAX, _KERAS = "torch.arange", "jnp.arange", "ops.arange"


def in_api(diagnosis: Diagnosis, api: Api) -> Diagnosis:
    """Return the diagnosis with fixes written for an interface, where the meant mask is one that has a name."""
    line = meant_line(diagnosis, api)
    if not line:
        return diagnosis
    findings = tuple(
        dataclasses.replace(one, fix=line) if one.code in ANOTHER_CALL and one.severity != "info" else one
        for one in diagnosis.findings
    )
    return dataclasses.replace(diagnosis, findings=findings)


def meant_line(diagnosis: Diagnosis, api: Api) -> str:
    """Return the call that applies the mask that was meant, with its padding; empty where it has no name."""
    if not diagnosis.guess or diagnosis.meant is None:
        return ""
    structure = parse_structure(diagnosis.guess)
    without_padding = structure.allowed(*diagnosis.meant.shape[-2:])
    return call_line(api, structure, bool((without_padding & ~diagnosis.meant).any()))


def call_line(api: Api, structure: Structure, padded: bool) -> str:
    """Return the call that applies ``structure``, and the padding where ``padded``."""
    return _LINES[api](structure, padded)


def _cells(structure: Structure, padding: str = "", indices: str = _TORCH) -> tuple[str, str]:
    """Return what defines i and j, and the cells that are allowed; each empty where it is not needed."""
    parts = [band(structure), "(document[:, None] == document)" if structure.starts else "", padding]
    return (f"{_INDICES.format(range=indices)}; " if parts[0] else ""), " & ".join(part for part in parts if part)


def _sdpa(structure: Structure, padded: bool) -> str:
    define, cells = _cells(structure, _COLUMNS if padded else "")
    mask = f", attn_mask={cells}" if cells else ""
    return f"{define}out = F.scaled_dot_product_attention(q, k, v{mask})" + ("  # True keeps" if cells else "")


def _multihead_attention(structure: Structure, padded: bool) -> str:
    define, cells = _cells(structure)
    masks = (f", attn_mask=~({cells})" if cells else "") + (", key_padding_mask=~key_keep" if padded else "")
    return f"{define}out, weights = attention(q, k, v{masks})" + ("  # True blocks" if masks else "")


def _transformer(structure: Structure, padded: bool) -> str:
    if structure == FULL:
        masks = ", src_key_padding_mask=~key_keep, memory_key_padding_mask=~key_keep" if padded else ""
        return f"out = model(src, tgt{masks}, tgt_mask=future)  # memory_key_padding_mask has no default"
    define, cells = _cells(structure)
    masks = f", tgt_mask=~({cells})" + (", tgt_key_padding_mask=~key_keep" if padded else "")
    return f"{define}out = model(src, tgt{masks})  # True blocks"


def _hugging_face(structure: Structure, padded: bool) -> str:
    if structure in (CAUSAL, FULL):
        mask = ", attention_mask=key_keep.long()" if padded else ""
        return f"out = model(input_ids{mask})  # 1 is a real token; a decoder adds its causal part"
    define, cells = _cells(structure, _COLUMNS if padded else "")
    added = f"torch.zeros(allowed.shape).masked_fill(~allowed, {_LOWEST})"
    return f"{define}allowed = ({cells}).expand(B, 1, Q, K); out = model(input_ids, attention_mask={added})"


_LOWEST = "torch.finfo(torch.float32).min"


def _flex_attention(structure: Structure, padded: bool) -> str:
    parts = [
        band(structure),
        "(document[i] == document[j])" if structure.starts else "",
        "key_keep[b, j]" if padded else "",
    ]
    cells = " & ".join(part for part in parts if part)
    if not cells:
        return "out = flex_attention(q, k, v)"
    shifted = re.sub(r"\bi\b", "(i + K - Q)", cells)
    made = "create_block_mask(mask_mod, B, None, Q, K)"
    return f"mask_mod = lambda b, h, i, j: {shifted}; out = flex_attention(q, k, v, block_mask={made})"


def _xformers(structure: Structure, padded: bool) -> str:
    if structure == CAUSAL and not padded:
        bias = "xops.fmha.attn_bias.LowerTriangularFromBottomRightMask()"
        return f"out = xops.memory_efficient_attention(q, k, v, attn_bias={bias})"
    define, cells = _cells(structure, _COLUMNS if padded else "")
    if not cells:
        return "out = xops.memory_efficient_attention(q, k, v)"
    added = 'torch.zeros(allowed.shape, dtype=q.dtype).masked_fill(~allowed, float("-inf"))'
    return (
        f"{define}allowed = ({cells}).expand(B, H, Q, K); "
        f"out = xops.memory_efficient_attention(q, k, v, attn_bias={added})"
    )


def _jax(structure: Structure, padded: bool) -> str:
    define, cells = _cells(structure, _COLUMNS if padded else "", _JAX)
    cells = cells.replace("(i - j).abs()", "abs(i - j)")
    mask = f", mask={cells}" if padded or not cells else f", mask=({cells})[None, None]"
    return f"{define}out = jax.nn.dot_product_attention(q, k, v{mask if cells else ''})  # [batch, token, head, width]"


def _keras(structure: Structure, padded: bool) -> str:
    define, cells = _cells(structure, "key_keep[:, None, :]" if padded else "", _KERAS)
    cells = cells.replace("(i - j).abs()", "ops.abs(i - j)")  # use_causal_mask would count from the top left
    mask = f", attention_mask={cells if padded else f'({cells})[None]'}" if cells else ""
    return f"{define if mask else ''}out = layer(query, value{mask})  # (B, T, S), True keeps"


_LINES: dict[Api, Callable[[Structure, bool], str]] = {
    "sdpa": _sdpa,
    "multihead_attention": _multihead_attention,
    "transformer": _transformer,
    "hugging_face": _hugging_face,
    "flex_attention": _flex_attention,
    "xformers": _xformers,
    "jax": _jax,
    "keras": _keras,
}
