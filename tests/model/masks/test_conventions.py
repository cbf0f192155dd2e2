"""Every convention against every other, and the code that is shown run against the interfaces themselves."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_mask

from attenscope.masks.conventions import (
    CONVENTIONS,
    ConversionError,
    convert_mask,
    mask_from_boolean,
    mask_to_boolean,
    write_conversion_code,
)
from attenscope.network.attention import MultiHeadAttention
from attenscope.network.config import make_preset_config
from attenscope.network.preset_adapters import PadRowInterface
from attenscope.network.transformer import Transformer

B, H, Q, K, D = 2, 3, 4, 4, 6
SMALL = {"d_model": H * D, "heads": H, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 8}
KEYS_ONLY = {name for name, how in CONVENTIONS.items() if how.layout in ("keys", "lengths")}
KEEP = torch.tensor([[True, True, True, True], [True, True, True, False]])
PADDING = KEEP[:, None, None, :].expand(B, 1, Q, K)
CAUSAL = PADDING & torch.ones(Q, K, dtype=torch.bool).tril()


def masks_for(*names: str) -> list[Tensor]:
    return [PADDING] if KEYS_ONLY & set(names) else [PADDING, CAUSAL]


@pytest.mark.parametrize("target", CONVENTIONS)
def test_any_to_any_and_back_says_the_same(target: str) -> None:
    for source, mask in ((one, mask) for one in CONVENTIONS for mask in masks_for(one, target)):
        given = mask_from_boolean(mask.numpy(), source, H)
        there = convert_mask(given, source, target, H)
        back = mask_to_boolean(there, target, H)
        assert (np.broadcast_to(back, (B, H, Q, K)) == mask.numpy()).all(), source


@pytest.mark.parametrize("target", CONVENTIONS)
def test_the_code_does_what_the_function_does(target: str) -> None:
    for source, mask in ((one, mask) for one in CONVENTIONS for mask in masks_for(one, target)):
        given = torch.from_numpy(mask_from_boolean(mask.numpy(), source, H))
        made = run(write_conversion_code(source, target), given)
        if target == "flex":
            cells = [
                [[[bool(made(b, h, q, k)) for k in range(K)] for q in range(Q)] for h in range(H)] for b in range(B)
            ]
            made = torch.tensor(cells)
        want = mask_to_boolean(mask_from_boolean(mask.numpy(), target, H), target, H)
        assert (np.broadcast_to(mask_to_boolean(made.numpy(), target, H), (B, H, Q, K)) == want).all(), source


@pytest.mark.parametrize("source", CONVENTIONS)
@pytest.mark.parametrize("target", ["torch_attn_mask", "torch_attn_mask_float", "torch_key_padding_mask"])
def test_the_code_gives_the_same_attention_in_multi_head_attention(source: str, target: str) -> None:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(H * D, H, batch_first=True).eval()
    x = torch.randn(B, Q, H * D)
    for mask in masks_for(source, target):
        argument = run(
            write_conversion_code(source, target), torch.from_numpy(mask_from_boolean(mask.numpy(), source, H))
        )
        name = "key_padding_mask" if target == "torch_key_padding_mask" else "attn_mask"
        _, weights = layer(x, x, x, average_attn_weights=False, **{name: argument})
        assert_zero_exactly_where_blocked(weights, mask)


@pytest.mark.parametrize("source", CONVENTIONS)
@pytest.mark.parametrize("target", ["sdpa", "sdpa_float", "hf_4d_sdpa", "hf_4d_eager", "flax"])
def test_the_code_gives_the_same_attention_in_the_fused_kernel(source: str, target: str) -> None:
    torch.manual_seed(0)
    q, k = torch.randn(B, H, Q, D), torch.randn(B, H, K, D)
    identity = torch.eye(K).expand(B, H, K, K)
    for mask in masks_for(source, target):
        argument = run(
            write_conversion_code(source, target), torch.from_numpy(mask_from_boolean(mask.numpy(), source, H))
        )
        weights = F.scaled_dot_product_attention(q, k, identity, attn_mask=argument)
        assert torch.equal(weights, F.scaled_dot_product_attention(q, k, identity, attn_mask=mask))


@pytest.mark.parametrize("source", CONVENTIONS)
def test_the_code_gives_the_same_attention_in_the_preset_pad_row(source: str) -> None:
    """By the attention of this project's own model, called as the published notes call theirs."""
    torch.manual_seed(0)
    config = make_preset_config("pad_row", vocab_size=9, target_vocab_size=9, **SMALL)
    model = Transformer(config).eval()
    attention, x = model.encoder.get_submodule("layers.0.self_attention"), torch.randn(B, Q, H * D)
    assert isinstance(attention, MultiHeadAttention)
    for mask in masks_for(source):
        blocked = run(
            write_conversion_code(source, "pad_row"), torch.from_numpy(mask_from_boolean(mask.numpy(), source, H))
        )
        assert blocked.shape == (B, Q, K)
        context, weights = PadRowInterface.attend(attention, x, x, blocked)
        assert_zero_exactly_where_blocked(weights, mask)
        torch.testing.assert_close(context, attention(x, x, mask))


