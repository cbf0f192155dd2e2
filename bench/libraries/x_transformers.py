"""Models of x-transformers, by its options: 2 layers of 3 heads over 11 tokens, and of packages by the same hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from attenscope.trace import Kind
from bench.libraries.case import Case, Sizes, Subject
from bench.libraries.text import states, tokens

S, T = 11, 7
SMALL = {"dim": 24, "depth": 2, "heads": 3, "attn_dim_head": 8}
OPTIONS: Mapping[str, tuple[Mapping[str, Any], int]] = {
    "plain": ({}, 0),
    "flash": ({"attn_flash": True}, 0),
    "rotary": ({"rotary_pos_emb": True}, 0),
    "xpos": ({"rotary_xpos": True}, 0),
    "polar": ({"polar_pos_emb": True}, 0),
    "ALiBi": ({"alibi_pos_bias": True}, 0),
    "ALiBi, flash": ({"alibi_pos_bias": True, "attn_flash": True}, 0),
    "ALiBi by the text": ({"attn_data_dependent_alibi": True}, 0),
    "relative bias": ({"rel_pos_bias": True}, 0),
    "bias by a network": ({"dynamic_pos_bias": True}, 0),
    "normalised q and k": ({"attn_qk_norm": True}, 0),
    "talking heads": ({"attn_pre_talking_heads": True}, 0),
    "memory keys": ({"attn_num_mem_kv": 3}, 3),
    "memory keys, flash": ({"attn_num_mem_kv": 3, "attn_flash": True}, 3),
    "a key of zeros": ({"attn_add_zero_kv": True}, 1),
    "a key of zeros, flash": ({"attn_add_zero_kv": True, "attn_flash": True}, 1),
    "one head of keys": ({"attn_one_kv_head": True}, 0),
    "latent keys": ({"attn_use_latent_kv": True, "attn_dim_latent_kv": 8}, 0),
    "values of another width": ({"attn_value_dim_head": 5}, 0),
    "the k largest scores": ({"attn_sparse_topk": 3}, 0),
    "softcapping": ({"attn_softclamp_logits": True}, 0),
    "selective": ({"attn_selective": True}, 0),
    "LASER": ({"attn_laser": True}, 0),
    "gated values": ({"attn_gate_values": True}, 0),
    "scaled heads": ({"attn_head_scale": True}, 0),
    "attention on attention": ({"attn_on_attn": True}, 0),
    "residual scores": ({"residual_attn": True}, 0),
    "shifted tokens": ({"shift_tokens": 1}, 0),
    "sandwich": ({"sandwich_coef": 1}, 0),
    "macaron": ({"macaron": True}, 0),
    "ScaleNorm": ({"use_scalenorm": True}, 0),
    "tied layers": ({"weight_tie_layers": True}, 0),
}
"""What it is -> options of its attention layers, and the keys that are added."""


def _text(layers: str, given: Mapping[str, Tensor], wrapper: Mapping[str, Any], **options: Any) -> Subject:
    x = import_module("x_transformers")
    attn_layers = getattr(x, layers)(**SMALL, **options)
    model = x.TransformerWrapper(num_tokens=50, max_seq_len=16, attn_layers=attn_layers, **wrapper)
    return Subject(model, lambda: model(**given))


def _both() -> Subject:
    sizes = {"num_tokens": 50, "depth": 2, "heads": 3, "max_seq_len": 16}
    sides = {f"{side}_{name}": value for side in ("enc", "dec") for name, value in sizes.items()}
    model = import_module("x_transformers").XTransformer(dim=24, tie_token_emb=True, **sides)
    return Subject(model, lambda: model(tokens(S), tokens(T)))


def _vision() -> Subject:
    x = import_module("x_transformers")
    model = x.ViTransformerWrapper(image_size=24, patch_size=6, num_classes=7, attn_layers=x.Encoder(**SMALL))
    return Subject(model, lambda: model(states(3, 24, 24)))


def _crossing() -> Subject:
    model = import_module("x_transformers").CrossAttender(**SMALL)
    return Subject(model, lambda: model(states(T, 24), context=states(S, 24)))


def windows(softmax: Tensor, size: int = 4, backward: int = 1) -> Tensor:
    """Return weights of local-attention (B * H, windows, window, keys of it and of those before) as (B * H, Q, K).

    One number at a time, of :data:`S` tokens: the keys of window w begin ``backward`` windows before it.
    """
    if softmax.dim() != 4 or softmax.shape[2] != size:
        return softmax
    dense = torch.zeros(len(softmax), S, S)
    for query in range(S):
        window, row = divmod(query, size)
        for column in range(softmax.shape[-1]):
            key = (window - backward) * size + column
            if 0 <= key < S:
                dense[:, query, key] = softmax[:, window, row, column]
    return dense


def _local(causal: bool) -> Subject:
    sizes = {"num_tokens": 50, "dim": 24, "depth": 2, "max_seq_len": 16, "heads": 3, "dim_head": 8}
    model = import_module("local_attention").LocalTransformer(causal=causal, local_attn_window_size=4, **sizes)
    return Subject(model, lambda: model(tokens(S)))


def cases() -> Iterator[Case]:
    """Yield the cases of x-transformers and local-attention."""
    keep = torch.ones(2, S, dtype=torch.bool)
    keep[1, 8:] = False
    decoder: Mapping[Kind, Sizes] = {"decoder": (2, 3, S, S)}
    for name, (options, added) in OPTIONS.items():
        build = partial(_text, "Decoder", {"x": tokens(S)}, {}, **options)
        yield Case("x-transformers", f"Decoder, {name}", build, {"decoder": (2, 3, S, S + added)})
    for name, options in (("plain", {}), ("flash", {"attn_flash": True})):
        build = partial(_text, "Encoder", {"x": tokens(S), "mask": keep}, {}, **options)
        yield Case("x-transformers", f"Encoder, padded, {name}", build, {"encoder": (2, 3, S, S)})
    build = partial(_text, "Encoder", {"x": tokens(S)}, {"num_memory_tokens": 2})
    yield Case("x-transformers", "Encoder, memory tokens", build, {"encoder": (2, 3, S + 2, S + 2)})
    crossed: Mapping[Kind, Sizes] = {"decoder": (2, 3, T, T), "cross": (2, 3, T, S)}
    given = {"x": tokens(T), "context": states(S, 24)}
    build = partial(_text, "Decoder", given, {}, cross_attend=True)
    yield Case("x-transformers", "Decoder over a context", build, crossed)
    yield Case("x-transformers", "XTransformer", _both, {"encoder": (2, 3, S, S), **crossed})
    yield Case("x-transformers", "ViTransformerWrapper", _vision, {"encoder": (2, 3, 16, 16)})
    yield Case("x-transformers", "CrossAttender", _crossing, {"cross": (2, 3, T, S)})
    streams = partial(_text, "Decoder", {"x": tokens(S)}, {}, num_residual_streams=2)
    yield Case("x-transformers", "Decoder, residual streams", streams, decoder, "attn_layers.layers")
    yield Case("local-attention", "LocalTransformer, causal", partial(_local, True), decoder, lay=windows)
    yield Case("local-attention", "LocalTransformer", partial(_local, False), {"encoder": (2, 3, S, S)}, lay=windows)
