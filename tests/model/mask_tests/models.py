"""Small models with and without faults, as the tests of behaviour and of `attenscope.testing` examine them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attenscope.mask_tests.subjects import Subject

T, D = 7, 16
KEEP = torch.tensor([[True] * T, [True] * 5 + [False] * 2])
IDS = torch.randint(1, 50, (2, T), generator=torch.Generator().manual_seed(3))
SIZES: dict[str, Any] = {"vocab_size": 60}
CORRECT = ["BertModel", "GPT2LMHeadModel", "T5ForConditionalGeneration", "BartForConditionalGeneration"]


class Small(nn.Module):
    """Two layers of attention whose mask can be spoiled in one place at a time."""

    def __init__(self, fault: str = "", causal: bool = True) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.fault, self.causal = fault, causal
        self.embedding = nn.Embedding(50, D)
        self.layers = nn.ModuleList(nn.Linear(D, 3 * D) for _ in range(2))

    def mask(self, keep: Tensor) -> Tensor:
        allowed = keep[:, None, :].expand(-1, keep.shape[1], -1)
        if self.fault == "padding":
            allowed = torch.ones_like(allowed)
        if self.causal:
            allowed = allowed.tril(1 if self.fault == "future" else 0)
        return allowed

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        for layer in self.layers:
            q, k, v = layer(x).chunk(3, -1)
            scores = (q @ k.mT / 4).masked_fill(~self.mask(keep), -1e9)
            x = x + scores.softmax(-1) @ v
        if self.fault == "neighbour":
            x = x + 1e-3 * x.mean(0)
        return x


def subject(fault: str = "", causal: bool = True, **more: Any) -> Subject:
    model = Small(fault, causal).eval()
    torch.manual_seed(2)
    return Subject(model, torch.randn(2, T, D), KEEP, causal, **more)


class OfIds(nn.Module):
    """A model of token ids that builds its padding mask from them."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.small = Small(fault)

    def forward(self, ids: Tensor) -> Tensor:
        return self.small(self.small.embedding(ids), ids != 0)


class Positioned(nn.Module):
    """Token ids in, states out; absolute positions from a table that ends at T, as in a GPT or a BERT."""

    def __init__(self, causal: bool, masked: bool, dropout: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding, self.positions = nn.Embedding(50, D), nn.Embedding(T, D)
        layer = nn.TransformerEncoderLayer(D, 2, 32, dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.causal, self.masked = causal, masked

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.positions.weight[torch.arange(ids.shape[1])]
        future = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1) if self.causal else None
        return self.encoder(x, mask=future, src_key_padding_mask=ids == 0 if self.masked else None)


def hugging_face(name: str, **more: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    wide = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    each = ("layers", 2), ("attention_heads", 4), ("ffn_dim", 64)
    bart = {f"{part}_{key}": value for part in ("encoder", "decoder") for key, value in each}
    sizes: dict[str, dict[str, Any]] = {
        "BertModel": wide,
        "GPT2LMHeadModel": {"n_embd": 32, "n_layer": 2, "n_head": 4},
        "T5ForConditionalGeneration": {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
        "BartForConditionalGeneration": {"d_model": 32, "max_position_embeddings": 64, **bart},
        "RoFormerForCausalLM": wide | {"embedding_size": 32},
        "LlamaModel": wide | {"num_key_value_heads": 2},
        "LlamaForTokenClassification": wide | {"num_key_value_heads": 2},
        "MistralForCausalLM": wide | {"num_key_value_heads": 2},
        "OPTModel": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64},
    }
    kind = getattr(transformers, name)
    torch.manual_seed(0)
    return kind(kind.config_class(**SIZES, **sizes[name], **more)).eval()
