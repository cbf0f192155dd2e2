"""Models of diffusers and of labml-nn: 2 layers of 3 heads, 2 samples of 7 tokens of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from attenscope.trace import Kind
from bench.libraries.case import Case, Sizes, Subject
from bench.libraries.text import S, T, made, states

Given = dict[str, Any]

_IMAGE = states(4, 8, 8)
_PATCHES = 16
_TEXT: Given = {"encoder_hidden_states": states(T, 24)}
_TIMES: Given = {**_TEXT, "timestep": torch.ones(2)}
_POOLED: Given = {**_TIMES, "pooled_projections": states(24)}
_HEADS: Given = {"num_attention_heads": 3, "attention_head_dim": 8, "in_channels": 4, "out_channels": 4}
_SQUARE: Given = {**_HEADS, "num_layers": 2, "sample_size": 8, "patch_size": 2}
_JOINT: Given = {"joint_attention_dim": 24, "pooled_projection_dim": 24}
_CROSSED: dict[Kind, Sizes] = {"encoder": (2, 3, _PATCHES, _PATCHES), "cross": (2, 3, _PATCHES, T)}


def _joined(tokens: int) -> dict[Kind, Sizes]:
    return {"encoder": (2, 3, tokens, tokens)}


def _images() -> Iterator[tuple[str, Given, Tensor, Given, Mapping[Kind, Sizes]]]:
    """Class of diffusers, its sizes, what it denoises, what it is given besides, and its maps."""
    how = {**_SQUARE, "norm_num_groups": 4, "num_embeds_ada_norm": 10}
    classes: Given = {"timestep": torch.tensor([1, 2]), "class_labels": torch.tensor([1, 2])}
    yield "DiTTransformer2DModel", how, _IMAGE, classes, _joined(_PATCHES)
    how = {**_SQUARE, "out_channels": 8, "cross_attention_dim": 24, "caption_channels": 24}
    plain: Given = {**_TEXT, "timestep": torch.tensor([1, 2]), "added_cond_kwargs": dict.fromkeys(_OF_PIXART)}
    yield "PixArtTransformer2DModel", how, _IMAGE, plain, _CROSSED
    how = {**_SQUARE, **_JOINT, "caption_projection_dim": 24}
    yield "SD3Transformer2DModel", how, _IMAGE, _POOLED, _joined(_PATCHES + T)
    how = {**_HEADS, **_JOINT, "patch_size": 1, "num_layers": 1, "num_single_layers": 1, "attention_head_dim": 16}
    places: Given = {**_POOLED, "img_ids": torch.zeros(_PATCHES, 3), "txt_ids": torch.zeros(T, 3)}
    how |= {"axes_dims_rope": (4, 4, 8)}
    yield "FluxTransformer2DModel", how, states(_PATCHES, 4), places, _joined(_PATCHES + T)
    how = {**_HEADS, "sample_size": 8, "patch_size": 2, "num_mmdit_layers": 1, "num_single_dit_layers": 1}
    how |= {"joint_attention_dim": 24, "caption_projection_dim": 24, "pos_embed_max_size": 16}
    yield "AuraFlowTransformer2DModel (8 registers)", how, _IMAGE, _TIMES, _joined(_PATCHES + T + 8)


_OF_PIXART = ("resolution", "aspect_ratio")


def _others() -> Iterator[tuple[str, Given, Tensor, Given, Mapping[Kind, Sizes]]]:
    """The same of videos, embeddings, a convolutional network, and with linear attention beside."""
    how = {**_HEADS, "num_layers": 2, "patch_size": (1, 2, 2), "text_dim": 24, "freq_dim": 24, "ffn_dim": 32}
    how |= {"attention_head_dim": 12}
    yield "WanTransformer3DModel", how, states(4, 1, 8, 8), _TIMES, _CROSSED
    how = {**_HEADS, "num_layers": 2, "attention_head_dim": 16, "time_embed_dim": 8, "text_embed_dim": 24}
    how |= {"sample_width": 8, "sample_height": 8, "sample_frames": 5, "max_text_seq_length": T, "patch_size": 2}
    yield "CogVideoXTransformer3DModel", how, states(2, 4, 8, 8), _TIMES, _joined(2 * _PATCHES + T)
    how = {"num_attention_heads": 3, "attention_head_dim": 8, "num_layers": 2, "embedding_dim": 24}
    how |= {"num_embeddings": T, "additional_embeddings": 4}
    given: Given = {**_TEXT, "timestep": 1, "proj_embedding": states(24)}
    yield "PriorTransformer", how, states(24), given, _joined(T + 4)
    how = {"sample_size": 8, "block_out_channels": (24,), "layers_per_block": 1, "cross_attention_dim": 24}
    how |= {"down_block_types": ("CrossAttnDownBlock2D",), "up_block_types": ("CrossAttnUpBlock2D",)}
    how |= {"attention_head_dim": 3, "norm_num_groups": 4, "mid_block_type": None}
    maps: Mapping[Kind, Sizes] = {"encoder": (3, 3, 64, 64), "cross": (3, 3, 64, T)}
    yield "UNet2DConditionModel", how, _IMAGE, {**_TEXT, "timestep": 1}, maps
    how = {**_HEADS, "num_layers": 2, "sample_size": 8, "num_cross_attention_heads": 3, "cross_attention_head_dim": 8}
    how |= {"cross_attention_dim": 24, "caption_channels": 24}
    yield "SanaTransformer2DModel (linear attention beside it)", how, _IMAGE, _TIMES, {"cross": (2, 3, 64, T)}


def _labml(attention: str, causal: bool) -> Subject:
    """An encoder of labml-nn with one of its attentions; all have (Q, K, B, H), the softmax over the second."""
    module, _, name = attention.rpartition(".")
    options = {"rope": (0.5, 0.0)}.get(module.rpartition(".")[2], (0.0,))
    own = getattr(import_module(f"labml_nn.transformers.{module}"), name)(3, 24, *options)
    models = import_module("labml_nn.transformers.models")
    feed_forward = import_module("labml_nn.transformers.feed_forward").FeedForward(24, 32, 0.0)
    layer = models.TransformerLayer(
        d_model=24, self_attn=own, src_attn=None, feed_forward=feed_forward, dropout_prob=0.0
    )
    model = models.Encoder(layer, 2)
    allowed = torch.ones(S, S, dtype=torch.bool)
    mask = (allowed.tril() if causal else allowed)[..., None]
    return Subject(model, lambda: model(x=states(S, 24).transpose(0, 1).contiguous(), mask=mask))


def queries_first(softmax: Tensor) -> Tensor:
    """Return weights of labml-nn, (Q, B, H, K) with the axis of the softmax at the end, as (B, H, Q, K)."""
    return softmax.permute(1, 2, 0, 3) if softmax.dim() == 4 else softmax


def cases() -> Iterator[Case]:
    """Yield the cases of both."""
    for name, how, noisy, given, maps in (*_images(), *_others()):
        build = partial(made, f"diffusers.{name.partition(' ')[0]}", noisy, how=how, **given)
        yield Case("diffusers", name, build, maps)
    build = partial(_labml, "mha.MultiHeadAttention", False)
    yield Case("labml-nn", "MultiHeadAttention", build, _joined(S), lay=queries_first)
    for attention in ("mha.MultiHeadAttention", "rope.RotaryPEMultiHeadAttention", "alibi.AlibiMultiHeadAttention"):
        maps = {"decoder": (2, 3, S, S)}
        name = f"{attention.partition('.')[2]}, causal"
        yield Case("labml-nn", name, partial(_labml, attention, True), maps, lay=queries_first)
    build = partial(_labml, "xl.relative_mha.RelativeMultiHeadAttention", True)
    yield Case("labml-nn", "RelativeMultiHeadAttention, causal", build, maps, lay=queries_first)
