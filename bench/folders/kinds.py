"""The kinds of folders that people have, each made tiny by its configuration, with random weights.

A kind is a class of transformers with the sizes that its configuration is given, or a folder that is made by hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.families.models import FAMILIES
from tests import folders

SIZES: dict[str, Any] = {
    **{"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64},
    **{"max_position_embeddings": 96, "head_dim": 8, "initializer_range": 0.2},
}
GROUPED = {"num_key_value_heads": 2}
ALTERNATING = {
    **GROUPED,
    **{"num_hidden_layers": 4, "layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 4},
}
LINEAR = {
    **GROUPED,
    **{"num_hidden_layers": 4, "layer_types": [*["linear_attention"] * 3, "full_attention"]},
    **{"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8},
}
EXPERTS = {"num_experts": 2, "num_local_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 32}
LATENT = {
    **{"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8},
    **{"n_routed_experts": 2, "num_experts_per_tok": 1, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1},
    **{"moe_intermediate_size": 32, "n_shared_experts": 1, "head_dim": 4, "num_key_value_heads": 4},
}
STATES = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 1, "mamba_expand": 2}
BART: dict[str, Any] = {
    **{"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "init_std": 0.2},
    **{"decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 96},
}
T5: dict[str, Any] = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "num_decoder_layers": 2}


@dataclass(frozen=True)
class FolderKind:
    """One kind of folder."""

    name: str
    """The class in transformers, or what is made by hand."""
    traits: str = ""
    sizes: Mapping[str, Any] = field(default_factory=dict)
    """What its configuration is given beside :data:`SIZES` or, where it ``replaces`` them, in place of them."""
    replaces: bool = False
    refused: str = ""
    """A part of the sentence of refusal; "" where it opens."""
    make: Callable[[Path], None] | None = None
    """Makes the folder, where that takes more than a configuration."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """What is written over the folder's configuration afterwards."""
    options: str = ""
    """What stands behind the folder's name, from ``?`` on."""
    passes: bool = False
    """Held against whole passes instead of ``generate``, which gives this model other positions than its own."""

    @property
    def configuration(self) -> dict[str, Any]:
        return dict(self.sizes) if self.replaces else SIZES | dict(self.sizes)


def _from_families() -> tuple[FolderKind, ...]:
    """Those of ``bench/families``."""
    kinds = []
    for family in FAMILIES:
        if family.name != "CLIPTextModel":
            ids = ("vocab_size", "pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
            sizes = {name: value for name, value in family.configuration.items() if name not in ids}
            kinds.append(FolderKind(family.name, family.traits, sizes, replaces=True))
    return tuple(kinds)


def two_sides(name: str, sizes: Mapping[str, Any], traits: str = "", **more: Any) -> FolderKind:
    return FolderKind(name, traits, sizes, replaces=True, **more)


def make_bert2bert(folder: Path) -> None:
    import transformers
    from transformers import BertConfig, EncoderDecoderConfig, EncoderDecoderModel

    folder.mkdir(parents=True)
    tokenizer = folders.make_byte_level(folder, folders.SPECIAL, closes=True, **folders.SPECIAL_NAMES)
    both = [BertConfig(vocab_size=len(tokenizer), pad_token_id=0, **SIZES) for _ in range(2)]
    config = EncoderDecoderConfig.from_encoder_decoder_configs(*both, pad_token_id=0, eos_token_id=2)
    config.decoder_start_token_id = 1
    made = EncoderDecoderModel(config)
    made.generation_config = transformers.GenerationConfig(pad_token_id=0, eos_token_id=2, decoder_start_token_id=1)
    made.save_pretrained(folder)


def make_nllb(folder: Path) -> None:
    from transformers import M2M100Config, M2M100ForConditionalGeneration, NllbTokenizer

    vocabulary = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *_list_pieces()]
    codes = ["deu_Latn", "eng_Latn", "fra_Latn"]
    tokenizer = NllbTokenizer(
        vocab={piece: at for at, (piece, _) in enumerate(vocabulary)}, merges=[], extra_special_tokens=codes
    )
    tokenizer.save_pretrained(folder)
    config = M2M100Config(
        vocab_size=len(tokenizer), pad_token_id=1, eos_token_id=2, bos_token_id=0, decoder_start_token_id=2, **BART
    )
    M2M100ForConditionalGeneration(config).save_pretrained(folder)


