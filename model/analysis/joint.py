"""All three attentions of one layer as one matrix over source and target: Tensor2Tensor's picture. No torch.

                source     target
    source   |  encoder  |  never   |
    target   |  cross    |  decoder |

A target row sums to 2: one attention over the source and one over the target. The blocks lie as in Tensor2Tensor's
visualization/attention.py, `get_full_attention`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..language.say import say
from ..trace import AttentionTrace, TraceError


@dataclass(frozen=True, eq=False)
class Joint:
    """One layer of a trace over source and target together: R rows of queries, C columns of keys.

    R and C are both S + T of a trace as it was captured; merged into words, rows and columns may differ in number.
    """

    weights: np.ndarray
    """(R, C) float32"""
    mask: np.ndarray
    """(R, C) bool, True = may attend; the encoder never sees the target."""
    row_tokens: tuple[str, ...]
    """(R,) the source tokens, then the tokens fed in to the decoder."""
    predicted_tokens: tuple[str, ...]
    """(R,) the source tokens, then the tokens predicted, where known."""
    column_tokens: tuple[str, ...]
    """(C,) the source tokens, then the tokens that the decoder attends to."""
    source_length: int
    """S, where the blocks meet, down and across."""


def joint(trace: AttentionTrace, layer: int, head: int | None = None) -> Joint:
    """Return one head of a layer, or the mean over its heads, of all three attentions; counted from 0.

    TraceError if one of the maps is missing or has no such layer or head.
    """
    encoder, decoder, cross = trace.encoder, trace.decoder, trace.cross
    if encoder is None or decoder is None or cross is None:
        raise TraceError(
            say("The joint picture needs encoder, decoder and cross-attention; this trace has not all three.")
        )
    maps = (encoder, decoder, cross)
    layers, heads = min(one.layers for one in maps), min(one.heads for one in maps)
    if not 0 <= layer < layers or not (head is None or 0 <= head < heads):
        raise TraceError(
            say(
                "All three attentions have layers 1 to {layers} and heads 1 to {heads}; choose among these.",
                layers=layers,
                heads=heads,
            )
        )
    source = len(encoder.query_tokens)
    weights = np.zeros((source + len(decoder.query_tokens), source + len(decoder.key_tokens)), dtype=np.float32)
    mask = np.zeros(weights.shape, dtype=bool)
    places = (
        (encoder, slice(0, source), slice(0, source)),
        (decoder, slice(source, None), slice(source, None)),
        (cross, slice(source, None), slice(0, source)),
    )
    for one, rows, columns in places:
        weights[rows, columns] = one.weights[layer].mean(0) if head is None else one.weights[layer, head]
        mask[rows, columns] = one.masks[layer].any(0) if head is None else one.mask_of(layer, head)
    return Joint(
        weights,
        mask,
        (*encoder.query_tokens, *decoder.query_tokens),
        (*encoder.query_tokens, *decoder.rows("predicted")),
        (*encoder.key_tokens, *decoder.key_tokens),
        source,
    )
