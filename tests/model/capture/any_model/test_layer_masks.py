"""Layers with masks of their own, as of sliding windows: each is recorded, drawn and judged with its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attenscope.analysis.heads import attention_entropy
from attenscope.capture.attention import capture_attention
from attenscope.masks.diagnose import diagnose
from attenscope.text.words import hide_special_tokens, merge_map_into_words
from attenscope.trace import AttentionMap, AttentionTrace, select_head
from attenscope.viz.figures.heatmap import heatmap, make_head_grid
from attenscope.viz.figures.text_alternatives import describe_head_overview
from attenscope.viz.traces.verdict import diagnose_map
from tests.model.capture.any_model.test_hugging_face import SIZES

GROUPED = {**SIZES, "num_key_value_heads": 2, "head_dim": 8}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "Gemma2ForCausalLM": ("Gemma2Config", {**GROUPED, "sliding_window": 4}),
    "Gemma3ForCausalLM": ("Gemma3TextConfig", {**GROUPED, "num_hidden_layers": 6, "sliding_window": 4}),
    "GPTNeoForCausalLM": (
        "GPTNeoConfig",
        {"vocab_size": 50, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "window_size": 4}
        | {"attention_types": [[["global", "local"], 1]], "max_position_embeddings": 64},
    ),
    "ModernBertModel": ("ModernBertConfig", {**SIZES, "local_attention": 4, "pad_token_id": 0, "cls_token_id": 1}),
    "Llama4ForCausalLM": (
        "Llama4TextConfig",
        {**GROUPED, "attention_chunk_size": 4, "num_local_experts": 2, "intermediate_size_mlp": 64}
        | {"no_rope_layers": [1, 0]},
    ),
}


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_each_layer_has_its_mask_and_none_is_a_fault(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    config, sizes = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, name)(getattr(transformers, config)(**sizes)).eval()
    tokens = torch.arange(5, 16)[None]
    with capture_attention(model) as capture:
        model(tokens)
    kind, one = capture.trace.maps.popitem()
    model.set_attn_implementation("eager")
    weights = torch.stack(model(tokens, output_attentions=True).attentions)[:, 0].numpy()
    np.testing.assert_allclose(one.weights, weights, atol=1e-5)
    assert one.layer_masks is not None
    assert one.layer_masks.shape == (one.layers, 1, 11, 11)
    np.testing.assert_array_equal(one.masks, (weights > 0).any(1, keepdims=True))
    np.testing.assert_array_equal(one.mask, (weights > 0).any((0, 1)))
    assert diagnose(**capture.arrays(kind), map=kind).sound
    assert not diagnose_map(capture.trace, kind).is_faulty_or_unjudgeable


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
@torch.no_grad()
def test_windows_in_turn_beside_padding_are_as_meant_whether_its_places_are_given(seed: int, kernel: str) -> None:
    transformers = pytest.importorskip("transformers")
    random = np.random.default_rng(seed)
    samples, tokens, reach, heads = (int(random.integers(*ends)) for ends in ((2, 4), (10, 18), (1, 4), (1, 5)))
    sizes = {**SIZES, "hidden_size": 8 * heads, "num_attention_heads": heads, "num_hidden_layers": 3}
    own = {"local_attention": 2 * reach, "global_attn_every_n_layers": 3, "pad_token_id": 0, "cls_token_id": 1}
    torch.manual_seed(seed)
    model = transformers.ModernBertModel(transformers.ModernBertConfig(**sizes | own)).eval()
    model.set_attn_implementation(kernel)
    keep = torch.arange(tokens) < torch.from_numpy(random.integers(5, tokens, (samples, 1)))
    with capture_attention(model) as capture:
        model(torch.randint(3, 50, keep.shape) * keep, attention_mask=keep.long())
    window = f"window:{reach + 1}"
    for given in ({}, {"key_keep": keep.numpy()}, {"key_keep": keep.numpy(), "query_keep": keep.numpy()}):
        arrays: dict[str, Any] = capture.arrays("encoder") | given
        assert diagnose(**arrays, meant=f"padding / {window} / {window}").verdict == "sound"
        assert diagnose(**arrays, meant=f"{window} / padding / {window}").verdict == "faulty"


class HeadWindows(nn.Module):
    """A mask for each head: its window is as wide as its number."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads = 2
        self.qk = nn.Linear(8, 16)

    def forward(self, x: Tensor, wide: Tensor) -> Tensor:
        q, k = (one.unflatten(-1, (2, 4)).transpose(1, 2) for one in self.qk(x).chunk(2, -1))
        near = (torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])).abs() < wide[:, None, None]
        return x + nn.functional.scaled_dot_product_attention(q, k, k, near).transpose(1, 2).flatten(2)