def make_mbart50(folder: Path) -> None:
    from transformers import MBart50Tokenizer, MBartConfig, MBartForConditionalGeneration

    tokenizer = MBart50Tokenizer(vocab=[("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *_list_pieces()])
    tokenizer.save_pretrained(folder)
    config = MBartConfig(vocab_size=len(tokenizer), decoder_start_token_id=2, **BART)
    MBartForConditionalGeneration(config).save_pretrained(folder)


def _list_pieces() -> list[tuple[str, float]]:
    import sentencepiece

    read = sentencepiece.SentencePieceProcessor(model_proto=folders.pieces())
    return [(read.IdToPiece(one), read.GetScore(one)) for one in range(3, read.GetPieceSize())]


def make_many_marian(folder: Path) -> None:
    folders.marian(folder, targets=("deu", "fra"))


def make_trocr(folder: Path) -> None:
    from transformers import TrOCRConfig, VisionEncoderDecoderConfig, VisionEncoderDecoderModel, ViTConfig

    sees = ViTConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=32, image_size=28)
    writes = TrOCRConfig(vocab_size=50, d_model=32, decoder_layers=1, decoder_attention_heads=4, decoder_ffn_dim=32)
    config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(sees, writes)
    VisionEncoderDecoderModel(config).save_pretrained(folder)


def make_adapter(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "base_model_name_or_path": "x"}))
    (folder / "adapter_model.safetensors").write_bytes(b"")


