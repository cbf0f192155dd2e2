"""The table of mask conventions, and the conversion of masks from one to another, as arrays and as code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..language import join_items, say, to_say
from .softmax import BLOCKING_THRESHOLD, is_blocked

# Every conversion goes through one form: boolean, True = may attend, (B, 1 or H, 1 or Q, K). A convention that can
# only say which keys are padding cannot hold a causal mask: ConversionError says so.


class ConversionError(ValueError):
    """A mask that the other convention cannot hold, or that is not of the convention it is said to be."""


def mask_to_boolean(array: np.ndarray, source: str, heads: int = 1) -> np.ndarray:
    """Return the mask of any convention as booleans, True = may attend, (B, 1 or H, 1 or Q, K).

    Raises:
        ConversionError: when the values or axes are not those of the convention.
    """
    convention = _find_convention(source)
    array = np.asarray(array)
    if convention.layout == "lengths":
        return _cumulative_lengths_to_mask(array)
    return _expand_axes(_values_to_boolean(array, convention), convention, heads)


def mask_from_boolean(allowed: np.ndarray, target: str, heads: int = 1) -> np.ndarray:
    """Return booleans (B, 1 or H, 1 or Q, K), True = may attend, as any convention writes them.

    Raises:
        ConversionError: when the convention cannot hold this mask.
    """
    convention = _find_convention(target)
    allowed = np.asarray(allowed, bool)
    if allowed.ndim != 4:
        raise ConversionError(
            say("A mask needs the axes (batch, heads, queries, keys); this one has {shape}.", shape=allowed.shape)
        )
    if convention.layout == "lengths":
        return _padding_to_cumulative_lengths(_extract_key_mask(allowed, convention))
    return _values_from_boolean(_reduce_axes(allowed, convention, heads), convention)


def convert_mask(array: np.ndarray, source: str, target: str, heads: int = 1) -> np.ndarray:
    """Return a mask of one convention as another writes it. Raises ConversionError as the two steps do."""
    return mask_from_boolean(mask_to_boolean(array, source, heads), target, heads)


def write_conversion_code(source: str, target: str) -> str:
    """Return the lines of torch that turn ``given``, in one convention, into the argument of the other."""
    return f"{_find_convention(source).undo}\n{_find_convention(target).make}"


def _find_convention(name: str) -> Convention:
    if name not in CONVENTIONS:
        raise ConversionError(
            say("There is no convention {name}; there are {names}.", name=repr(name), names=join_items(CONVENTIONS))
        )
    return CONVENTIONS[name]


def _values_to_boolean(array: np.ndarray, convention: Convention) -> np.ndarray:
    if convention.values == "added":
        if array.dtype.kind != "f" or np.isnan(array).any():
            raise ConversionError(
                say(
                    "{convention} is added to the scores, so it must hold floating-point numbers.",
                    convention=say(convention.name),
                )
            )
        if np.isin(array, (0, 1)).all() and array.any():
            raise ConversionError(say("This mask of zeros and ones would be added to the scores and block nothing."))
        return ~is_blocked(array)
    if array.dtype.kind != "b" and not np.isin(array, (0, 1)).all():
        raise ConversionError(
            say("{convention} holds booleans, or nothing but 0 and 1.", convention=say(convention.name))
        )
    return array.astype(bool) if convention.values in ("true keeps", "one keeps") else ~array.astype(bool)


def _values_from_boolean(allowed: np.ndarray, convention: Convention) -> np.ndarray:
    if convention.values == "added":
        return np.where(allowed, 0.0, convention.fill).astype(np.float32)
    values = allowed if convention.values in ("true keeps", "one keeps") else ~allowed
    return values if convention.values.startswith("true") else values.astype(np.int64)


def _expand_axes(allowed: np.ndarray, convention: Convention, heads: int) -> np.ndarray:
    if convention.layout == "keys":
        if allowed.ndim != 2:
            raise _axes_error(allowed, convention)
        return allowed[:, None, None, :]
    if convention.layout == "heads in batch" and allowed.ndim == 3:
        if allowed.shape[0] % heads:
            raise ConversionError(
                say("The first axis, {size}, is not a multiple of {heads} heads.", size=allowed.shape[0], heads=heads)
            )
        return allowed.reshape(-1, heads, *allowed.shape[1:])
    if allowed.ndim == 3:
        return allowed[:, None]
    if allowed.ndim not in (2, 4):
        raise _axes_error(allowed, convention)
    return allowed if allowed.ndim == 4 else allowed[None, None]


def _axes_error(allowed: np.ndarray, convention: Convention) -> ConversionError:
    return ConversionError(
        say(
            "{convention} has the axes {axes}; this mask has {shape}.",
            convention=say(convention.name),
            axes=say(convention.shape),
            shape=allowed.shape,
        )
    )


def _reduce_axes(allowed: np.ndarray, convention: Convention, heads: int) -> np.ndarray:
    if convention.layout == "keys":
        return _extract_key_mask(allowed, convention)
    if convention.layout == "heads in batch":
        if allowed.shape[1] not in (1, heads):
            raise ConversionError(
                say("The mask has {heads} heads, but {expected} are expected.", heads=allowed.shape[1], expected=heads)
            )
        whole = np.broadcast_to(allowed, (allowed.shape[0], heads, *allowed.shape[2:]))
        return whole.reshape(-1, *allowed.shape[2:])
    if convention.layout == "queries and keys":
        if (allowed != allowed[:, :1]).any():
            raise ConversionError(
                say(
                    "{convention} has no head axis, and this mask differs between heads.",
                    convention=say(convention.name),
                )
            )
        return allowed[:, 0]
    return allowed


def _extract_key_mask(allowed: np.ndarray, convention: Convention) -> np.ndarray:
    """Return (B, K) where that holds the whole mask. Raises ConversionError."""
    keys = allowed[:, 0, 0]
    if (allowed != keys[:, None, None, :]).any():
        raise ConversionError(
            say(
                "{convention} can only say which keys are padding; this mask differs between queries.",
                convention=say(convention.name),
            )
        )
    return keys


def _padding_to_cumulative_lengths(keep: np.ndarray) -> np.ndarray:
    if (keep[:, 1:] & ~keep[:, :-1]).any():
        raise ConversionError(say("FlashAttention counts lengths, so padding must be at the right."))
    return np.concatenate([[0], np.cumsum(keep.sum(-1))]).astype(np.int32)


def _cumulative_lengths_to_mask(ends: np.ndarray) -> np.ndarray:
    if ends.ndim != 1 or ends.size < 2 or ends.dtype.kind not in "iu" or (np.diff(ends) < 0).any() or ends[-1] > 2**20:
        raise ConversionError(say("cu_seqlens is a list of growing whole numbers that starts at 0."))
    lengths = np.diff(ends)
    return (np.arange(max(int(lengths.max()), 1)) < lengths[:, None])[:, None, None, :]


# The table: one entry for each interface, from its documentation.


MaskValues = Literal["true keeps", "true blocks", "one keeps", "one blocks", "added"]
MaskLayout = Literal["cells", "heads in batch", "queries and keys", "keys", "lengths"]


@dataclass(frozen=True)
class Convention:
    """The way in which one interface writes a mask."""

    name: str
    values: MaskValues
    layout: MaskLayout
    shape: str
    """The shape as the documentation writes it."""
    trap: str
    """The most frequent mistake; like `name` and `shape` a message to say."""
    make: str
    """Code from ``mask`` (torch, boolean, True = may attend, (B, 1 or H, Q, K)) to the argument."""
    undo: str
    """Code from ``given`` (torch) back to ``mask``; ``batch``, ``heads`` and ``queries`` are numbers."""
    fill: float = -np.inf
    """The value on blocked cells, where values are added."""


_UNDO_UNCHANGED, _UNDO_INVERTED = "mask = given", "mask = ~given"
_IS_OPEN = f"given > {BLOCKING_THRESHOLD:g}"
_MAKE_KEY_KEEP = "key_keep = mask.any(-2)[:, 0]"
_EXPAND_COLUMNS = "[:, None, None, :].expand(-1, 1, queries, -1)"

CONVENTIONS: dict[str, Convention] = {
    "torch_attn_mask": Convention(
        to_say("nn.MultiheadAttention, nn.Transformer: attn_mask (bool)"),
        "true blocks",
        "heads in batch",
        to_say("(L, S) or (N*H, L, S)"),
        to_say("True blocks, the opposite of F.scaled_dot_product_attention; (N*H, ...) is batch-major"),
        "attn_mask = ~mask.expand(-1, heads, -1, -1).flatten(0, 1)",
        "mask = ~given.unflatten(0, (batch, heads)) if given.dim() == 3 else ~given[None, None]",
    ),
    "torch_attn_mask_float": Convention(
        to_say("nn.MultiheadAttention, nn.Transformer: attn_mask (float); generate_square_subsequent_mask"),
        "added",
        "heads in batch",
        to_say("(L, S) or (N*H, L, S)"),
        to_say("added to the scores: a mask of zeros and ones blocks nothing; is_causal is only a hint"),
        'attn_mask = torch.zeros(mask.shape).masked_fill(~mask, float("-inf")).expand(-1, heads, -1, -1).flatten(0, 1)',
        f"mask = ({_IS_OPEN}).unflatten(0, (batch, heads)) if given.dim() == 3 else ({_IS_OPEN})[None, None]",
    ),
    "torch_key_padding_mask": Convention(
        to_say("nn.MultiheadAttention, nn.Transformer: key_padding_mask (bool)"),
        "true blocks",
        "keys",
        "(N, S)",
        to_say("True is padding; a float 0/1 mask is accepted and adds 1 to the padding"),
        f"{_MAKE_KEY_KEEP}\nkey_padding_mask = ~key_keep",
        f"mask = ~given{_EXPAND_COLUMNS}",
    ),
    "sdpa": Convention(
        to_say("F.scaled_dot_product_attention: attn_mask (bool)"),
        "true keeps",
        "cells",
        to_say("broadcasts to (N, H, L, S)"),
        to_say("True keeps, the opposite of nn.MultiheadAttention; is_causal is aligned at the top left"),
        "attn_mask = mask",
        _UNDO_UNCHANGED,
    ),
    "sdpa_float": Convention(
        to_say("F.scaled_dot_product_attention: attn_mask (float); xFormers: attn_bias"),
        "added",
        "cells",
        to_say("broadcasts to (N, H, L, S)"),
        to_say("added; a row of nothing but -inf has no defined answer"),
        'attn_mask = torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))',
        f"mask = {_IS_OPEN}",
    ),
    "flex": Convention(
        to_say("flex_attention: mask_mod"),
        "true keeps",
        "cells",
        "mask_mod(b, h, q, kv) -> bool",
        to_say("BlockMask.to_dense() is per block; create_mask is per cell, and diagnose(mask=block_mask) opens it so"),
        "full = mask.expand(-1, heads, -1, -1)\nmask_mod = lambda b, h, q, kv: full[b, h, q, kv]",
        _UNDO_UNCHANGED,
    ),
    "hf_2d": Convention(
        to_say("Hugging Face: attention_mask, two axes"),
        "one keeps",
        "keys",
        "(batch, keys)",
        to_say("padding only: the model adds its own causal part"),
        f"{_MAKE_KEY_KEEP}\nattention_mask = key_keep.long()",
        f"mask = given.bool(){_EXPAND_COLUMNS}",
    ),
    "hf_4d_sdpa": Convention(
        to_say('Hugging Face: attention_mask, four axes, attn_implementation="sdpa"'),
        "true keeps",
        "cells",
        "(batch, 1 or heads, queries, keys)",
        to_say("passed through as it is: also the causal part must be in it"),
        "attention_mask = mask",
        _UNDO_UNCHANGED,
    ),
    "hf_4d_eager": Convention(
        to_say('Hugging Face: attention_mask, four axes, attn_implementation="eager"'),
        "added",
        "cells",
        "(batch, 1 or heads, queries, keys)",
        to_say("must be additive: a boolean one is added as zeros and ones"),
        "attention_mask = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)",
        f"mask = {_IS_OPEN}",
        float(np.finfo(np.float32).min),
    ),
    "annotated": Convention(
        to_say("The Annotated Transformer, preset shared_bpe: masked_fill(mask == 0, -1e9)"),
        "one keeps",
        "cells",
        to_say("(N, 1, S), (N, T, T); a head axis is added inside"),
        to_say("given an additive mask, mask == 0 selects what may be seen"),
        "mask_argument = mask.long()",
        "mask = given != 0",
    ),
    "pad_row": Convention(
        to_say("Preset pad_row: masked_fill(mask, -inf)"),
        "true blocks",
        "queries and keys",
        "(B, Lq, Lk)",
        to_say("True blocks; no head axis"),
        "mask_argument = ~mask[:, 0]",
        "mask = ~given[:, None]",
    ),
    "keras": Convention(
        to_say("Keras MultiHeadAttention: attention_mask"),
        "true keeps",
        "queries and keys",
        "(B, T, S)",
        to_say("no head axis"),
        "attention_mask = mask[:, 0]",
        "mask = given[:, None]",
    ),
    "old_tf": Convention(
        to_say("Old TensorFlow tutorial: scores += mask * -1e9"),
        "one blocks",
        "cells",
        to_say("(B, 1, 1, S) or (B, 1, T, S)"),
        to_say("1 blocks, the opposite of Keras"),
        "tf_mask = (~mask).float()",
        "mask = given == 0",
    ),
    "flax": Convention(
        to_say("Flax, JAX: mask"),
        "true keeps",
        "cells",
        to_say("[batch, heads, query, key]"),
        to_say("a bias is a separate argument"),
        "mask_argument = mask",
        _UNDO_UNCHANGED,
    ),
    "flash": Convention(
        to_say("FlashAttention: cu_seqlens"),
        "one keeps",
        "lengths",
        to_say("(batch + 1,) cumulative lengths; no mask tensor"),
        to_say(
            "padding must be at the right; causal is aligned at the bottom right since 2.1, windows include both ends"
        ),
        f"{_MAKE_KEY_KEEP}\nlengths = key_keep.sum(-1)\n"
        "cu_seqlens = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).int()",
        f"lengths = given.diff()\nmask = (torch.arange(int(lengths.max())) < lengths[:, None]){_EXPAND_COLUMNS}",
    ),
    "fairseq_padding": Convention(
        to_say("fairseq: encoder_padding_mask"),
        "one blocks",
        "keys",
        "(batch, src_len)",
        to_say("1 is padding"),
        f"{_MAKE_KEY_KEEP}\nencoder_padding_mask = (~key_keep).long()",
        f"mask = (given == 0){_EXPAND_COLUMNS}",
    ),
    "fairseq_attn": Convention(
        to_say("fairseq: attn_mask, non-zero blocks with -1e8"),
        "one blocks",
        "cells",
        "(tgt_len, src_len)",
        to_say("any non-zero value blocks, so an additive mask works and a keep-mask is turned around"),
        "attn_mask = (~mask).long()",
        "mask = given == 0",
    ),
}
"""By short name, in the order of the table that people read."""
