"""Configurations of released models, written by hand from their published shapes."""

from __future__ import annotations

from typing import Any

_VISION = {
    **{"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "model_type": "siglip_vision_model"},
    **{"num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14, "vision_use_head": False},
}
PUBLISHED: dict[str, dict[str, Any]] = {
    "llama": {
        **{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16384, "vocab_size": 128256},
        **{"intermediate_size": 53248, "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8},
        **{"max_position_embeddings": 131072, "rope_theta": 500000.0},
        "rope_scaling": {
            **{"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "rope_type": "llama3"},
            "original_max_position_embeddings": 8192,
        },
    },
    "qwen": {
        **{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 5120, "vocab_size": 151936},
        **{"intermediate_size": 25600, "num_hidden_layers": 64, "num_attention_heads": 64, "num_key_value_heads": 8},
        **{"head_dim": 128, "max_position_embeddings": 40960, "sliding_window": None, "use_sliding_window": False},
    },
    "gemma3": {
        **{"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "mm_tokens_per_image": 256},
        **{"image_token_index": 262144, "boi_token_index": 255999, "eoi_token_index": 256000},
        "text_config": {
            **{"hidden_size": 5376, "intermediate_size": 21504, "model_type": "gemma3_text", "head_dim": 128},
            **{"num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16, "sliding_window": 1024},
            **{"query_pre_attn_scalar": 168, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
        },
        "vision_config": _VISION,
    },
    "gpt-oss": {
        **{"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 2880, "vocab_size": 201088},
        **{"num_hidden_layers": 36, "num_local_experts": 128, "num_experts_per_tok": 4, "num_attention_heads": 64},
        **{"num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "sliding_window": 128},
    },
    "mistral": {
        **{"architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 4096, "vocab_size": 32000},
        **{"intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8},
        **{"max_position_embeddings": 32768, "sliding_window": 4096},
    },
    "modernbert": {
        **{"architectures": ["ModernBertForMaskedLM"], "model_type": "modernbert", "hidden_size": 1024},
        **{"intermediate_size": 2624, "num_hidden_layers": 28, "num_attention_heads": 16, "vocab_size": 50368},
        **{"global_attn_every_n_layers": 3, "local_attention": 128, "max_position_embeddings": 8192},
    },
    "t5": {
        **{"architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "d_model": 1024, "d_kv": 128},
        **{"d_ff": 65536, "num_layers": 24, "num_decoder_layers": 24, "num_heads": 128, "vocab_size": 32128},
        **{"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1},
    },
    "whisper": {
        **{"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "d_model": 1280},
        **{"encoder_layers": 32, "decoder_layers": 32, "encoder_attention_heads": 20, "decoder_attention_heads": 20},
        **{"encoder_ffn_dim": 5120, "decoder_ffn_dim": 5120, "vocab_size": 51866, "num_mel_bins": 128},
        **{"max_source_positions": 1500, "max_target_positions": 448},
    },
}
"""By family: Llama 3.1 405B, Qwen3 32B, Gemma 3 27B, gpt-oss 120B,
Mistral 7B, ModernBERT large, T5 11B, Whisper large."""
