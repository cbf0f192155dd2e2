"""The models of other projects that are timed beside ours."""

from __future__ import annotations

import tempfile
from typing import Any

import ctranslate2
from ctranslate2.converters.transformers import BartLoader, MarianMTLoader
from transformers import MarianConfig, MarianMTModel

from attenscope.network.config import BOS_ID, EOS_ID, PAD_ID, SPECIAL_PIECES, TransformerConfig


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


def names(config: TransformerConfig) -> list[str]:
    """Return the tokens of a made-up vocabulary, by id: CTranslate2 takes tokens and no ids."""
    return [*SPECIAL_PIECES, *(f"piece {number}" for number in range(len(SPECIAL_PIECES), config.vocab_size))]


def in_ctranslate2(model: Any, config: TransformerConfig) -> ctranslate2.Translator:
    """Return CTranslate2 with the weights of that Marian, in float32 and one thread on the CPU."""
    model.config.normalize_before = model.config.normalize_embedding = False  # what its loader asks a configuration for
    spec = BartLoader.get_model_spec(MarianMTLoader(), model)
    spec.decoder.start_from_zero_embedding = False
    for register in (spec.register_source_vocabulary, spec.register_target_vocabulary):
        register(names(config))
    marks = {"unk_token": SPECIAL_PIECES[1], "bos_token": SPECIAL_PIECES[BOS_ID], "eos_token": SPECIAL_PIECES[EOS_ID]}
    for name, token in (marks | {"decoder_start_token": marks["bos_token"]}).items():
        setattr(spec.config, name, token)
    spec.validate()
    spec.optimize()
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        return ctranslate2.Translator(folder, compute_type="float32", inter_threads=1, intra_threads=1)
