"""Models of transformers, each class built from one set of small sizes: 2 layers of 3 heads, 2 samples."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attenscope.trace import Kind
from bench.libraries.case import Case, Sizes, Subject

S, T, PATCHES = 11, 7, 16
"""Tokens of the source and of the target, and patches of an image."""
SIZES: dict[str, Any] = {
    **{"vocab_size": 50, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1},
    **{"head_dim": 8, "intermediate_size": 32, "max_position_embeddings": 64, "num_layers": 2, "num_heads": 3},
    **{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "d_model": 24},
    **{"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 3, "decoder_attention_heads": 3},
    **{"encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "d_kv": 8, "d_ff": 32, "num_decoder_layers": 2, "ffn_dim": 32},
    **{"n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 64, "image_size": 48, "patch_size": 12, "dim": 24},
    **{"num_local_experts": 2, "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 32, "n_layers": 2},
    **{"n_heads": 3, "hidden_dim": 32, "embedding_size": 24},
}
"""By the names that configurations have for them; a class takes those that it knows."""


def _words(text: str) -> list[str]:
    return text.split()


DECODERS = _words("""
    Afmoe Apertus Arcee AriaText Beam BioGpt BitNet Bloom CLIPText Cohere Cohere2 Cohere2Moe CTRL Cwm Doge
    Exaone4 Falcon Gemma Gemma2 Gemma3Text Glm Glm4 Glm4Moe GPT2 GPTBigCode GPTNeoX GPTNeoXJapanese Granite
    GraniteDoclingText GraniteMoe GraniteMoeShared GraniteMoeSWA GraniteSWA Helium HunYuanDenseV1
    HunYuanMoEV1 HyperCLOVAX HYV3 ImageGPT Jais2 Kolibri1 Laguna Lfm2 Llama Llama4Text Mellum Ministral
    Ministral3 Mistral Mixtral ModernBertDecoder Mpt NanoChat Nemotron Olmo Olmo2 Olmo3 Olmoe OpenAIGPT OPT
    Persimmon Phi Phi3 Phimoe Qwen2 Qwen2Moe Qwen3 Qwen3Moe SeedOss SmolLM3 StableLm Starcoder2 VaultGemma
    XGLM Zaya
""")
ENCODERS = _words("""
    Albert Bert BigBird Camembert Data2VecText Deberta DebertaV2 DistilBert Electra EmbeddingGemma2Text Ernie
    Esm EuroBert Flaubert Gte IBert JinaEmbeddingsV3 LayoutLM Lilt MarkupLM MegatronBert MobileBert
    ModernBert MPNet NomicBert RemBert Roberta RobertaPreLayerNorm RoCBert RoFormer Splinter SqueezeBert
    Tapas XLM XLMRoberta XLMRobertaXL XLNet Xmod
""")
BOTH = _words("""
    Bart BigBirdPegasus Blenderbot BlenderbotSmall FSMT M2M100 Marian MBart MT5 Mvp NllbMoe Pegasus PLBart
    SwitchTransformers T5 UMT5
