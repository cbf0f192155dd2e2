"""The published architectures: what is its own for each, and that each builds, learns and translates."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attenscope.checkpoint.snapshots import build_random_model
from attenscope.network.config import (
    DROPOUT_PLACES,
    FIELDS_FROM_SOURCE,
    ORIGINAL_PRESET_NOTE,
    PAD_ID,
    PRESET_SOURCES,
    PRESETS,
    TransformerConfig,
    make_preset_config,
)
from attenscope.network.hooks import record_outputs
from attenscope.network.layers import StdLayerNorm
from attenscope.network.transformer import Transformer
from attenscope.translate import Translator
from tests import toy

NAMES = list(PRESETS)


def small(name: str, **fields: Any) -> Transformer:
    """The preset's numerics, 32 wide, on the toy vocabulary."""
    sizes = {"d_model": 32, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 64, "max_length": 64}
    vocabulary = {"vocab_size": toy.VOCABULARY, "target_vocab_size": toy.VOCABULARY}
    torch.manual_seed(0)
    return Transformer(make_preset_config(name, **{**sizes, **vocabulary, **fields}))


# One column a preset. The left side of each row is a field of TransformerConfig.
TABLE: dict[str, tuple[object, ...]] = {
    "": ("pad_row", "torch_like", "annotated", "original", "shared_bpe", "vaswani2017"),
    "positions": ("sinusoidal_pad_row", *("sinusoidal",) * 5),
    "max_length": (512, 5000, 5000, 5000, 5000, 5000),
    "norm_order": ("post", "post", "pre", "pre", "post", "post"),
    "final_norm": (False, False, True, True, False, False),
    "norm_form": ("std_eps", "var_eps", "std_eps", "var_eps", "var_eps", "var_eps"),
    "norm_eps": (1e-6, 1e-5, 1e-6, 1e-5, 1e-5, 1e-5),
    "scale_scores": (True,) * 6,
    "qkv_bias": (True, False, True, True, True, False),
    "output_bias": (True, False, True, True, True, False),
    "feed_forward_bias": (True,) * 6,
    "scale_embedding": (False, True, True, True, False, True),
    "shared_embedding": (False, False, False, False, True, True),
    "tied_generator": (False, False, False, False, False, True),
    "generator_bias": (False, True, True, True, True, False),
    "init": ("torch", "torch", "xavier_uniform", "xavier_uniform", "torch", "xavier_normal_embedding"),
    "equal_layers": (False, True, False, False, False, False),
    "vocab_size": (8000, 8000, 8000, 8000, 10000, 37000),
    "target_vocab_size": (8000, 8000, 8000, 8000, 10000, 37000),
    "d_model": (512,) * 6,
    "heads": (8,) * 6,
    "encoder_layers": (6,) * 6,
    "decoder_layers": (6,) * 6,
    "feed_forward": (2048,) * 6,
    "dropout": (0.1,) * 6,
    "dropout_places": (*(DROPOUT_PLACES,) * 4, ("embedding", "feed_forward", "sublayer"), ("embedding", "sublayer")),
}
FIELDS = [field.name for field in dataclasses.fields(TransformerConfig) if field.name != "preset"]


def test_what_is_each_presets_own() -> None:
    assert TABLE[""] == tuple(PRESETS)
    assert set(TABLE) - {""} == set(FIELDS)
    for field in FIELDS:
        assert tuple(getattr(make_preset_config(name), field) for name in NAMES) == TABLE[field], field


def test_what_its_source_fixes_is_named_for_each_preset() -> None:
    assert list(FIELDS_FROM_SOURCE) == list(PRESET_SOURCES) == NAMES
    for name, fields in FIELDS_FROM_SOURCE.items():
        assert fields <= set(FIELDS), name


def test_original_is_not_the_papers_model_as_the_page_says() -> None:
    original, paper = make_preset_config("original"), make_preset_config("vaswani2017")
    assert (original.norm_order, original.final_norm) == ("pre", True)
    assert not original.shared_embedding
    assert not original.tied_generator
    assert (paper.norm_order, paper.final_norm) == ("post", False)
    assert paper.shared_embedding
    assert paper.tied_generator
    assert not paper.qkv_bias
    assert not paper.output_bias
    assert "attention" not in paper.dropout_places
    assert "pre-norm" in ORIGINAL_PRESET_NOTE
    assert "post-norm" in ORIGINAL_PRESET_NOTE


