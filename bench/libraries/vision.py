"""Models of images: timm, vit-pytorch, torchvision, open_clip and segment-anything; 2 layers of 3 heads, 2 images."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from attenscope.trace import Kind
from bench.libraries.case import Case, Sizes, Subject

LAYERS, HEADS = 2, 3


def images(*sizes: int) -> Tensor:
    return torch.randn(2, 3, *sizes, generator=torch.Generator().manual_seed(2))


def _encoder(tokens: int) -> Mapping[Kind, Sizes]:
    return {"encoder": (LAYERS, HEADS, tokens, tokens)}


def _run(module: str, name: str, how: Mapping[str, Any], given: tuple[Any, ...]) -> Subject:
    """A class or function of a module, called with ``how``, and its model called with ``given``."""
    model = getattr(import_module(module), name)(**how)
    return Subject(model, lambda: model(*given))


TIMM_SMALL = {"pretrained": False, "img_size": 48, "patch_size": 12, "embed_dim": 24, "depth": 2, "num_heads": 3}
TIMM = {
    **{"vit_tiny_patch16_224": 17, "vit_small_patch16_224": 17, "vit_base_patch16_clip_224": 17, "flexivit_small": 17},
    **{"vit_small_patch14_dinov2": 17, "vit_small_patch14_reg4_dinov2": 21, "vit_small_patch16_dinov3": 21},
    **{"deit_tiny_patch16_224": 17, "deit_tiny_distilled_patch16_224": 18, "deit3_small_patch16_224": 17},
    **{"beit_base_patch16_224": 17, "beitv2_base_patch16_224": 17, "eva02_tiny_patch14_224": 17},
    **{"eva_giant_patch14_224": 17, "vit_medium_patch16_gap_240": 16, "vit_relpos_small_patch16_224": 16},
    **{"vit_srelpos_small_patch16_224": 16, "vit_relpos_base_patch16_clsgap_224": 17, "vit_base_patch16_rpn_224": 16},
    **{"vit_little_patch16_reg1_gap_256": 17, "vit_base_patch16_rope_224": 17, "vit_base_patch16_rope_mixed_224": 17},
    **{"aimv2_large_patch14_224": 16, "naflexvit_base_patch16_gap": 13},
}
"""Model -> tokens."""
TIMM_POOLED = {"vit_base_patch16_siglip_224": (16, 3, 16), "vit_so150m_patch16_reg4_map_256": (20, 3, 16)}
TIMM_POOLED |= {"vit_pe_core_tiny_patch16_384": (17, 8, 17)}
"""Model -> tokens, and heads and keys of the query that pools them."""


def _timm() -> Iterator[Case]:
    for name, tokens in TIMM.items():
        how = TIMM_SMALL | {"model_name": name}
        if "naflex" in name:
            how = {key: value for key, value in how.items() if key != "img_size"} | {"patch_size": 16}
        yield Case("timm", name, partial(_run, "timm", "create_model", how, (images(48, 48),)), _encoder(tokens))
    for name, (tokens, heads, keys) in TIMM_POOLED.items():
        maps: Mapping[Kind, Sizes] = {**_encoder(tokens), "cross": (1, heads, 1, keys)}
        how = TIMM_SMALL | {"model_name": name}
        yield Case("timm", name, partial(_run, "timm", "create_model", how, (images(48, 48),)), maps)
    for name, modules, maps, samples in STAGES:
        how = {"pretrained": False, "model_name": name}
        build = partial(_run, "timm", "create_model", how, (images(224, 224),))
        yield Case("timm", f"{name}, one stage", build, maps, modules=modules, samples=samples)


STAGES: tuple[tuple[str, Collection[str], Mapping[Kind, Sizes], int], ...] = (
    ("pvt_v2_b0", ["stages.1.blocks.*.attn"], {"encoder": (2, 2, 784, 49)}, 2),
    ("swin_tiny_patch4_window7_224", ["layers.1.blocks.*.attn"], {"encoder": (2, 6, 49, 49)}, 32),
    ("swinv2_cr_tiny_ns_224", ["stages.1.blocks.*.attn"], {"encoder": (2, 6, 49, 49)}, 32),
    ("pit_ti_224", ["transformers.0.blocks.*.attn"], {"encoder": (2, 2, 730, 730)}, 2),
    ("cait_xxs24_224", ["blocks.*.attn"], {"encoder": (24, 4, 196, 196)}, 2),
    ("mobilevit_xxs", ["stages.2.1.transformer.*.attn"], {"encoder": (2, 4, 196, 196)}, 8),
    ("visformer_tiny", ["stage2.*.attn"], {"encoder": (4, 3, 196, 196)}, 2),
    ("levit_128s", ["stages.0.blocks.*.attn"], {"encoder": (2, 4, 196, 196)}, 2),
    ("tnt_s_patch16_224", ["blocks.*.attn_out"], {"encoder": (12, 6, 197, 197)}, 2),
)
"""Models of stages whose sizes differ: one stage by its name, its maps, and the samples, of which windows are some."""
VIT = {"image_size": 48, "patch_size": 12, "num_classes": 7, "dim": 24, "depth": LAYERS, "heads": HEADS, "mlp_dim": 32}
VIT_PYTORCH: tuple[tuple[str, str, Mapping[str, Any], int], ...] = (
    ("vit", "ViT", {"dim_head": 8}, 17),
    ("deepvit", "DeepViT", {"dim_head": 8}, 17),
    ("jet_vit", "JetViT", {"dim_head": 8}, 16),
    ("jumbo_vit", "JumboViT", {"num_jumbo_cls": 1, "jumbo_cls_k": 6}, 22),
    ("learnable_memory_vit", "ViT", {"dim_head": 8}, 17),
    ("mp3", "ViT", {"dim_head": 8}, 16),
    ("normalized_vit", "nViT", {"dim_head": 8}, 16),
    ("rvt", "RvT", {"dim_head": 8}, 17),
    ("simple_flash_attn_vit", "SimpleViT", {"dim_head": 8}, 16),
    ("simple_uvit", "SimpleUViT", {"dim_head": 8}, 20),
    ("simple_vit", "SimpleViT", {"dim_head": 8}, 16),
    ("simple_vit_orthog_residual_update", "SimpleViT", {"dim_head": 8}, 16),
    ("simple_vit_with_patch_dropout", "SimpleViT", {"dim_head": 8}, 16),
    ("simple_vit_with_qk_norm", "SimpleViT", {"dim_head": 8}, 16),
    ("simple_vit_with_register_tokens", "SimpleViT", {"dim_head": 8}, 20),
    ("simple_vit_with_relative_proj_pos_bias", "SimpleViT", {"dim_head": 8}, 16),
    ("simple_vit_with_specialized_cls", "SimpleViT", {"dim_head": 8}, 17),
    ("simple_vit_with_value_residual", "SimpleViT", {"dim_head": 8}, 16),
    ("simple_vit_with_hyper_connections", "SimpleViT", {"dim_head": 8, "num_residual_streams": 2}, 20),
    ("vat", "ViT", {"dim_head": 8}, 17),
    ("vit_5", "ViT", {"dim_head": 8}, 21),
    ("vit_detpool", "ViTDetPool", {"dim_head": 8}, 17),
    ("vit_with_decorr", "ViT", {"dim_head": 8}, 17),
    ("vit_with_keel_post_ln", "ViT", {"dim_head": 8}, 17),
    ("vit_with_patch_dropout", "ViT", {"dim_head": 8}, 17),
)
"""Module, class, sizes besides :data:`VIT`, and tokens."""


def _vit_pytorch() -> Iterator[Case]:
    for module, name, sizes, tokens in VIT_PYTORCH:
        build = partial(_run, f"vit_pytorch.{module}", name, {**VIT, **sizes}, (images(48, 48),))
        yield Case("vit-pytorch", f"{module}.{name}", build, _encoder(tokens))
    build = partial(_run, "vit_pytorch.parallel_vit", "ViT", {**VIT, "dim_head": 8}, (images(48, 48),))
    yield Case("vit-pytorch", "parallel_vit.ViT", build, {"encoder": (4, 3, 17, 17)})
    build = partial(_run, "vit_pytorch.vit_for_small_dataset", "ViT", {**VIT, "dim_head": 8}, (images(48, 48),))
    maps: Mapping[Kind, Sizes] = _encoder(17)
    yield Case("vit-pytorch", "vit_for_small_dataset.ViT, named", build, maps, modules=["transformer.layers.*.0"])
    video = {**VIT, "image_patch_size": 24, "frames": 4, "frame_patch_size": 2, "dim_head": 8}
    video.pop("patch_size")
    for module, name, tokens in (("vit_3d", "ViT", 9), ("simple_vit_3d", "SimpleViT", 8)):
        build = partial(_run, f"vit_pytorch.{module}", name, video, (images(4, 48, 48),))
        yield Case("vit-pytorch", f"{module}.{name}", build, _encoder(tokens))
    for module, name, tokens in (("vit_1d", "ViT", 13), ("simple_vit_1d", "SimpleViT", 12)):
        series = {key: value for key, value in VIT.items() if key != "image_size"} | {"seq_len": 144, "dim_head": 8}
        build = partial(_run, f"vit_pytorch.{module}", name, series, (images(144),))
        yield Case("vit-pytorch", f"{module}.{name}", build, _encoder(tokens))


def _torchvision() -> Iterator[Case]:
    sizes = {"image_size": 48, "patch_size": 12, "num_layers": 2, "num_heads": 3, "hidden_dim": 24, "mlp_dim": 32}
    build = partial(_run, "torchvision.models", "VisionTransformer", sizes, (images(48, 48),))
    yield Case("torchvision", "VisionTransformer", build, _encoder(17))
    swin = {"patch_size": [4, 4], "embed_dim": 24, "depths": [2], "num_heads": [3], "window_size": [3, 3]}
    build = partial(_run, "torchvision.models", "SwinTransformer", swin, (images(48, 48),))
    yield Case("torchvision", "SwinTransformer", build, _encoder(9), samples=32)
    yield Case("torchvision", "SwinTransformer, second version", partial(_second_swin, swin), _encoder(9), samples=32)
    clip = swin | {"patch_size": [2, 4, 4], "window_size": [2, 3, 3]}
    build = partial(_run, "torchvision.models.video", "SwinTransformer3d", clip, (images(4, 24, 24),))
    yield Case("torchvision", "SwinTransformer3d", build, _encoder(18), samples=8)


def _second_swin(sizes: Mapping[str, Any]) -> Subject:
    swin = import_module("torchvision.models.swin_transformer")
    model = swin.SwinTransformer(**sizes, block=swin.SwinTransformerBlockV2, downsample_layer=swin.PatchMergingV2)
    return Subject(model, lambda: model(images(48, 48)))


_SEES = {"layers": 2, "width": 24, "head_width": 8, "patch_size": 12, "image_size": 48}
_READS = {"context_length": 11, "vocab_size": 50, "width": 24, "heads": 3, "layers": 2}


def _open_clip() -> Iterator[Case]:
    ids = torch.randint(5, 50, (2, 11), generator=torch.Generator().manual_seed(2))
    maps: dict[Kind, Sizes] = {"encoder": (2, 3, 17, 17), "decoder": (2, 3, 11, 11)}
    pooling = {"attentional_pool": True, "attn_pooler_queries": 5, "attn_pooler_heads": 3}
    found: tuple[tuple[str, dict[str, Any], dict[str, Any], dict[Kind, Sizes]], ...] = (
        ("CLIP", {}, {}, maps),
        ("CLIP, quick GELU", {"quick_gelu": True}, {}, maps),
        ("CLIP, attentional pooling", {}, pooling, {**maps, "cross": (1, 3, 5, 17)}),
    )
    for name, how, sees, sizes in found:
        given = {"embed_dim": 12, "vision_cfg": _SEES | sees, "text_cfg": _READS} | how
        build = partial(_run, "open_clip.model", "CLIP", given, (images(48, 48), ids))
        yield Case("open_clip_torch", name, build, sizes)


def _segment_anything() -> Iterator[Case]:
    sizes = {"img_size": 48, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3, "out_chans": 8}
    for name, window, tokens, samples in (("ImageEncoderViT", 0, 36, 2), ("ImageEncoderViT, windows", 3, 9, 8)):
        how = sizes | {"window_size": window, "use_rel_pos": True}
        build = partial(_run, "segment_anything.modeling", "ImageEncoderViT", how, (images(48, 48),))
        yield Case("segment-anything", name, build, _encoder(tokens), samples=samples)


def cases() -> Iterator[Case]:
    """Yield the cases of all five."""
    parts: tuple[Callable[[], Iterator[Case]], ...] = (_timm, _vit_pytorch, _torchvision, _open_clip, _segment_anything)
    for part in parts:
        yield from part()
