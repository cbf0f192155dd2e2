"""Names under which libraries hand masks and weights around: one table for paste, upload, command line and Python."""

from __future__ import annotations

from typing import Literal

from .arrays import NAMES

Role = Literal[
    "weights",
    "mask keeps",
    "mask blocks",
    "mask added",
    "scores",
    "masked_scores",
    "key_keep",
    "key_blocks",
    "query_keep",
    "meant",
    "position_ids",
]
"""What an array is."""

BLOCKS_PADDING = (
    *("key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask"),
    *("encoder_padding_mask", "decoder_padding_mask"),
)
"""True or 1 is padding: torch, fairseq."""
KEEPS_PADDING = ("encoder_attention_mask", "decoder_attention_mask")
"""Two axes, 1 is a real token: Hugging Face. With more axes they are masks."""
WEIGHTS = (
    *("attn", "attention", "attentions", "attn_weights", "attention_weights", "attn_probs", "attention_probs"),
    *("encoder_attentions", "decoder_attentions", "cross_attentions"),
)
SCORES = ("attn_scores", "attention_scores")
MASKS = (
    "attn_mask",
    "attention_mask",
    "src_mask",
    "tgt_mask",
    "memory_mask",
    "attn_bias",
    "causal_mask",
    "padding_mask",
)
"""Some interfaces keep where these are True, others block: their values must tell."""
CAPTURED_KEEP = "captured_keep"
"""Padding that a capture shows, True = a real token; used where no other padding is given."""
ARGUMENTS: dict[str, Role | None] = {
    **dict.fromkeys(BLOCKS_PADDING, "key_blocks"),
    **dict.fromkeys(WEIGHTS, "weights"),
    **dict.fromkeys(SCORES, "scores"),
    **dict.fromkeys((*KEEPS_PADDING, *MASKS)),
}
"""By name; None where the values tell which of several roles it is."""


def is_known(name: str) -> bool:
    """Whether an array of this name is read."""
    return name in NAMES or name == CAPTURED_KEEP or name.lower() in ARGUMENTS
