"""The models of other projects that are timed beside ours."""

from __future__ import annotations

from typing import Any

from transformers import MarianConfig, MarianMTModel

from model.network.config import BOS_ID, EOS_ID, PAD_ID, TransformerConfig


def marian(config: TransformerConfig) -> Any:  # the types of transformers' own `generate` do not fit its models
    """Return Hugging Face's Marian of the same sizes, with random weights, in eval mode."""
    return MarianMTModel(
        MarianConfig(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            encoder_attention_heads=config.heads,
            decoder_attention_heads=config.heads,
            encoder_ffn_dim=config.feed_forward,
            decoder_ffn_dim=config.feed_forward,
            max_position_embeddings=config.max_length,
            activation_function="relu",
            scale_embedding=True,
            pad_token_id=PAD_ID,
            eos_token_id=EOS_ID,
            decoder_start_token_id=BOS_ID,
            forced_eos_token_id=None,
        )
    ).eval()
