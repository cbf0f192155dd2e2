"""Attention blocks found from outside: those of our own models, where both are known, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from attenscope.attribution.alti_and_leave_one_out import compute_alti_shares, make_block_stacks
from attenscope.attribution.block_detection import find_attention_blocks, record_repeatable_pass
from attenscope.attribution.methods import compute_last_self_and_cross_norms, record_target_pass
from attenscope.attribution.target import AttributionError, make_piece_target
from attenscope.runnable_model import LocalModel
from attenscope.text.words import TokenNames
from attenscope.translate import Translator
from tests.model.attribution.test_foreign import Mixed, Stranger, local


def test_of_our_own_models_they_are_the_recorded_ones(any_translator: Translator) -> None:
    translation = any_translator.translate("a cat finds the tree.", capture=False)
    target = make_piece_target(any_translator, translation, 2)
    source, inputs = torch.tensor([target.source_ids]), torch.tensor([target.input_ids])

    def run(text: str) -> TokenNames:
        any_translator.model(source, inputs)
        return {"source": target.source_tokens, "target": target.prefix_tokens}

    found = find_attention_blocks(record_repeatable_pass(LocalModel("ours", any_translator.model, run), ""), 2)
    expected = make_block_stacks(record_target_pass(any_translator.model, target))
    for ours, theirs in zip(expected[0] + expected[1], found[0] + found[1], strict=True):
        assert ours.kind == theirs.kind
        for name in ("vectors", "before", "after", "contributions"):
            torch.testing.assert_close(getattr(theirs, name), getattr(ours, name), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(compute_alti_shares(*found), compute_alti_shares(*expected), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(
        compute_last_self_and_cross_norms(found[1]),
        compute_last_self_and_cross_norms(expected[1]),
        atol=1e-5,
        rtol=1e-4,
    )


@pytest.mark.parametrize("folder", ["Marian", "Bart", "M2M100", "T5"])
def test_the_parts_of_a_block_of_transformers_add_up(folder: str) -> None:
    """What a block reads, by key, is what it adds: the stream behind it less the one before, in a pre-norm model."""
    transformers = pytest.importorskip("transformers")
    blocks = find_attention_blocks(record_repeatable_pass(_of_transformers(transformers, folder), "hello"), 1)
    assert [len(one) for one in blocks] == [2, 4]
    for block in blocks[0] + blocks[1]:
        whole = block.before + block.vectors.sum(1) + (0 if block.bias is None else block.bias)
        behind = whole if block.norm is None else block.norm(whole.float()).double()
        torch.testing.assert_close(behind, block.after, atol=1e-5, rtol=1e-4)
        assert (block.norm is not None) == (folder in ("Marian", "Bart"))
    own, source = compute_alti_shares(*blocks)
    torch.testing.assert_close(own.sum(1) + source.sum(1), torch.ones(4, dtype=torch.float64))
    assert float(own.triu(1).abs().max()) == 0


def _of_transformers(transformers: Any, name: str) -> LocalModel:
    ids = {"vocab_size": 50, "d_model": 16, "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0}
    if name == "T5":
        sizes = {"d_kv": 8, "num_heads": 2, "num_layers": 2, "num_decoder_layers": 2, "d_ff": 32}
    else:
        heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
        layers = {"encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
        sizes = heads | layers | {"max_position_embeddings": 64, "bos_token_id": 1}
    body = {"Marian": "MTModel"}.get(name, "ForConditionalGeneration")
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}{body}")(getattr(transformers, f"{name}Config")(**ids, **sizes)).eval()

    def run(text: str) -> TokenNames:
        source, fed = torch.tensor([[3 + ord(sign) % 40 for sign in text] + [2]]), torch.tensor([[0, 9, 8, 7]])
        model(input_ids=source, decoder_input_ids=fed)
        return {"source": [*text, "</s>"], "target": ["<s>", "a", "b", "c"]}

    return LocalModel(name, model, run)


class Doubled(nn.MultiheadAttention):
    """Attention that adds twice what its output projection makes."""

    def forward(self, *given: Any, **named: Any) -> Any:
        output, weights = super().forward(*given, **named)
        return 2 * output, weights


def test_positions_that_are_mixed_beside_attention_are_refused() -> None:
    with pytest.raises(AttributionError, match="positions are mixed beside its attention"):
        find_attention_blocks(record_repeatable_pass(local(Mixed()), "hello"), 1)


def test_a_sum_that_no_norm_reads_is_refused() -> None:
    model = Stranger()
    layer: Any = model.body.decoder.layers[0]
    layer.norm2 = nn.Identity()
    with pytest.raises(AttributionError, match=r"decoder.layers.0.multihead_attn adds is added to no stream"):
        find_attention_blocks(record_repeatable_pass(local(model), "hello"), 1)


def test_what_is_scaled_behind_its_projection_is_refused() -> None:
    model = Stranger()
    layer: Any = model.body.decoder.layers[0]
    layer.self_attn = Doubled(16, 2, batch_first=True)
    with pytest.raises(AttributionError, match="cannot be followed"):
        find_attention_blocks(record_repeatable_pass(local(model), "hello"), 1)
