"""Models that are refused, as a whole or in part, each with the reason that it must have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from attenscope.trace import Kind
from bench.libraries.case import Case, Sizes, Subject
from bench.libraries.hugging_face import built
from bench.libraries.text import made, states, tokens
from bench.libraries.vision import images

LINEAR = "one projection alone, as in linear attention"
FEATURES = "attention of features over features"
STAGES = "does not stack into layers"
UNSEEN = "called no softmax and no attention of torch"
_TIMM = {"pretrained": False}
TIMM = {
    **dict.fromkeys(("mixer_s32_224", "gmlp_s16_224", "resmlp_12_224", "convnext_atto", "resnet18"), UNSEEN),
    **dict.fromkeys(("poolformer_s12", "mambaout_femto", "sequencer2d_s", "efficientvit_b0"), UNSEEN),
    "focalnet_tiny_srf": UNSEEN,
    **dict.fromkeys(("swin_tiny_patch4_window7_224", "pvt_v2_b0", "pit_ti_224", "levit_128s", "mvitv2_tiny"), STAGES),
    **dict.fromkeys(("cait_xxs24_224", "twins_svt_small", "volo_d1_224", "hiera_tiny_224", "davit_tiny"), STAGES),
    **dict.fromkeys(("coat_lite_tiny", "lambda_resnet26t"), LINEAR),
    "edgenext_xx_small": FEATURES,
    "shvit_s1": "A softmax ran in stages.1.blocks.0.mixer.m, .* name it",
}
"""Model -> a pattern in the reason, of images of 224 x 224 pixels."""
HUGGING_FACE = {
    "MambaModel": "layers of Mamba have no attention weights",
    "FalconMambaModel": "layers of Mamba have no attention weights",
    "FNetModel": "layers of FNet have no attention weights",
    "RwkvModel": "layers of Rwkv have no attention weights",
    "YosoModel": UNSEEN,
    "MraModel": UNSEEN,
    "CanineModel": STAGES,
    "FunnelModel": STAGES,
}


def _no_weights() -> Iterator[Case]:
    """Packages of attention without weights of queries over keys."""
    ids = tokens(16)
    small: dict[str, Any] = {"num_tokens": 50, "dim": 24, "depth": 2, "heads": 3, "max_seq_len": 16}
    performer = partial(made, "performer_pytorch.PerformerLM", ids, how=small | {"dim_head": 8})
    reason = "FastAttention, Performer have no attention weights"
    yield Case("performer-pytorch", "PerformerLM", performer, refused=reason)
    path = "linear_attention_transformer.LinearAttentionTransformerLM"
    for name, options in (
        ("LinearAttentionTransformerLM", {}),
        ("LinearAttentionTransformerLM, causal", {"causal": True}),
    ):
        yield Case("linear-attention-transformer", name, partial(made, path, ids, how=small | options), refused=LINEAR)
    how = small | {"bucket_size": 4, "causal": True}
    reformer = partial(made, "reformer_pytorch.ReformerLM", ids, how=how)
    yield Case("reformer-pytorch", "ReformerLM", reformer, refused=UNSEEN)
    how = small | {"window_size": 4, "causal": True}
    routing = partial(made, "routing_transformer.RoutingTransformerLM", ids, how=how)
    yield Case("routing-transformer", "RoutingTransformerLM", routing, refused="cannot be laid out")
    how = {"dim": 24, "dim_head": 8, "heads": 3, "depth": 2, "num_landmarks": 4}
    nystrom = partial(made, "nystrom_attention.Nystromformer", states(11, 24), how=how)
    yield Case("nystrom-attention", "Nystromformer", nystrom, refused="several attentions in one call")
    how = {"dim": 24, "dim_head": 8, "heads": 3, "memory_efficient": True, "q_bucket_size": 4, "k_bucket_size": 4}
    chunked = partial(made, "memory_efficient_attention_pytorch.Attention", states(12, 24), how=how)
    yield Case("memory-efficient-attention-pytorch", "Attention, in buckets", chunked, refused=UNSEEN)


class _Attention(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(x, x, x)


class _Flex(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from torch.nn.attention.flex_attention import flex_attention

        found = flex_attention(x, x, x)
        assert isinstance(found, torch.Tensor)
        return found


def _program(kind: str) -> Subject:
    x = states(3, 11, 8)
    model: Any = _Attention().eval()
    if kind == "scripted":
        model = torch.jit.trace(model, x)
    elif kind == "exported":
        model = torch.export.export(model, (x,)).module()
        model.eval = lambda: model
    return Subject(model, lambda: model(x))


def cases() -> Iterator[Case]:
    """Yield the cases that are refused."""
    for name, reason in TIMM.items():
        build = partial(made, "timm.create_model", images(224, 224), how=_TIMM | {"model_name": name})
        yield Case("timm", name, build, refused=reason)
    for name, reason in HUGGING_FACE.items():
        yield Case("transformers", name, partial(built, name, {}, {"input_ids": tokens(11)}), refused=reason)
    how = {"patch_size": [4, 4], "embed_dim": 24, "depths": [2, 2], "num_heads": [3, 6], "window_size": [3, 3]}
    swin = partial(made, "torchvision.models.SwinTransformer", images(72, 72), how=how)
    yield Case("torchvision", "SwinTransformer, two stages", swin, refused=STAGES)
    yield Case("torchvision", "ResNet", partial(made, "torchvision.models.resnet18", images(64, 64)), refused=UNSEEN)
    vit = {"image_size": 48, "patch_size": 12, "num_classes": 7, "dim": 24, "depth": 2, "heads": 3, "mlp_dim": 32}
    vit |= {"dim_head": 8}
    named = partial(made, "vit_pytorch.vit_for_small_dataset.ViT", images(48, 48), how=vit)
    yield Case("vit-pytorch", "vit_for_small_dataset.ViT", named, refused="A softmax ran in .* name it")
    merged = partial(made, "vit_pytorch.vit_with_patch_merger.ViT", images(48, 48), how=vit)
    yield Case("vit-pytorch", "vit_with_patch_merger.ViT", merged, refused=STAGES)
    yield Case("torch", "traced by torch.jit", partial(_program, "scripted"), refused="scripted or traced by torch.jit")
    yield Case("torch", "exported by torch.export", partial(_program, "exported"), refused="an exported program")
    yield from _no_weights()
    maps: Mapping[Kind, Sizes] = {"encoder": (2, 4, 1, 785)}
    xcit = partial(made, "timm.create_model", images(224, 224), how=_TIMM | {"model_name": "xcit_tiny_12_p8_224"})
    yield Case("timm", "xcit_tiny_12_p8_224", xcit, maps, refused=FEATURES)
    beside = partial(built, "ConvBertModel", {}, {"input_ids": tokens(11)})
    yield Case("transformers", "ConvBertModel", beside, {"encoder": (2, 1, 11, 11)}, refused=LINEAR)