""")
VISION = {"Aimv2Vision": 0, "Beit": 1, "ChineseCLIPVision": 1, "CLIPVision": 1, "DeiT": 2, "Dinov2": 1}
VISION |= {"Dinov2WithRegisters": 5, "DINOv3ViT": 1, "DPT": 1, "IJepa": 0, "InternVLVision": 1, "Pixio": 8, "Radio": 10}
VISION |= {"SiglipVision": 0, "Tipsv2Vision": 2, "VitDet": 0, "ViT": 1, "ViTMSN": 1, "MLCDVision": 1, "Sapiens2": 9}
"""Class -> how many tokens it has beside the patches."""
POOLED = ("Aimv2Vision", "SiglipVision")
"""Those with one query over all patches at the end."""
RETURN_OTHERS = ("SqueezeBert",)
"""Those that return scores in the place of weights."""
MORE: dict[str, dict[str, Any]] = {"XGLM": {"attention_heads": 3}, "Flaubert": {"emb_dim": 24}, "XLM": {"emb_dim": 24}}
MORE |= {"Xmod": {"default_language": "en_XX"}}
MORE |= {"MobileBert": {"intra_bottleneck_size": 24, "true_hidden_size": 24, "embedding_size": 24}}
SINKS: dict[str, Kind] = {"GptOss": "decoder", "Flint": "decoder", "OpenAIPrivacyFilter": "encoder"}


def configured(name: str, **sizes: Any) -> Any:
    """Return the configuration of a class with those of :data:`SIZES` that it has, and others."""
    import transformers

    cls = getattr(transformers, name).config_class
    known = set(inspect.signature(cls.__init__).parameters)
    known |= {one.name for one in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    return cls(**{key: value for key, value in SIZES.items() if key in known} | sizes)


def tokens(length: int, samples: int = 2) -> Tensor:
    """Return ids (B, length), none of them special."""
    return torch.randint(5, 45, (samples, length), generator=torch.Generator().manual_seed(2))


def built(name: str, sizes: Mapping[str, Any], inputs: Mapping[str, Tensor], returns: bool = True) -> Subject:
    """Return a model and a run of it; ``returns`` whether its eager kernel returns weights to compare with."""
    import transformers

    model = getattr(transformers, name)(configured(name, **sizes)).eval()
    for parameter in model.parameters():
        parameter.data *= 1.5  # or random weights are nearly uniform

    def told() -> Mapping[Kind, Sequence[Tensor]]:
        eager = type(model)(configured(name, **sizes, attn_implementation="eager")).eval()
        eager.load_state_dict(model.state_dict())
        with torch.no_grad():
            return _attentions(eager(**inputs, output_attentions=True), name)

    return Subject(model, lambda: model(**inputs), told if returns else None)


def _attentions(output: Any, name: str) -> Mapping[Kind, Sequence[Tensor]]:
    """What an output says that its weights are, by kind; of one stack, the kind of the class."""
    names: dict[Kind, str] = {"encoder": "encoder_attentions", "decoder": "decoder_attentions"}
    if output.get("encoder_attentions"):
        return {kind: output[own] for kind, own in {**names, "cross": "cross_attentions"}.items()}
    stem = name.removesuffix("Model")
    kind: Kind = "decoder" if stem in DECODERS or SINKS.get(stem) == "decoder" else "encoder"
    return {kind: output["attentions"]} if output.get("attentions") else {}


def _text(name: str, both: bool) -> tuple[dict[str, Tensor], dict[Kind, Sizes]]:
    """Inputs, of which the second sample is padded, and the sizes of the maps."""
    keep = torch.ones(2, S, dtype=torch.long)
    keep[1, 8:] = 0
    inputs = {"input_ids": tokens(S), "attention_mask": keep}
    if not both:
        return inputs, {"decoder" if name in DECODERS else "encoder": (2, 3, S, S)}
    sizes: dict[Kind, Sizes] = {"encoder": (2, 3, S, S), "decoder": (2, 3, T, T), "cross": (2, 3, T, S)}
    return {**inputs, "decoder_input_ids": tokens(T)}, sizes


def cases() -> Iterator[Case]:
    """Yield the cases of transformers beside those of ``bench/families``."""
    for name in [*DECODERS, *ENCODERS, *BOTH]:
        inputs, maps = _text(name, name in BOTH)
        how = partial(built, f"{name}Model", MORE.get(name, {}), inputs, name not in RETURN_OTHERS)
        yield Case("transformers", f"{name}Model", how, maps)
    image = torch.randn(2, 3, 48, 48, generator=torch.Generator().manual_seed(2))
    for name, more in VISION.items():
        sizes: dict[Kind, Sizes] = {"encoder": (2, 3, PATCHES + more, PATCHES + more)}
        sizes |= {"cross": (1, 3, 1, PATCHES)} if name in POOLED else {}
        how = partial(built, f"{name}Model", {}, {"pixel_values": image}, name not in POOLED)
        yield Case("transformers", f"{name}Model", how, sizes)
    for name, kind in SINKS.items():
        how = partial(built, f"{name}Model", {}, {"input_ids": tokens(S)}, False)
        yield Case("transformers", f"{name}Model", how, {kind: (2, 3, S, S + 1)})