VISION: dict[str, Any] = {
    **{"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2},
    **{"image_size": 28, "patch_size": 14, "depth": 1, "embed_dim": 16, "num_heads": 2, "out_hidden_size": 32},
}


def sees(name: str, text: Mapping[str, Any], **more: Any) -> FolderKind:
    """A model that reads pictures as well: its text part is opened."""
    return FolderKind(
        name, "pictures too", {"text_config": SIZES | dict(text), "vision_config": VISION}, replaces=True, **more
    )


KINDS: tuple[FolderKind, ...] = (
    *_from_families(),
    # decoders alone, beyond those
    FolderKind("Qwen2MoeForCausalLM", "experts", GROUPED | EXPERTS | {"shared_expert_intermediate_size": 32}),
    FolderKind("Qwen3MoeForCausalLM", "experts", GROUPED | EXPERTS),
    FolderKind("DeepseekV2ForCausalLM", "latent keys and values", LATENT),
    FolderKind("DeepseekV3ForCausalLM", "latent keys and values", LATENT),
    FolderKind("Qwen3NextForCausalLM", "hybrid: linear attention", LINEAR | EXPERTS),
    FolderKind("Qwen3_5ForCausalLM", "hybrid: linear attention", LINEAR),
    FolderKind("Lfm2ForCausalLM", "hybrid: convolution", GROUPED | {"layer_types": ["conv", "full_attention"]}),
    FolderKind(
        "Lfm2MoeForCausalLM",
        "hybrid: convolution, experts",
        GROUPED | EXPERTS | {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    ),
    FolderKind(
        "GraniteMoeHybridForCausalLM",
        "hybrid: state space",
        GROUPED
        | STATES
        | {"layer_types": ["mamba", "attention"], "num_local_experts": 0, "shared_intermediate_size": 32},
    ),
    FolderKind(
        "OlmoHybridForCausalLM",
        "hybrid: linear attention",
        LINEAR | {"linear_num_value_heads": 2, "num_key_value_heads": 4},
    ),
    FolderKind(
        "BambaForCausalLM",
        "hybrid: state space",
        GROUPED | STATES | {"attn_layer_indices": [1], "attn_rotary_emb": 8},
        refused="step by step",
    ),
    FolderKind(
        "JambaForCausalLM",
        "hybrid: state space",
        GROUPED
        | {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2, "expert_layer_period": 2}
        | {"expert_layer_offset": 1, "mamba_d_state": 8, "mamba_dt_rank": 4, "use_mamba_kernels": False},
    ),
    FolderKind(
        "FalconH1ForCausalLM",
        "attention and state space in every layer",
        GROUPED | STATES | {"mamba_d_ssm": 64},
    ),
    FolderKind("MambaForCausalLM", "state space alone", {"state_size": 8}, refused="no attention"),
    FolderKind(
        "Mamba2ForCausalLM",
        "state space alone",
        {"num_heads": 8, "head_dim": 8, "state_size": 8, "n_groups": 1},
        refused="no attention",
    ),
    FolderKind("RwkvForCausalLM", "recurrent", {"attention_hidden_size": 32}, refused="not known here"),
    FolderKind("PhiForCausalLM", "rotary on a part"),
    FolderKind("PhimoeForCausalLM", "experts", GROUPED | EXPERTS),
    FolderKind("StableLmForCausalLM", "rotary on a part", {"num_key_value_heads": 4}),
    FolderKind("StableLmForCausalLM", "normalised q and k", {"qk_layernorm": True, "num_key_value_heads": 4}),
    FolderKind("GlmForCausalLM", "rotary on a part", GROUPED),
    FolderKind("Glm4ForCausalLM", "rotary on a part, norms on both sides", GROUPED),
    FolderKind(
        "Glm4MoeForCausalLM", "experts", GROUPED | EXPERTS | {"n_routed_experts": 2, "first_k_dense_replace": 1}
    ),
    FolderKind(
        "Llama4ForCausalLM",
        "chunked attention in some layers",
        GROUPED
        | {"num_local_experts": 2, "intermediate_size_mlp": 64, "num_hidden_layers": 4, "attention_chunk_size": 64},
    ),
    FolderKind("HunYuanDenseV1ForCausalLM", "normalised q and k", GROUPED),
    FolderKind("BertLMHeadModel", "", {"is_decoder": True}),
    FolderKind("RobertaForCausalLM", "", {"is_decoder": True}, passes=True),
    FolderKind("XLMRobertaForCausalLM", "", {"is_decoder": True}, passes=True),
    FolderKind("ElectraForCausalLM", "", {"is_decoder": True, "embedding_size": 16}),
    FolderKind(
        "Gemma3nForCausalLM",
        "streams beside the residual one",
        GROUPED
        | {
            "num_hidden_layers": 4,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "sliding_window": 8,
            "hidden_size_per_layer_input": 8,
            "vocab_size_per_layer_input": 16,
            "num_kv_shared_layers": 0,
            "laurel_rank": 4,
            "altup_num_inputs": 2,
            "activation_sparsity_pattern": [0.0] * 4,
        },
    ),
    FolderKind(
        "Gemma4ForCausalLM",
        "",
        ALTERNATING | {"hidden_size_per_layer_input": 8, "global_head_dim": 8, "num_kv_shared_layers": 0},
    ),
    FolderKind("MinistralForCausalLM", "window", GROUPED),
    FolderKind("Ministral3ForCausalLM", "", GROUPED),
    FolderKind("NemotronForCausalLM", "", GROUPED),
    FolderKind("MiniMaxM2ForCausalLM", "experts", GROUPED | EXPERTS),
    FolderKind("OlmoForCausalLM", "norms without weights", GROUPED),
    FolderKind("OlmoeForCausalLM", "experts", GROUPED | EXPERTS),
    FolderKind("CohereForCausalLM", "", GROUPED),
    FolderKind("GraniteMoeForCausalLM", "experts", GROUPED | EXPERTS),
    FolderKind("Ernie4_5ForCausalLM", "", GROUPED),
    FolderKind("SeedOssForCausalLM", "", GROUPED),
    FolderKind("ApertusForCausalLM", "", GROUPED),
    FolderKind("ArceeForCausalLM", "", GROUPED),
    FolderKind("HeliumForCausalLM", "", GROUPED),
    FolderKind("PersimmonForCausalLM", ""),
    FolderKind(
        "OpenAIGPTLMHeadModel",
        "the first GPT",
        {"n_positions": 96, "n_embd": 32, "n_layer": 2, "n_head": 4},
        replaces=True,
        refused="a mask that is not known",
    ),
    FolderKind("BitNetForCausalLM", "", GROUPED),
    FolderKind(
        "SmolLM3ForCausalLM",
        "layers with and without positions",
        GROUPED | {"num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0]},
    ),
    FolderKind("VaultGemmaForCausalLM", "", ALTERNATING),
    FolderKind("DiffLlamaForCausalLM", "the difference of two attentions", GROUPED, refused="more than once"),
    FolderKind("DogeForCausalLM", "dynamic mask", GROUPED | {"num_experts": 16}),
    FolderKind(
        "ModernBertDecoderForCausalLM",
        "",
        {"num_hidden_layers": 4, "local_attention": 6, "global_attn_every_n_layers": 2},
    ),
    FolderKind("GPTNeoXJapaneseForCausalLM", "", {}),
    FolderKind(
        "RecurrentGemmaForCausalLM",
        "hybrid: recurrent",
        GROUPED
        | {
            "num_key_value_heads": 1,
            "lru_width": 32,
            "attention_window_size": 64,
            "block_types": ["recurrent", "attention"],
        },
    ),
    FolderKind(
        "Zamba2ForCausalLM",
        "hybrid, layers share attention",
        STATES
        | {
            "initializer_range": 0.05,
            "layers_block_type": ["mamba", "hybrid"] * 2,
            "num_hidden_layers": 4,
            "num_mem_blocks": 1,
            "layer_types": ["linear_attention", "hybrid"] * 2,
        },
    ),
    sees("Gemma3ForConditionalGeneration", ALTERNATING | {"query_pre_attn_scalar": 1}),
    sees(
        "Qwen2VLForConditionalGeneration",
        GROUPED | {"rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2]}},
    ),
    sees("Qwen3_5ForConditionalGeneration", LINEAR),
    sees("Mistral3ForConditionalGeneration", GROUPED | {"model_type": "mistral"}),
    sees("LlavaForConditionalGeneration", GROUPED | {"model_type": "llama"}),
    FolderKind(
        "Phi3ForCausalLM",
        "with the auto_map that it is shipped with",
        GROUPED,
        config={"auto_map": {"AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM"}},
    ),
    FolderKind("GPT2LMHeadModel", "without an end in its configuration", config={"eos_token_id": None}),
    # encoder-decoders, beyond those
    two_sides("MT5ForConditionalGeneration", T5),
    two_sides("LongT5ForConditionalGeneration", T5 | {"local_radius": 4}),
    two_sides(
        "SwitchTransformersForConditionalGeneration",
        T5 | {"num_experts": 2, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1},
        "experts",
    ),
    two_sides(
        "LEDForConditionalGeneration",
        BART | {"max_encoder_position_embeddings": 96, "max_decoder_position_embeddings": 96, "attention_window": 8},
    ),
    two_sides(
        "ProphetNetForConditionalGeneration",
        {
            "hidden_size": 32,
            "num_encoder_layers": 2,
            "num_decoder_layers": 2,
            "num_encoder_attention_heads": 4,
            "num_decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "max_position_embeddings": 96,
        },
        refused="not known here",
    ),
    two_sides("BlenderbotForConditionalGeneration", BART),
    two_sides("BlenderbotSmallForConditionalGeneration", BART),
    two_sides("BigBirdPegasusForConditionalGeneration", BART | {"block_size": 4}),
    two_sides(
        "NllbMoeForConditionalGeneration",
        BART | {"num_experts": 2, "encoder_sparse_step": 2, "decoder_sparse_step": 2},
        "experts",
    ),
    two_sides("PLBartForConditionalGeneration", BART),
    two_sides("MvpForConditionalGeneration", BART),
    two_sides("PegasusXForConditionalGeneration", BART | {"block_size": 8, "num_global_tokens": 2}),
    two_sides("FSMTForConditionalGeneration", BART, refused="step by step"),
    two_sides(
        "T5GemmaForConditionalGeneration",
        {
            side: SIZES | GROUPED | {"query_pre_attn_scalar": 8, "layer_types": ["full_attention"] * 2}
            for side in ("encoder", "decoder")
        },
    ),
    FolderKind("EncoderDecoderModel", "BERT2BERT", make=make_bert2bert),
    FolderKind(
        "M2M100ForConditionalGeneration",
        "NLLB, languages by tokens",
        make=make_nllb,
        options="?source=eng_Latn&target=deu_Latn",
    ),
    FolderKind("M2M100ForConditionalGeneration", "NLLB, no language asked for", make=make_nllb, refused="say which"),
    FolderKind(
        "M2M100ForConditionalGeneration",
        "NLLB, a language that it has not",
        make=make_nllb,
        options="?target=xxx_Latn",
        refused="no token for the language",
    ),
    FolderKind(
        "MBartForConditionalGeneration",
        "mBART-50, languages by tokens",
        make=make_mbart50,
        options="?source=en_XX&target=de_DE",
    ),
    FolderKind("MarianMTModel", "several targets", make=make_many_marian, options="?target=deu"),
    # what reads no text, or is no whole model
    FolderKind("T5EncoderModel", "the encoder of T5 alone", T5, replaces=True),
    FolderKind("LlamaModel", "a decoder without a head, as for retrieval", GROUPED),
    FolderKind(
        "WhisperForConditionalGeneration",
        "speech",
        BART | {"num_mel_bins": 8, "max_source_positions": 32, "max_target_positions": 32},
        replaces=True,
        refused="preprocessor_config.json",
    ),
    FolderKind(
        "Speech2TextForConditionalGeneration",
        "speech",
        BART | {"input_feat_per_channel": 8},
        replaces=True,
        refused="reads sound",
    ),
    FolderKind(
        "Wav2Vec2ForCTC",
        "speech",
        {
            "hidden_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "intermediate_size": 32,
            "num_conv_pos_embeddings": 16,
            "num_conv_pos_embedding_groups": 4,
        },
        replaces=True,
        refused="reads sound",
    ),
    FolderKind("VisionEncoderDecoderModel", "TrOCR and Donut", make=make_trocr, refused="tokenizer"),
    FolderKind(
        "ViTModel",
        "pictures",
        {
            "hidden_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "intermediate_size": 32,
            "image_size": 28,
            "patch_size": 14,
        },
        replaces=True,
        refused="preprocessor_config.json",
    ),
    FolderKind("LoRA", "an adapter", make=make_adapter, refused="is an adapter"),
)
