"""Two heads of GPT-2 set by hand: one copies the token before, the other finds what followed it; both are named."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers

import attenscope
from attenscope.analysis.heads import compute_head_statistics, describe_head_pattern, rank_heads
from attenscope.trace import AttentionMap

VOCABULARY, PLACES, HEADS, SHARP = 12, 24, 2, 40.0
"""SHARP: what a match adds to a score, in nats: weights come close to 0 and 1."""


def make_induction_model(vocabulary: int = VOCABULARY, places: int = PLACES) -> transformers.GPT2LMHeadModel:
    """Two layers of two heads; head 2 of layer 1 looks one back, head 1 of layer 2 is an induction head.

    Parts of the residual stream are the token, the token before it, and the position.

    Elhage et al. (2021), "A Mathematical Framework for Transformer Circuits": the first writes the token before into
    the stream, the second compares the query's token with it. All other heads are zero: they look at all keys alike.
    """
    width = 2 * vocabulary + places
    sizes = {"vocab_size": vocabulary, "n_positions": places, "n_embd": HEADS * width, "n_inner": 4}
    config = transformers.GPT2Config(n_layer=2, n_head=HEADS, bos_token_id=0, eos_token_id=1, **sizes)
    model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for one in model.parameters():
            one.zero_()
        for name, one in model.named_parameters():
            if "ln_" in name and name.endswith("weight"):
                one.fill_(1)
        model.transformer.wte.weight[:, :vocabulary] = torch.eye(vocabulary)
        model.transformer.wpe.weight[:, 2 * vocabulary : width] = torch.eye(places)
        first, second = (model.get_submodule(f"transformer.h.{layer}.attn") for layer in range(2))
        read, find = (one.get_parameter("c_attn.weight") for one in (first, second))
        next_place = torch.eye(places).roll(-1, 0)  # A key answers to the query after it.
        token, place = torch.arange(vocabulary), torch.arange(places)
        _connect(read, 1, "query", 2 * vocabulary + place, torch.eye(places))
        _connect(read, 1, "key", 2 * vocabulary + place, next_place)
        _connect(read, 1, "value", token, torch.eye(vocabulary))
        before = slice(vocabulary, 2 * vocabulary)
        first.get_parameter("c_proj.weight")[width : width + vocabulary, before] = torch.eye(vocabulary)
        _connect(find, 0, "query", token, torch.eye(vocabulary))
        _connect(find, 0, "key", vocabulary + token, torch.eye(vocabulary))
    return model


def _connect(weight: torch.Tensor, head: int, part: str, rows: torch.Tensor, matrix: torch.Tensor) -> None:
    """Let a part of a head read rows of the stream by a matrix (rows, columns); weight (D, 3 D) of all heads."""
    at = ("query", "key", "value").index(part) * weight.shape[0] + head * weight.shape[0] // HEADS
    weight[rows, at : at + matrix.shape[1]] = (SHARP if part == "query" else 1) * matrix


def capture_decoder(model: transformers.GPT2LMHeadModel, ids: list[int]) -> AttentionMap:
    tokens = [f" t{one}" for one in ids]
    with attenscope.capture_attention(model, tokens=tokens) as capture:
        model(torch.tensor([ids]))
    assert capture.trace.decoder is not None
    return capture.trace.decoder


@pytest.mark.parametrize("seed", range(5))
def test_an_induction_head_by_construction_is_found_and_named(seed: int) -> None:
    once = np.random.default_rng(seed).permutation(VOCABULARY)[:9].tolist()
    decoder = capture_decoder(make_induction_model(), once + once)
    statistics = compute_head_statistics(decoder)
    assert rank_heads(statistics["induction"])[0] == (1, 0)
    assert statistics["induction"][1, 0] > 0.9
    assert rank_heads(statistics["previous"])[0] == (0, 1)
    assert describe_head_pattern(decoder, 1, 0).habit == "induction"
    assert describe_head_pattern(decoder, 0, 1).habit == "previous"
    for place in ((0, 0), (1, 1)):
        assert describe_head_pattern(decoder, *place).habit == "even"


def test_a_text_without_repetition_names_no_induction_head() -> None:
    decoder = capture_decoder(make_induction_model(), list(range(VOCABULARY)))
    assert "induction" not in compute_head_statistics(decoder)
    assert describe_head_pattern(decoder, 1, 0).habit != "induction"