def test_the_code_gives_the_same_attention_in_hugging_face_models() -> None:
    """Padding as two axes and as four, by both kernels of a tiny BERT."""
    sizes: dict[str, Any] = {
        "hidden_size": H * D,
        "num_attention_heads": H,
        "num_hidden_layers": 1,
        "intermediate_size": 8,
    }
    config = transformers.BertConfig(vocab_size=9, **sizes)
    torch.manual_seed(0)
    ids, found = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 0]]), []
    state = transformers.BertModel(config).eval().state_dict()
    for kernel, target in (("eager", "hf_2d"), ("sdpa", "hf_2d"), ("sdpa", "hf_4d_sdpa"), ("eager", "hf_4d_eager")):
        model = transformers.BertModel._from_config(config, attn_implementation=kernel).eval()
        model.load_state_dict(state)
        argument = run(write_conversion_code("sdpa", target), PADDING)
        found.append(model(ids, attention_mask=argument).last_hidden_state[KEEP])
    assert all(torch.allclose(one, found[0], atol=1e-6) for one in found[1:])


def test_flex_attention_and_cumulative_lengths_run_as_converted() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(B, H, Q, D) for _ in range(3))
    want = F.scaled_dot_product_attention(q, k, v, attn_mask=PADDING)
    made = create_mask(run(write_conversion_code("sdpa", "flex"), PADDING), B, H, Q, K, device="cpu")
    assert torch.equal(made, PADDING.expand(B, H, Q, K))
    ends = run(write_conversion_code("sdpa", "flash"), PADDING).tolist()
    for sample, (start, end) in enumerate(pairwise(ends)):
        real = slice(0, end - start)  # a sequence of its own, as a kernel for unpadded batches sees it
        parts = [one[sample : sample + 1, :, real] for one in (q, k, v)]
        alone = F.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        torch.testing.assert_close(alone[0], want[sample, :, real])


@pytest.mark.parametrize("target", ["annotated", "old_tf", "fairseq_attn", "keras"])
def test_the_formulas_of_the_other_libraries_block_the_same_cells(target: str) -> None:
    torch.manual_seed(0)
    scores = torch.randn(B, H, Q, K)
    argument = run(write_conversion_code("sdpa", target), CAUSAL)
    filled = {
        "annotated": lambda: scores.masked_fill(argument == 0, -1e9),
        "old_tf": lambda: scores + argument * -1e9,
        "fairseq_attn": lambda: scores.masked_fill(argument.bool(), -1e8),
        "keras": lambda: scores + (1.0 - argument[:, None].float()) * -1e9,
    }[target]()
    assert_zero_exactly_where_blocked(filled.softmax(-1), CAUSAL)


def test_a_key_mask_cannot_hold_a_causal_one() -> None:
    with pytest.raises(ConversionError, match="only say which keys"):
        convert_mask(CAUSAL.numpy(), "sdpa", "hf_2d")


def test_left_padding_has_no_lengths() -> None:
    with pytest.raises(ConversionError, match="at the right"):
        mask_from_boolean(np.array([False, True])[None, None, None], "flash")


@pytest.mark.parametrize(
    ("array", "source"),
    [
        (np.ones((2, 2)), "sdpa_float"),
        (np.full((2, 2), np.nan), "sdpa_float"),
        (np.array([[0, 2]]), "hf_2d"),
        (np.ones((5, 2, 2), bool), "torch_attn_mask"),
        (np.ones(3, bool), "sdpa"),
        (np.array([3, 1]), "flash"),
        (np.ones((2, 2), bool), "nonsense"),
    ],
)
def test_what_is_not_of_the_convention_is_refused_with_a_sentence(array: np.ndarray, source: str) -> None:
    with pytest.raises(ConversionError, match=r"\w+ .*\."):
        mask_to_boolean(array, source, heads=3)


def run(lines: str, given: Tensor) -> Any:
    """The value of the last name that the code sets."""
    names: dict[str, Any] = {"torch": torch, "given": given, "batch": B, "heads": H, "queries": Q}
    exec(lines, names)
    return names[lines.splitlines()[-1].split(" = ")[0]]


def assert_zero_exactly_where_blocked(weights: Tensor, mask: Tensor) -> None:
    assert torch.equal(weights > 0, mask.expand(B, H, Q, K))
