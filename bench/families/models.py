"""The families: which class of transformers, with which sizes, and which mask each kind of its attention should have.

Every model is tiny: 2 layers (4 where layers differ), 4 heads, 50 tokens in its vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from attenscope.trace import Kind

Kernel = Literal["eager", "sdpa"]
BOTH: tuple[Kernel, ...] = ("eager", "sdpa")
EAGER: tuple[Kernel, ...] = ("eager",)

DECODER: dict[Kind, str] = {"decoder": "causal"}
ENCODER: dict[Kind, str] = {"encoder": "padding"}
TWO_STACKS: dict[Kind, str] = {"encoder": "padding", "decoder": "causal", "cross": "padding"}

SIZES: dict[str, Any] = {
    **{"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"intermediate_size": 64, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
}
_GROUPED = {"num_key_value_heads": 2, "head_dim": 8}
_LOCAL, _GLOBAL = "sliding_attention", "full_attention"
_MIXED = {**_GROUPED, "num_hidden_layers": 4, "layer_types": [_LOCAL, _GLOBAL] * 2, "sliding_window": 4}
_ALTERNATING: dict[Kind, str] = {"decoder": "causal+window:4 / causal"}
_IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
_BART = {
    **{"vocab_size": 50, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4},
    **{"decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64},
    **_IDS,
}
_T5 = {"vocab_size": 50, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, **_IDS}


@dataclass(frozen=True)
class Family:
    """One family, and what its attention is meant to do."""

    name: str
    """The class in transformers."""
    traits: str
    """What is special about its attention, in words."""
    meant: Mapping[Kind, str] = field(default_factory=lambda: DECODER)
    """By kind, as ``diagnose(meant=...)`` takes it, without padding."""
    sizes: Mapping[str, Any] = field(default_factory=dict)
    """What its configuration is given besides, or where it ``replaces`` them in place of, :data:`SIZES`."""
    replaces: bool = False
    kernels: tuple[Kernel, ...] = BOTH
    modules: Mapping[str, Kind] = field(default_factory=dict)
    """What its attention is, by path, where a missing mask would make it look like another kind."""
    own_triangle: bool = False
    """Whether its attention makes the causal mask itself, so that only padding is given to it."""

    @property
    def configuration(self) -> dict[str, Any]:
        """All that its configuration is given."""
        return dict(self.sizes) if self.replaces else SIZES | dict(self.sizes)


_DECODERS = (
    Family("GPT2LMHeadModel", "absolute positions, one projection for q, k and v"),
    Family(
        "GPTNeoForCausalLM",
        "global and local layers in turn",
        {"decoder": "causal / causal+window:4"},
        {
            **{"vocab_size": 50, "hidden_size": 32, "num_layers": 4, "num_heads": 4, "window_size": 4},
            **{"attention_types": [[["global", "local"], 2]], "max_position_embeddings": 64, "intermediate_size": 64},
        },
        replaces=True,
        kernels=EAGER,
        own_triangle=True,
    ),
    Family("GPTNeoXForCausalLM", "rotary positions on a part of each head"),
    Family("GPTJForCausalLM", "rotary positions", sizes={"rotary_dim": 4}, kernels=EAGER),
    Family("CodeGenForCausalLM", "rotary positions, projections by blocks", sizes={"rotary_dim": 4}, kernels=EAGER),
    Family("OPTForCausalLM", "learned positions by mask", sizes={"ffn_dim": 64, "word_embed_proj_dim": 32}),
    Family("BloomForCausalLM", "ALiBi", kernels=EAGER),
    Family("MptForCausalLM", "ALiBi", kernels=EAGER),
    Family("FalconForCausalLM", "one head of keys"),
    Family("FalconForCausalLM", "ALiBi, one head of keys", sizes={"alibi": True}),
    Family("GPTBigCodeForCausalLM", "one head of keys"),
    Family("LlamaForCausalLM", "rotary, grouped heads", sizes=_GROUPED),
    Family("MistralForCausalLM", "window", {"decoder": "causal+window:4"}, _GROUPED | {"sliding_window": 4}),
    Family("MixtralForCausalLM", "experts", sizes=_GROUPED | {"num_local_experts": 2, "sliding_window": None}),
    Family("Qwen2ForCausalLM", "biases of q, k and v", sizes=_GROUPED),
    Family("Qwen3ForCausalLM", "normalised q and k", sizes=_GROUPED),
    Family("GemmaForCausalLM", "one head of keys", sizes=_GROUPED | {"num_key_value_heads": 1}),
    Family("Gemma2ForCausalLM", "softcapping; window in every other layer", _ALTERNATING, _MIXED, kernels=EAGER),
    Family(
        "Gemma3ForCausalLM",
        "window in every other layer, normalised q and k",
        _ALTERNATING,
        _MIXED | {"query_pre_attn_scalar": 1},
    ),
    Family("Cohere2ForCausalLM", "window with rotary, others without positions", _ALTERNATING, _MIXED),
    Family("Olmo3ForCausalLM", "window in every other layer", _ALTERNATING, _MIXED),
    Family("Exaone4ForCausalLM", "window in every other layer", _ALTERNATING, _MIXED),
    Family(
        "GptOssForCausalLM",
        "sinks; window in every other layer",
        _ALTERNATING,
        _MIXED | {"num_local_experts": 2, "num_experts_per_tok": 1},
        kernels=EAGER,
    ),
    Family("Phi3ForCausalLM", "window", {"decoder": "causal+window:4"}, _GROUPED | {"sliding_window": 4}),
    Family("Starcoder2ForCausalLM", "window", {"decoder": "causal+window:4"}, _GROUPED | {"sliding_window": 4}),
    Family("Olmo2ForCausalLM", "normalised q and k", sizes=_GROUPED),
    Family("GraniteForCausalLM", "scaled scores", sizes=_GROUPED),
    Family("SmolLM3ForCausalLM", "layers without positions", sizes=_GROUPED),
    Family("BioGptForCausalLM", "learned positions by mask"),
    Family("CTRLLMHeadModel", "sinusoidal positions", sizes={"dff": 64}, kernels=EAGER),
    Family("XGLMForCausalLM", "sinusoidal positions", sizes={"ffn_dim": 64}, kernels=EAGER),
)
_ENCODERS = (
    Family("BertModel", "absolute positions", ENCODER),
    Family("RobertaModel", "positions by padding", ENCODER),
    Family("DistilBertModel", "absolute positions", ENCODER, {"hidden_dim": 64}),
    Family("AlbertModel", "one layer used twice", ENCODER, {"embedding_size": 16}),
    Family("ElectraModel", "embeddings of another width", ENCODER, {"embedding_size": 16}),
    Family(
        "DebertaV2Model",
        "scores of content and position",
        ENCODER,
        {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
        kernels=EAGER,
    ),
    Family("MPNetModel", "relative bias", ENCODER, kernels=EAGER),
    Family("RoFormerModel", "rotary positions", ENCODER, {"embedding_size": 32}, kernels=EAGER),
    Family("MegatronBertModel", "norms first", ENCODER, kernels=EAGER),
    Family("EsmModel", "rotary positions", ENCODER, {"position_embedding_type": "rotary", "mask_token_id": 3}),
    Family(
        "ModernBertModel",
        "window in every other layer",
        {"encoder": "padding / window:4"},
        {"num_hidden_layers": 4, "local_attention": 6, "global_attn_every_n_layers": 2, "cls_token_id": 1},
    ),
    Family("CLIPTextModel", "causal, of captions", modules={"*.self_attn": "decoder"}),
)
_TWO_STACKS = (
    Family("BartForConditionalGeneration", "absolute positions", TWO_STACKS, _BART, replaces=True),
    Family("MBartForConditionalGeneration", "norms first", TWO_STACKS, _BART, replaces=True),
    Family("MarianMTModel", "sinusoidal positions", TWO_STACKS, _BART, replaces=True),
    Family("PegasusForConditionalGeneration", "norms first, sinusoidal", TWO_STACKS, _BART, replaces=True),
    Family("M2M100ForConditionalGeneration", "positions by padding", TWO_STACKS, _BART, replaces=True),
    Family("T5ForConditionalGeneration", "relative bias, no scaling", TWO_STACKS, _T5, replaces=True),
    Family("UMT5ForConditionalGeneration", "relative bias in each layer", TWO_STACKS, _T5, replaces=True),
)
_EXPERTS = {
    **_GROUPED,
    **{"num_experts": 2, "num_local_experts": 2, "n_routed_experts": 2, "num_experts_per_tok": 1},
    **{"moe_intermediate_size": 32, "n_group": 1, "topk_group": 1, "moe_num_experts": 2, "moe_k": 1},
}
_LATENT = {
    **_EXPERTS,
    **{"num_key_value_heads": 4, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8},
    **{"qk_nope_head_dim": 8, "v_head_dim": 8},
}
_MORE_DECODERS = (
    Family("ArceeForCausalLM", "grouped heads", sizes=_GROUPED),
    Family("ApertusForCausalLM", "normalised q and k", sizes=_GROUPED),
    Family("BitNetForCausalLM", "a norm after the values", sizes=_GROUPED),
    Family("CohereForCausalLM", "attention beside the feed-forward", sizes=_GROUPED),
    Family("Ernie4_5ForCausalLM", "rotary in pairs", sizes=_GROUPED),
    Family("GlmForCausalLM", "rotary positions on a part of each head", sizes=_GROUPED),
    Family("Glm4ForCausalLM", "norms after attention", sizes=_GROUPED),
    Family("HeliumForCausalLM", "grouped heads", sizes=_GROUPED),
    Family("HyperCLOVAXForCausalLM", "scaled scores", sizes=_GROUPED),
    Family("Jais2ForCausalLM", "biases of q, k and v", sizes=_GROUPED),
    Family("NemotronForCausalLM", "rotary positions on a part of each head", sizes=_GROUPED),
    Family("OlmoForCausalLM", "clipped q, k and v", sizes=_GROUPED),
    Family("PhiForCausalLM", "attention beside the feed-forward", sizes=_GROUPED),
    Family("SeedOssForCausalLM", "biases of q, k and v", sizes=_GROUPED),
    Family("StableLmForCausalLM", "rotary positions on a part of each head", sizes=_GROUPED),
    Family("GPTNeoXJapaneseForCausalLM", "a bias in the last layer", kernels=EAGER),
    Family("Ministral3ForCausalLM", "scores scaled by position", sizes=_GROUPED),
    Family("DiffLlamaForCausalLM", "two maps of each head, subtracted", sizes=_GROUPED),
    Family("DogeForCausalLM", "a learned mask beside the causal one", sizes=_GROUPED),
    Family("MinistralForCausalLM", "window in every other layer", _ALTERNATING, _MIXED),
    Family("CwmForCausalLM", "window in every other layer", _ALTERNATING, _MIXED),
    Family("VaultGemmaForCausalLM", "softcapping; window in every other layer", _ALTERNATING, _MIXED, kernels=EAGER),
    Family("ModernBertDecoderForCausalLM", "window in every other layer", _ALTERNATING, _MIXED),
    Family(
        "GraniteSWAForCausalLM",
        "output scaled by a sink; window in every other layer",
        _ALTERNATING,
        _MIXED,
        kernels=EAGER,
    ),
    Family("AfmoeForCausalLM", "gated; window in every other layer", _ALTERNATING, _MIXED | _EXPERTS),
    Family("LagunaForCausalLM", "gated; window in every other layer", _ALTERNATING, _MIXED | _EXPERTS),
    Family("SolarOpenForCausalLM", "experts", sizes=_EXPERTS),
    Family("Qwen2MoeForCausalLM", "experts, biases of q, k and v", sizes=_EXPERTS),
    Family("Qwen3MoeForCausalLM", "experts, normalised q and k", sizes=_EXPERTS),
    Family("OlmoeForCausalLM", "experts, normalised q and k", sizes=_EXPERTS),
    Family("FlexOlmoForCausalLM", "experts, norms after attention", sizes=_EXPERTS),
    Family("GraniteMoeForCausalLM", "experts, scaled scores", sizes=_EXPERTS),
    Family("PhimoeForCausalLM", "experts", sizes=_EXPERTS),
    Family("MiniMaxM2ForCausalLM", "experts, rotary on a part of each head", sizes=_EXPERTS),
    Family("Glm4MoeForCausalLM", "experts, rotary on a part of each head", sizes=_EXPERTS),
    Family("Ernie4_5_MoeForCausalLM", "experts", sizes=_EXPERTS),
    Family("DeepseekV3ForCausalLM", "latent keys and values, experts", sizes=_LATENT),
    Family("MiniCPM3ForCausalLM", "latent keys and values", sizes=_LATENT),
    Family(
        "Llama4ForCausalLM",
        "chunks in every other layer",
        {"decoder": "causal+chunked:4 / causal"},
        {
            **_GROUPED,
            **{"num_hidden_layers": 4, "layer_types": ["chunked_attention", _GLOBAL] * 2, "attention_chunk_size": 4},
            **{"intermediate_size_mlp": 64, "num_local_experts": 2},
        },
    ),
    Family("BertLMHeadModel", "an encoder as decoder", sizes={"is_decoder": True}),
    Family("RoFormerForCausalLM", "an encoder as decoder", sizes={"is_decoder": True}, kernels=EAGER),
)
_MORE_ENCODERS = (
    Family("ErnieModel", "kinds of tasks", ENCODER),
    Family("XLMRobertaModel", "positions by padding", ENCODER),
    Family("CamembertModel", "positions by padding", ENCODER),
    Family("RemBertModel", "embeddings of another width", ENCODER, kernels=EAGER),
    Family("LayoutLMModel", "positions on a page", ENCODER),
    Family("DebertaModel", "scores of content and position", ENCODER, kernels=EAGER),
    Family("BertGenerationEncoder", "absolute positions", ENCODER),
    Family("SplinterModel", "absolute positions", ENCODER, kernels=EAGER),
    Family("NomicBertModel", "rotary positions", ENCODER),
    Family("JinaEmbeddingsV3Model", "rotary positions", ENCODER),
    Family("EuroBertModel", "rotary positions", ENCODER),
)
_MORE_STACKS = (Family("PLBartForConditionalGeneration", "absolute positions", TWO_STACKS, _BART, replaces=True),)
FAMILIES: tuple[Family, ...] = (
    *(*_DECODERS, *_MORE_DECODERS),
    *(*_ENCODERS, *_MORE_ENCODERS),
    *(*_TWO_STACKS, *_MORE_STACKS),
)
