"""What attention makes of distances, beside formulas written down here once more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attenscope.runnable_model import RunnableModel
from attenscope.user_model import load_user_model
from tests.folders import GROUPED_QUERIES, SPECIAL, SPECIAL_NAMES, make_byte_level

pytest.importorskip("transformers")
pytestmark = pytest.mark.timeout(600)


def open_decoder(folder: Path, name: str, **settings: Any) -> Any:
    """A decoder of random weights by the name of its configuration."""
    import transformers

    folder.mkdir()
    tokenizer = make_byte_level(folder, SPECIAL, closes=False, **SPECIAL_NAMES)
    torch.manual_seed(3)
    config = getattr(transformers, f"{name}Config")(
        vocab_size=len(tokenizer), pad_token_id=0, bos_token_id=1, eos_token_id=2, **settings
    )
    getattr(transformers, f"{name}ForCausalLM")(config).save_pretrained(folder)
    return load_user_model(f"hf:{folder}")


def test_rotary_positions_turn_queries_against_keys(opened: Callable[[str], RunnableModel]) -> None:
    model: Any = opened("llama")
    (found,) = model.distances
    assert (found.form, found.facts["base"], found.facts["dimensions"]) == ("rotary", 10_000, 8)
    assert found.error < 1e-5
    alone = model.model.model
    layer, token = alone.model.layers[0], 7
    with torch.no_grad():
        hidden = layer.input_layernorm(alone.model.embed_tokens(torch.tensor([token])))
        query = layer.self_attn.q_proj(hidden).view(4, 8)
        key = layer.self_attn.k_proj(hidden).view(2, 8).repeat_interleave(2, 0)
    own = [complex_product(query, key, distance) for distance in range(64)]
    expected = (np.stack(own, 1) - own[0][:, None]) / np.sqrt(8)
    from attenscope.hugging_face.distances import measure_distance_scores

    (found,) = measure_distance_scores(model.model, token)
    assert np.abs(found.measured - expected).max() < 1e-5


def complex_product(query: torch.Tensor, key: torch.Tensor, distance: int) -> np.ndarray:
    """Pairs as complex numbers: what is left of two turns is one turn by the distance."""
    one, other = (rows[:, :4].numpy() + 1j * rows[:, 4:].numpy() for rows in (query, key))
    turn = np.exp(1j * distance * 10_000.0 ** (-np.arange(4) / 4))
    return (one * turn * other.conj()).real.sum(-1)


@pytest.mark.parametrize(("name", "heads"), [("Bloom", 4), ("Bloom", 6), ("Mpt", 6)])
def test_alibi_takes_a_slope_for_every_token(tmp_path: Path, name: str, heads: int) -> None:
    sizes = {"hidden_size": 48, "n_layer": 2, "n_head": heads, "d_model": 48, "n_layers": 2, "n_heads": heads}
    (found,) = open_decoder(tmp_path / "model", name, **sizes).distances
    assert (found.form, found.facts["factor"]) == ("alibi", pytest.approx(1, abs=1e-3))
    assert found.error < 1e-3
    slopes = {
        ("Bloom", 4): [2**-2, 2**-4, 2**-6, 2**-8],
        ("Bloom", 6): [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3],
        ("Mpt", 6): [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3],
    }
    assert np.abs(found.measured[:, 10] + 10 * np.array(slopes[name, heads])).max() < 1e-3


def test_a_bias_has_a_number_for_each_range_of_distance(opened: Callable[[str], RunnableModel]) -> None:
    model: Any = opened("t5")
    encoder, decoder = model.distances
    assert (encoder.form, decoder.form) == ("bias", "bias")
    table = model.model.model.encoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight.numpy()
    at = {distance: column for column, distance in enumerate(encoder.distances)}
    for distance, bucket in ((1, 1), (7, 7), (8, 8), (11, 8), (12, 9), (-1, 17), (-8, 24), (-12, 25)):
        assert np.abs(encoder.measured[:, at[distance]] - (table[bucket] - table[0])).max() < 1e-5, distance
    assert max(encoder.error, decoder.error) < 1e-5


def test_a_softcap_and_scaled_turns_are_in_the_formula(tmp_path: Path) -> None:
    sizes = {**GROUPED_QUERIES, "head_dim": 8, "initializer_range": 0.8, "attn_logit_softcapping": 5.0}
    (found,) = open_decoder(tmp_path / "gemma", "Gemma2", **sizes).distances
    assert found.form == "rotary"
    assert found.error < 1e-4
    scaled = {"rope_type": "linear", "factor": 4.0, "rope_theta": 10_000.0}
    (found,) = open_decoder(tmp_path / "llama", "Llama", **GROUPED_QUERIES, rope_parameters=scaled).distances
    assert (found.form, found.facts["base"]) == ("rotary", 0)
    assert found.error < 1e-4


def test_a_model_with_a_table_has_none(opened: Callable[[str], RunnableModel]) -> None:
    model: Any = opened("gpt2")
    assert not model.distances
