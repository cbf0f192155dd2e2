"""What another engine needs of a Marian folder: tensors by the names of our own model, the tokenizer as plain lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import AutoTokenizer, MarianConfig, MarianMTModel, MarianTokenizer

from ..language import say
from ..runnable_model import LocalError, RunnableModel
from .load import OFFLINE_OPTIONS, FolderModel

ACTIVATION_NAMES = {"gelu": "gelu", "relu": "relu", "swish": "silu", "silu": "silu"}
"""What the engine calls the activations that it has."""
LAYER_PARTS = {
    "self_attn": "self_attention",
    "encoder_attn": "cross_attention",
    "fc1": "feed_forward.inner",
    "fc2": "feed_forward.outer",
    "self_attn_layer_norm": "after_self_attention.norm",
    "encoder_attn_layer_norm": "after_cross_attention.norm",
    "final_layer_norm": "after_feed_forward.norm",
}
"""Modules of a layer of Marian, by the names of ours."""
EMBEDDING_NAMES = {"encoder": "source_embedding.table.weight", "decoder": "target_embedding.table.weight"}


@dataclass(frozen=True, eq=False)
class MarianParts:
    """A Marian model, taken apart."""

    config: Mapping[str, Any]
    """By the names of the fields of a :class:`..network.config.TransformerConfig`, with ``activation``, ``ids`` of
    special tokens and the sequences that are ``forbidden``."""
    weights: Mapping[str, Tensor]
    """By the names of :class:`..network.transformer.Transformer`."""
    sentence_pieces: bytes
    """The SentencePiece model that cuts a source."""
    vocabulary: Mapping[str, Any]
    """``pieces`` by id, ``special`` ids, those of ``unknown`` and ``end``, the ``special_tokens`` that stand for no
    text, the ``prefix`` before every source."""


def take_marian_apart(model: RunnableModel) -> MarianParts:
    """Return the parts of a Marian folder. Raises LocalError for any other."""
    if not isinstance(model, FolderModel) or not isinstance(model.model.model, MarianMTModel):
        raise LocalError(say("of folders, only those of Marian can"))
    network, settings = model.model.model, model.model.model.config
    assert isinstance(settings, MarianConfig)
    if settings.activation_function not in ACTIVATION_NAMES:
        raise LocalError(say("the engine does not have its activation, {name}", name=settings.activation_function))
    if settings.encoder_attention_heads != settings.decoder_attention_heads:
        raise LocalError(say("its encoder and its decoder have different numbers of heads"))
    if model.forced.prefix:
        raise LocalError(say("its targets begin with a token that the engine does not write"))
    assert model.folder is not None
    pieces, vocabulary = _describe_tokenizer(model, model.folder)
    shared = bool(settings.share_encoder_decoder_embeddings)
    config = {
        "d_model": settings.d_model,
        "heads": settings.encoder_attention_heads,
        "encoder_layers": settings.encoder_layers,
        "decoder_layers": settings.decoder_layers,
        "max_length": model.max_length,
        "positions": "sinusoidal_halves",
        "scale_embedding": settings.scale_embedding,
        "shared_embedding": shared,
        "scale_scores": True,
        "norm_order": "post",
        "norm_form": "var_eps",
        "norm_eps": 1e-5,
        "final_norm": False,
        "activation": ACTIVATION_NAMES[settings.activation_function],
        "ids": {"pad": settings.pad_token_id, "start": model.model.start_id, "end": [*model.model.end_ids]},
        "forbidden": [[*ids] for ids in model.forced.forbidden],
    }
    weights = _rename_weights(network, shared=shared)
    return MarianParts(config, weights, pieces, vocabulary)


def _rename_weights(network: MarianMTModel, *, shared: bool) -> dict[str, Tensor]:
    """Every tensor once, by our names; the position tables are computed by the engine."""
    found: dict[str, Tensor] = {}
    for stack in ("encoder", "decoder"):
        part = network.get_submodule(f"model.{stack}")
        if stack == "encoder" or not shared:
            found[EMBEDDING_NAMES[stack]] = part.get_parameter("embed_tokens.weight")
        for name, tensor in part.get_submodule("layers").named_parameters():
            number, module, rest = name.split(".", 2)
            found[f"{stack}.layers.{number}.{LAYER_PARTS[module]}.{rest}"] = tensor
    table = found["source_embedding.table.weight" if shared else "target_embedding.table.weight"]
    head = network.lm_head.weight
    if head.data_ptr() != table.data_ptr():
        found["generator.weight"] = head
    found["generator.bias"] = network.final_logits_bias[0]
    return {name: tensor.detach() for name, tensor in found.items()}


def _describe_tokenizer(model: FolderModel, folder: Path) -> tuple[bytes, dict[str, Any]]:
    """The SentencePiece model of the source side, and what is needed beside it."""
    tokenizer = AutoTokenizer.from_pretrained(folder, **OFFLINE_OPTIONS)
    if not isinstance(tokenizer, MarianTokenizer) or tokenizer.separate_vocabs:
        raise LocalError(say("its two sides have vocabularies of their own"))
    pieces = tokenizer.spm_source.serialized_model_proto()
    return pieces, {
        "pieces": [str(tokenizer.convert_ids_to_tokens(token)) for token in range(len(model.tokenizer))],
        "special": sorted(tokenizer.all_special_ids),
        "special_tokens": sorted(model.tokenizer.special_tokens),
        "unknown": tokenizer.unk_token_id,
        "end": tokenizer.eos_token_id,
        "prefix": model.tokenizer.prefix,
    }
