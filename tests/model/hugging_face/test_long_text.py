"""Attention over texts that are too long for whole maps: pooled maps and rows against all weights of transformers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attenscope.capture import pooled as pooled_capture
from attenscope.hugging_face.load import FolderModel
from attenscope.runnable_model import InputError, Translation
from attenscope.user_model import load_user_model
from tests import folders

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.timeout(600)  # a busy machine takes a minute to import transformers

SHAPES: dict[str, dict[str, Any]] = {
    "Llama": {},
    "Mistral": {"sliding_window": 50},
    "Gemma2": {"sliding_window": 50, "head_dim": 8, "attn_logit_softcapping": 5.0, "query_pre_attn_scalar": 8},
    "GptOss": {"sliding_window": 50, "head_dim": 8, "num_local_experts": 2, "num_experts_per_tok": 1},
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 2048},
}
"""Decoders by the name of their class, and settings of each: grouped queries, windows, capped scores, a sink."""
LONG = 701
"""Tokens: no multiple of the blocks, nor of the rows that are computed at once."""
ROWS = (0, 350, 700)


def save_decoder(folder: Path, shape: str) -> Path:
    fast = folders.make_byte_level(folder, ["<s>", "</s>", "<unk>"], bos="<s>", eos="</s>", unk="<unk>")
    grouped = {} if shape == "GPT2" else folders.GROUPED_QUERIES | {"max_position_embeddings": 2048}
    config = getattr(transformers, f"{shape}Config")
    kind = getattr(transformers, f"{shape}ForCausalLM" if shape != "GPT2" else "GPT2LMHeadModel")
    torch.manual_seed(folders.SEED)
    settings = {"vocab_size": len(fast), "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    kind(config(**settings | grouped | SHAPES[shape])).save_pretrained(folder)
    return folder


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], FolderModel]:
    def load_shape(shape: str) -> FolderModel:
        model = load_user_model(f"hf:{save_decoder(tmp_path / shape, shape)}")
        assert isinstance(model, FolderModel)
        return model

    return load_shape


def read_all_weights(model: FolderModel, ids: tuple[int, ...]) -> np.ndarray:
    """(L, H, T, T), by transformers alone, of the weights on disk."""
    assert model.folder is not None
    eager = transformers.AutoModelForCausalLM.from_pretrained(model.folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        found = eager(torch.tensor([ids]), output_attentions=True, use_cache=False).attentions
    return torch.stack(found)[:, 0].float().numpy()


def draw_ids(model: FolderModel, count: int = LONG) -> tuple[int, ...]:
    chosen = np.random.default_rng(3).integers(3, len(model.tokenizer), count)
    return tuple(int(one) for one in chosen)


@pytest.mark.parametrize("shape", SHAPES)
def test_maps_and_rows_are_those_of_all_weights(
    shape: str, load: Callable[[str], FolderModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(shape)
    ids = draw_ids(model)
    monkeypatch.setattr(pooled_capture, "WEIGHTS_AT_ONCE", 4 * LONG * 37)  # 37 rows, over the borders of blocks
    expected = read_all_weights(model, ids)
    found = model.read_long_text(ids, ROWS)
    starts = np.arange(0, LONG, found.block)
    assert found.maps.shape == (2, 4, len(starts), len(starts))
    largest = np.maximum.reduceat(np.maximum.reduceat(expected, starts, 2), starts, 3)
    np.testing.assert_allclose(found.maps, largest, atol=1e-5)
    np.testing.assert_array_equal(found.mask, largest.max(1) > 0)
    for row in ROWS:
        np.testing.assert_allclose(found.rows[row], expected[:, :, row], atol=1e-5)
        np.testing.assert_array_equal(found.allowed[row], expected[:, :, row].max(1) > 0)
    alone = model.read_long_text(ids, (350,), pooled=False)
    np.testing.assert_allclose(alone.rows[350], expected[:, :, 350], atol=1e-5)
    assert alone.maps.size == 0


def test_no_more_weights_are_computed_at_once_than_said(
    load: Callable[[str], FolderModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, most = load("Llama"), 4 * LONG * 11
    monkeypatch.setattr(pooled_capture, "WEIGHTS_AT_ONCE", most)
    sizes = []
    keep = pooled_capture.PooledCapture.keep_weights

    def measure(self: Any, points: Any, weights: torch.Tensor) -> None:
        sizes.append(weights.numel())
        keep(self, points, weights)

    monkeypatch.setattr(pooled_capture.PooledCapture, "keep_weights", measure)
    turns: list[int] = []
    model.read_long_text(draw_ids(model), on_rows=lambda: turns.append(1))
    assert max(sizes) <= most
    assert len(turns) == len(sizes) == 2 * -(-LONG // 11)


def test_another_visitor_meanwhile_gets_whole_maps(load: Callable[[str], FolderModel]) -> None:
    model = load("Llama")
    before = model.translate(folders.SENTENCE).trace.maps["decoder"].weights
    found: list[Translation] = []

    def translate_once() -> None:
        if not found:
            visitor = threading.Thread(target=lambda: found.append(model.translate(folders.SENTENCE)))
            visitor.start()
            visitor.join()

    model.read_long_text(draw_ids(model), on_rows=translate_once)
    np.testing.assert_array_equal(found[0].trace.maps["decoder"].weights, before)
    np.testing.assert_array_equal(model.translate(folders.SENTENCE).trace.maps["decoder"].weights, before)


def test_a_text_is_long_between_the_limits_alone(load: Callable[[str], FolderModel]) -> None:
    model = load("Llama")
    assert (model.max_length, model.max_long_text_tokens) == (512, 2048)
    text = " ".join(folders.TEXT)
    assert model.encode_long_text(text) is None
    long_text = " ".join([text] * 12)
    encoded = model.encode_long_text(long_text)
    assert encoded is not None
    assert 512 < len(encoded.ids) <= 2048
    for refused in (long_text, long_text * 9):
        with pytest.raises(InputError, match=r"reads 512 tokens at most.*Explore shows texts of up to 2,048 tokens"):
            model.encode(refused)
    assert model.encode_long_text(long_text * 9) is None
    assert model.encode_long_text(long_text + "\ud800") is None


def test_a_chat_template_that_fails_on_a_long_text_is_told_as_of_any_other(tmp_path: Path) -> None:
    template = "{% if messages[0]['content'] | length > 900 %}{{ raise_exception('too long') }}{% endif %}"
    folder = folders.chat(tmp_path / "chat", template + folders.CHAT_TEMPLATE)
    path = folder / "config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(settings | {"max_position_embeddings": 4096}), encoding="utf-8")
    model = load_user_model(f"hf:{folder}")
    assert isinstance(model, FolderModel)
    assert model.max_long_text_tokens == 4096
    long_text = " ".join(folders.TEXT * 6)
    assert model.encode_long_text(long_text) is None
    with pytest.raises(InputError, match="chat template"):
        model.encode(long_text)


@pytest.mark.parametrize("name", ["gpt2", "marian"])
def test_a_model_with_few_positions_or_two_sides_reads_no_long_text(name: str, tmp_path: Path) -> None:
    model = load_user_model(f"hf:{folders.FOLDERS[name](tmp_path / name)}")
    assert isinstance(model, FolderModel)
    assert model.max_long_text_tokens == 0
    assert model.encode_long_text(" ".join(folders.TEXT * 40)) is None


def test_attention_that_computes_all_rows_at_once_reads_no_long_text(tmp_path: Path) -> None:
    fast = folders.make_byte_level(tmp_path, ["<|endoftext|>"], eos="<|endoftext|>", bos="<|endoftext|>")
    config = transformers.GPTJConfig(
        vocab_size=len(fast), n_positions=2048, n_embd=32, n_layer=2, n_head=4, rotary_dim=4
    )
    torch.manual_seed(folders.SEED)
    transformers.GPTJForCausalLM(config).save_pretrained(tmp_path)
    model = load_user_model(f"hf:{tmp_path}")
    assert isinstance(model, FolderModel)
    assert model.max_long_text_tokens == 0