def test_the_papers_three_matrices_are_one() -> None:
    model = small("vaswani2017")
    assert model.source_embedding.table is model.target_embedding.table
    assert model.generator.weight is model.target_embedding.table.weight
    assert model.generator.bias is None


@pytest.mark.parametrize("init", ["xavier_uniform", "xavier_normal_embedding", "torch"])
def test_copies_of_one_layer_begin_equal_and_are_trained_apart(init: str) -> None:
    for equal in (False, True):
        model = small("torch_like", equal_layers=equal, init=init)
        for stack in (model.encoder, model.decoder):
            first, second = (dict(layer.named_parameters()) for layer in stack.layers)
            matrices = [name for name, tensor in first.items() if tensor.dim() > 1]
            assert all(torch.equal(first[name], second[name]) == equal for name in matrices)
            assert all(first[name] is not second[name] for name in first)


def test_the_random_start_of_a_training_has_equal_layers_too() -> None:
    config = small("torch_like").config
    model = build_random_model(config, seed=3)
    first, second = (dict(layer.named_parameters())["feed_forward.inner.weight"] for layer in model.encoder.layers)
    assert torch.equal(first, second)


@pytest.mark.parametrize("name", NAMES)
def test_builds_trains_and_the_loss_falls(name: str) -> None:
    model = small(name).train()
    batch = toy.batches(count=40).batch(torch.arange(24).numpy())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    losses = []
    for _ in range(12):
        logits = model(batch.source, batch.target_in)
        loss = F.cross_entropy(logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=PAD_ID)
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.75 * losses[0], losses


@pytest.mark.parametrize("name", NAMES)
def test_translates_and_shows_every_head(name: str) -> None:
    translator = Translator(toy.checkpoint(small(name).eval()))
    result = translator.translate("the dog sees a cat.", max_tokens=6)
    source, target = len(result.source_tokens), len(result.steps)
    shapes = {kind: found.weights.shape for kind, found in result.trace.maps.items()}
    assert shapes == {
        "encoder": (2, 4, source, source),
        "decoder": (2, 4, target, target),
        "cross": (2, 4, target, source),
    }
    assert translator.translate_batch(["the dog sees a cat."]) == [translator.translate("the dog sees a cat.").text]


def test_post_norm_without_a_final_norm_ends_in_the_last_sublayers_norm() -> None:
    for name in ("pad_row", "torch_like", "shared_bpe"):
        model = small(name).eval()
        with record_outputs(model, "encoder.layers.1.after_feed_forward.norm") as found:
            memory = model.encode(torch.tensor([[5, 6, 3]]))
        assert torch.equal(memory, found["encoder.layers.1.after_feed_forward.norm"])


def test_layer_norms_are_of_the_presets_form() -> None:
    for name, form in (("pad_row", StdLayerNorm), ("annotated", StdLayerNorm), ("original", nn.LayerNorm)):
        norms = [
            one
            for path, one in small(name).named_modules()
            if path.endswith("norm") and not isinstance(one, nn.Identity)
        ]
        # Two sublayers in each encoder layer, three in each decoder layer, and the final norms.
        assert len(norms) == 2 * 2 + 2 * 3 + (0 if name == "pad_row" else 2)
        assert all(type(norm) is form for norm in norms)


def test_torch_like_has_no_bias_in_its_attention() -> None:
    names = [name for name, _ in small("torch_like").named_parameters()]
    assert not [name for name in names if "_proj.bias" in name]
    assert [name for name in names if name.endswith("feed_forward.inner.bias")]


def test_original_big_is_the_baseline_with_other_sizes() -> None:
    """1024 wide, 16 heads, dropout 0.3 and a feed-forward network of four times the width."""
    big = make_preset_config("original", d_model=1024, heads=16, feed_forward=4 * 1024, dropout=0.3)
    assert set(big.differences(make_preset_config("original"))) == {"d_model", "heads", "feed_forward", "dropout"}
    assert big.d_head == make_preset_config("original").d_head == 64
