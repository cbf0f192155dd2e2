"""torch's own attention and Transformer, and ours with their weights."""

from __future__ import annotations

import torch
from torch import nn

from attenscope.network.attention import MultiHeadAttention
from attenscope.network.layers import DecoderLayer, EncoderLayer
from attenscope.network.transformer import Transformer
from tests.toy import config


def copy_attention(mine: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    with torch.no_grad():
        width = theirs.embed_dim
        for part, projection in enumerate((mine.q_proj, mine.k_proj, mine.v_proj)):
            rows = slice(part * width, (part + 1) * width)
            projection.weight.copy_(theirs.in_proj_weight[rows])
            if projection.bias is not None:
                projection.bias.copy_(theirs.in_proj_bias[rows])
    mine.out_proj.load_state_dict(theirs.out_proj.state_dict())


def copy_layer(mine: EncoderLayer | DecoderLayer, theirs: nn.Module) -> None:
    assert isinstance(theirs, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer)
    copy_attention(mine.self_attention, theirs.self_attn)
    mine.after_self_attention.norm.load_state_dict(theirs.norm1.state_dict())
    if isinstance(mine, DecoderLayer):
        assert isinstance(theirs.multihead_attn, nn.MultiheadAttention)
        copy_attention(mine.cross_attention, theirs.multihead_attn)
        mine.after_cross_attention.norm.load_state_dict(theirs.norm2.state_dict())
    last = theirs.norm3 if isinstance(theirs, nn.TransformerDecoderLayer) else theirs.norm2
    mine.after_feed_forward.norm.load_state_dict(last.state_dict())
    mine.feed_forward.inner.load_state_dict(theirs.linear1.state_dict())
    mine.feed_forward.outer.load_state_dict(theirs.linear2.state_dict())


def shake(module: nn.Module) -> None:
    """Random values for all parameters, biases and gains too, so that none can be forgotten unnoticed."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)


def nn_transformer(pre: bool, batch_first: bool = True) -> nn.Transformer:
    encoder_layer = nn.TransformerEncoderLayer(32, 4, 48, 0.0, batch_first=batch_first, norm_first=pre)
    encoder = nn.TransformerEncoder(encoder_layer, 2, nn.LayerNorm(32), enable_nested_tensor=False)
    return nn.Transformer(32, 4, 2, 3, 48, dropout=0.0, batch_first=batch_first, norm_first=pre, custom_encoder=encoder)


def same_transformer(theirs: nn.Transformer, pre: bool) -> Transformer:
    """Ours with their weights; nn.Transformer has a final norm in both orders."""
    sizes = {"d_model": 32, "heads": 4, "encoder_layers": 2, "decoder_layers": 3, "feed_forward": 48}
    mine = Transformer(config(norm_order="pre" if pre else "post", final_norm=True, **sizes))
    for stack, other in ((mine.encoder, theirs.encoder), (mine.decoder, theirs.decoder)):
        for layer, their_layer in zip(stack.layers, other.layers, strict=True):
            assert isinstance(layer, EncoderLayer | DecoderLayer)
            copy_layer(layer, their_layer)
        assert isinstance(other.norm, nn.LayerNorm)
        stack.final_norm.load_state_dict(other.norm.state_dict())
    return mine