@pytest.fixture(scope="module")
def windows() -> AttentionMap:
    """Two layers of two heads whose windows are 1 and 2, and 2 and 4 wide."""
    torch.manual_seed(0)
    model = nn.ModuleDict({"first_attention": HeadWindows(), "second_attention": HeadWindows()})

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = model

        def forward(self, x: Tensor) -> Tensor:
            x = self.layers["first_attention"](x, torch.tensor([1, 2]))
            return self.layers["second_attention"](x, torch.tensor([2, 4]))

    both = Both()
    names = ["<s>", " a", "b", " c", " d", "</s>"]
    with torch.no_grad(), capture_attention(both, tokens=names) as capture:
        both(torch.randn(1, 6, 8))
    found = capture.trace.encoder
    assert found is not None
    return found


def band(width: int) -> np.ndarray:
    return np.abs(np.subtract.outer(np.arange(6), np.arange(6))) < width


def test_heads_with_masks_of_their_own(windows: AttentionMap) -> None:
    assert windows.masks.shape == (2, 2, 6, 6)
    for (layer, head), width in zip(np.ndindex(2, 2), (1, 2, 2, 4), strict=True):
        np.testing.assert_array_equal(windows.mask_of(layer, head), band(width))
        np.testing.assert_array_equal(make_head_grid(windows, layer, head, "fed").mask, band(width))
        alone = select_head(windows, layer, head)
        assert alone.layer_masks is None
        np.testing.assert_array_equal(alone.mask, band(width))
        assert attention_entropy(alone).item() == pytest.approx(attention_entropy(windows)[layer, head])
    np.testing.assert_array_equal(windows.mask, band(4))


def test_masks_of_layers_are_saved_merged_and_cut(windows: AttentionMap, tmp_path: Path) -> None:
    AttentionTrace(encoder=windows).save(tmp_path / "t.safetensors")
    again = AttentionTrace.load(tmp_path / "t.safetensors").encoder
    assert again is not None
    assert again.layer_masks is not None
    np.testing.assert_array_equal(again.layer_masks, windows.layer_masks)
    cut = hide_special_tokens(windows)
    np.testing.assert_array_equal(cut.masks, windows.masks[:, :, 1:5, 1:5])
    merged = merge_map_into_words(cut)
    assert merged.query_tokens == (" ab", " c", " d")
    np.testing.assert_array_equal(merged.mask_of(0, 0), np.eye(3, dtype=bool))
    np.testing.assert_array_equal(merged.weights > 0, merged.masks)


def test_one_mask_for_all_is_saved_once() -> None:
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(1, 4, 8)
    with capture_attention(attention) as capture:
        attention(x, x, x, attn_mask=torch.ones(4, 4).triu(1) > 0)
    one = capture.trace.decoder
    assert one is not None
    assert one.layer_masks is None
    np.testing.assert_array_equal(one.masks, np.tri(4, dtype=bool)[None, None])


class Hybrid(nn.Module):
    """Attention in every second layer only, as in Jamba."""

    def __init__(self) -> None:
        super().__init__()
        attention = (nn.MultiheadAttention(8, 2, batch_first=True) for _ in range(2))
        self.layers = nn.ModuleList(one for pair in attention for one in (nn.Linear(8, 8), pair))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, x, x)[0] if isinstance(layer, nn.MultiheadAttention) else layer(x)
        return x


def test_layers_keep_their_paths_and_the_numbers_of_the_model(tmp_path: Path) -> None:
    model = Hybrid().eval()
    with torch.no_grad(), capture_attention(model) as capture:
        model(torch.randn(1, 4, 8))
    capture.trace.save(tmp_path / "t.safetensors")
    one = AttentionTrace.load(tmp_path / "t.safetensors").encoder
    assert one is not None
    assert one.layer_paths == ("layers.1", "layers.3")
    assert one.layer_numbers == (1, 3)
    assert "They are layers 2, 4 of the model." in describe_head_overview(one)
    assert make_head_grid(one, 1, 0, "fed").title.endswith("layer 2, head 1 · layers.3")
    assert select_head(one, 1, 0).layer_paths == ("layers.3",)
    assert merge_map_into_words(one).layer_paths == one.layer_paths


@pytest.mark.parametrize(
    ("paths", "numbers"),
    [
        ((), (0, 1)),
        (("a.7.attn", "a.9.attn"), (7, 9)),
        (("a.0.attn", "a.0.attn"), (0, 1)),
        (("a.0.2.attn", "a.0.4.attn"), (2, 4)),
        (("first", "second"), (0, 1)),
    ],
)
def test_a_number_is_read_off_the_paths_where_they_tell(paths: tuple[str, ...], numbers: tuple[int, ...]) -> None:
    one = AttentionMap("encoder", np.zeros((2, 1, 1, 1)), ("a",), ("a",), np.ones((1, 1), bool), layer_paths=paths)
    assert one.layer_numbers == numbers


def test_a_path_is_text_and_no_markup() -> None:
    weights, mask = np.ones((1, 1, 1, 1), np.float32), np.ones((1, 1), bool)
    one = AttentionMap("encoder", weights, ("a",), ("a",), mask, layer_paths=("<b>x</b>",))
    assert "&lt;b&gt;x&lt;/b&gt;" in heatmap(one, 0, 0).layout.title.text
