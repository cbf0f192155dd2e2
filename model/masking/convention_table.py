"""The table of mask conventions: one entry for each interface, from its documentation. :mod:`.conventions` converts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..language.say import to_say
from .blocked import BLOCKED

Values = Literal["true keeps", "true blocks", "one keeps", "one blocks", "added"]
Layout = Literal["cells", "heads in batch", "queries and keys", "keys", "lengths"]


@dataclass(frozen=True)
class Convention:
    """The way in which one interface writes a mask."""

    name: str
    values: Values
    layout: Layout
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


_KEEP, _FLIP = "mask = given", "mask = ~given"
_OPEN = f"given > {BLOCKED:g}"
_PAD_KEEP = "key_keep = mask.any(-2)[:, 0]"
_COLUMNS = "[:, None, None, :].expand(-1, 1, queries, -1)"

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
        f"mask = ({_OPEN}).unflatten(0, (batch, heads)) if given.dim() == 3 else ({_OPEN})[None, None]",
    ),
    "torch_key_padding_mask": Convention(
        to_say("nn.MultiheadAttention, nn.Transformer: key_padding_mask (bool)"),
        "true blocks",
        "keys",
        "(N, S)",
        to_say("True is padding; a float 0/1 mask is accepted and adds 1 to the padding"),
        f"{_PAD_KEEP}\nkey_padding_mask = ~key_keep",
        f"mask = ~given{_COLUMNS}",
    ),
    "sdpa": Convention(
        to_say("F.scaled_dot_product_attention: attn_mask (bool)"),
        "true keeps",
        "cells",
        to_say("broadcasts to (N, H, L, S)"),
        to_say("True keeps, the opposite of nn.MultiheadAttention; is_causal is aligned at the top left"),
        "attn_mask = mask",
        _KEEP,
    ),
    "sdpa_float": Convention(
        to_say("F.scaled_dot_product_attention: attn_mask (float); xFormers: attn_bias"),
        "added",
        "cells",
        to_say("broadcasts to (N, H, L, S)"),
        to_say("added; a row of nothing but -inf has no defined answer"),
        'attn_mask = torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))',
        f"mask = {_OPEN}",
    ),
    "flex": Convention(
        to_say("flex_attention: mask_mod"),
        "true keeps",
        "cells",
        "mask_mod(b, h, q, kv) -> bool",
        to_say("BlockMask.to_dense() is per block; create_mask is per cell, and diagnose(mask=block_mask) opens it so"),
        "full = mask.expand(-1, heads, -1, -1)\nmask_mod = lambda b, h, q, kv: full[b, h, q, kv]",
        _KEEP,
    ),
    "hf_2d": Convention(
        to_say("Hugging Face: attention_mask, two axes"),
        "one keeps",
        "keys",
        "(batch, keys)",
        to_say("padding only: the model adds its own causal part"),
        f"{_PAD_KEEP}\nattention_mask = key_keep.long()",
        f"mask = given.bool(){_COLUMNS}",
    ),
    "hf_4d_sdpa": Convention(
        to_say('Hugging Face: attention_mask, four axes, attn_implementation="sdpa"'),
        "true keeps",
        "cells",
        "(batch, 1 or heads, queries, keys)",
        to_say("passed through as it is: also the causal part must be in it"),
        "attention_mask = mask",
        _KEEP,
    ),
    "hf_4d_eager": Convention(
        to_say('Hugging Face: attention_mask, four axes, attn_implementation="eager"'),
        "added",
        "cells",
        "(batch, 1 or heads, queries, keys)",
        to_say("must be additive: a boolean one is added as zeros and ones"),
        "attention_mask = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)",
        f"mask = {_OPEN}",
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
        _KEEP,
    ),
    "flash": Convention(
        to_say("FlashAttention: cu_seqlens"),
        "one keeps",
        "lengths",
        to_say("(batch + 1,) cumulative lengths; no mask tensor"),
        to_say(
            "padding must be at the right; causal is aligned at the bottom right since 2.1, windows include both ends"
        ),
        f"{_PAD_KEEP}\nlengths = key_keep.sum(-1)\n"
        "cu_seqlens = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).int()",
        f"lengths = given.diff()\nmask = (torch.arange(int(lengths.max())) < lengths[:, None]){_COLUMNS}",
    ),
    "fairseq_padding": Convention(
        to_say("fairseq: encoder_padding_mask"),
        "one blocks",
        "keys",
        "(batch, src_len)",
        to_say("1 is padding"),
        f"{_PAD_KEEP}\nencoder_padding_mask = (~key_keep).long()",
        f"mask = (given == 0){_COLUMNS}",
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
