"""Many heads as one map: means over heads or layers, and attention rollout. No torch.

Abnar and Zuidema (2020), "Quantifying Attention Flow in Transformers", section 3: with A = 0.5 W + 0.5 I for the
residual connection and W the mean over heads, rollout(l) = A(l) rollout(l - 1). They define it for a stack of
self-attention. Carrying it through decoder and cross-attention is this project's own extension, in the same way: half
of a target position is what it was, half is what it reads from the encoder.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Literal

import numpy as np

from ..language.say import say, to_say
from ..trace import AttentionMap, AttentionTrace, TraceError

EXPLAINED = to_say(
    "Rollout multiplies the layers' mean attention, half of each layer being the residual connection, and so says from "
    "which input tokens a position could have drawn. It knows nothing of the values, the feed-forward layers or the "
    "sign of what is passed on, and treats all heads alike: it shows where information may have come from, not why "
    "the model decided as it did."
)

EXTENDED = to_say(
    "Abnar and Zuidema (2020) define this for a stack of self-attention; carrying it through decoder and "
    "cross-attention is an extension made here."
)


def mean_map(attention: AttentionMap, over: Literal["heads", "layers", "all"]) -> AttentionMap:
    """Return the mean over heads (L, 1, Q, K), over layers (1, H, Q, K) or over both (1, 1, Q, K)."""
    axes = {"heads": (1,), "layers": (0,), "all": (0, 1)}[over]
    masks = attention.layer_masks
    own = None if masks is None else np.logical_or.reduce(masks, axis=axes, keepdims=True)
    weights = attention.weights.mean(axes, keepdims=True)
    paths = attention.layer_paths if over == "heads" else ()
    return dataclasses.replace(
        attention, weights=weights, layer_masks=own, layer_paths=paths, layer_calls=(), passed_masks=None, tensors={}
    )


def rollout(trace: AttentionTrace) -> AttentionTrace:
    """Return the rollout after every layer: maps of one head, weights (L, 1, Q, K), of the kinds the trace has.

    A row of the encoder sums to 1; so does a row of the decoder and of the cross map taken together, for a target
    position is made of target tokens (decoder) and of source tokens (cross).
    """
    check_whole(trace)
    encoder = trace.encoder and _with(trace.encoder, list(_encoder(_mean(trace.encoder))))
    if trace.decoder is None:
        return dataclasses.replace(trace, encoder=encoder, cross=None)
    if trace.cross is None:
        return dataclasses.replace(trace, encoder=encoder, decoder=_with(trace.decoder, _alone(trace.decoder)))
    memory = np.eye(len(trace.cross.key_tokens)) if encoder is None else encoder.weights[-1, 0]
    own, other = zip(*_decoder(_mean(trace.decoder), _mean(trace.cross), memory), strict=True)
    return dataclasses.replace(
        trace, encoder=encoder, decoder=_with(trace.decoder, list(own)), cross=_with(trace.cross, list(other))
    )


def check_whole(trace: AttentionTrace) -> None:
    """Raise TraceError unless tokens can be followed from layer to layer: no cached steps, cross in every layer."""
    for own in (trace.encoder, trace.decoder):
        if own is not None and own.weights.shape[-2] != own.weights.shape[-1]:
            raise TraceError(
                say(
                    "Tokens are followed from layer to layer, but the {kind} map has {queries} queries and {keys} "
                    "keys, as of a cached step; capture the whole text.",
                    kind=own.kind,
                    queries=own.weights.shape[-2],
                    keys=own.weights.shape[-1],
                )
            )
    decoder, cross = trace.decoder, trace.cross
    if decoder is not None and cross is not None and cross.layers != decoder.layers:
        raise TraceError(
            say(
                "Tokens are followed through a cross-attention in every decoder layer; the trace has {decoder} decoder "
                "and {cross} cross-attention layers.",
                decoder=decoder.layers,
                cross=cross.layers,
            )
        )


def with_residual(weights: np.ndarray) -> np.ndarray:
    """0.5 W + 0.5 I of mean weights (T, T); a row that may attend to nothing is that of I."""
    return _half(weights, np.eye(len(weights)))


def _encoder(layers: np.ndarray) -> Iterator[np.ndarray]:
    """Mean weights (L, S, S) -> the rollout (S, S) after each layer."""
    rolled = np.eye(layers.shape[1])
    for weights in layers:
        rolled = _half(weights @ rolled, rolled)
        yield rolled


def _alone(decoder: AttentionMap) -> list[np.ndarray]:
    """A decoder without an encoder is a stack of self-attention like any other."""
    return list(_encoder(_mean(decoder)))


def _decoder(own: np.ndarray, cross: np.ndarray, memory: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Mean weights (L, T, T) and (L, T, S), the encoder's rollout (S, S) -> shares (T, T) and (T, S) by layer."""
    target, source = np.eye(own.shape[1]), np.zeros(cross.shape[1:])
    for self_weights, cross_weights in zip(own, cross, strict=True):
        seen = self_weights @ np.hstack([target, source])
        both = _half(seen, np.hstack([target, source]))
        read = np.hstack([np.zeros_like(target), cross_weights @ memory])
        both = _half(read, both)
        target, source = both[:, : own.shape[1]], both[:, own.shape[1] :]
        yield target, source


def _half(read: np.ndarray, stream: np.ndarray) -> np.ndarray:
    """0.5 W + 0.5 I applied; a row that read nothing stays what it was."""
    return np.where(read.any(-1, keepdims=True), 0.5 * read + 0.5 * stream, stream)


def _mean(attention: AttentionMap) -> np.ndarray:
    return attention.weights.mean(1, dtype=np.float64)


def _with(attention: AttentionMap, rolled: list[np.ndarray]) -> AttentionMap:
    """A map of what was rolled out; a cell that no path reaches after the last layer is masked."""
    weights = np.stack(rolled)[:, None]
    mask, weights = weights.max((0, 1)) > 0, weights.astype(np.float32)
    return dataclasses.replace(attention, weights=weights, mask=mask, layer_masks=None, passed_masks=None, tensors={})
