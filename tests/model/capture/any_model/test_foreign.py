"""Strangers' models: what is recorded is what they computed, and they never notice."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right

from attenscope.capture.any_model.module_kinds import REMARK_MESSAGES
from attenscope.capture.attention import capture_attention
from attenscope.trace import TraceError
from tests.model.capture.any_model.models import (
    AttentionSeq2Seq,
    Block,
    ByMethods,
    Fused,
    Mixers,
    OtherAxes,
    Recurrent,
    RecurrentFused,
    encoder,
    state,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*nested.tensor")  # torch says so of its own encoder
X = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))
PAD = torch.tensor([[False] * 5, [False, False, False, True, True]])


@pytest.mark.parametrize("grad", [False, True], ids=["fast path", "with gradients"])
def test_an_encoder_with_its_fast_path(grad: bool) -> None:
    model = encoder()
    with torch.set_grad_enabled(grad):
        alone, before = model(X, src_key_padding_mask=PAD), state(model)
        with capture_attention(model) as capture:
            watched = model(X, src_key_padding_mask=PAD)
    assert state(model) == before
    torch.testing.assert_close(watched[~PAD], alone[~PAD], atol=1e-6, rtol=0)
    assert (REMARK_MESSAGES["fast-path"] in capture.observer_effect) == (not grad)
    one = capture.sample(1).encoder
    assert one is not None
    assert one.weights.shape == (3, 4, 5, 5)
    assert one.mask.tolist() == [[True, True, True, False, False]] * 5
    assert not one.weights[..., 3:].any()
    layer = model.layers[0].self_attn
    _, asked = layer(X, X, X, key_padding_mask=PAD, average_attn_weights=False)
    np.testing.assert_allclose(one.weights[0], asked[1].detach(), atol=1e-6)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_transformer_has_three_kinds(batch_first: bool, norm_first: bool) -> None:
    torch.manual_seed(0)
    model = nn.Transformer(16, 4, 2, 3, 32, batch_first=batch_first, norm_first=norm_first).eval()
    source, target = (one if batch_first else one.transpose(0, 1) for one in (X, X[:, :4]))
    masks = {"src_key_padding_mask": PAD, "memory_key_padding_mask": PAD}
    causal = model.generate_square_subsequent_mask(4)
    alone = model(source, target, tgt_mask=causal, **masks)
    with capture_attention(model, ["q", "k", "v", "scores", "masked_scores"]) as capture:
        watched = model(source, target, tgt_mask=causal, **masks)
    assert torch.equal(alone, watched)
    trace = capture.sample(1)
    shapes = {kind: one.weights.shape for kind, one in trace.maps.items()}
    assert shapes == {"encoder": (2, 4, 5, 5), "decoder": (3, 4, 4, 4), "cross": (3, 4, 4, 5)}
    assert trace.decoder is not None
    assert trace.cross is not None
    np.testing.assert_array_equal(trace.decoder.mask, np.tri(4, dtype=bool))
    assert trace.cross.mask.tolist() == [[True, True, True, False, False]] * 4
    for one in trace.maps.values():
        scores = one.tensors["q"] @ one.tensors["k"].swapaxes(2, 3) / 2
        np.testing.assert_allclose(one.tensors["scores"], scores, atol=1e-5)
        np.testing.assert_array_equal(np.isinf(one.tensors["masked_scores"]), np.broadcast_to(~one.mask, scores.shape))


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    "how", [{}, {"add_zero_attn": True}, {"add_bias_kv": True}, {"kdim": 6, "vdim": 7}, {"bias": False}], ids=str
)
def test_multi_head_attention_in_all_its_forms(how: dict[str, int], need_weights: bool) -> None:
    """Two ways through torch's code, one asked for its own weights and one not."""
    torch.manual_seed(0)
    model = nn.MultiheadAttention(16, 4, batch_first=True, **how).eval()
    key, value = (torch.randn(2, 5, how.get(name, 16)) for name in ("kdim", "vdim"))
    masks = {"key_padding_mask": PAD, "attn_mask": torch.ones(3, 5).tril(2) == 0}
    with capture_attention(model) as capture:
        output, average = model(X[:, :3], key, value, need_weights=need_weights, **masks)
    alone, weights = model(X[:, :3], key, value, average_attn_weights=False, **masks)
    torch.testing.assert_close(output, alone, atol=1e-6, rtol=0)
    assert (average is not None) == need_weights
    for sample in (0, 1):
        one = capture.sample(sample).cross
        assert one is not None
        np.testing.assert_allclose(one.weights[0], weights[sample].detach(), atol=1e-6)
        np.testing.assert_array_equal(one.mask, weights[sample, 0].detach() > 0)


def test_looking_does_not_turn_an_empty_row_into_nan() -> None:
    """Asked for its weights with gradients on, torch answers NaN; not asked, it does not, and stays so."""
    model = nn.MultiheadAttention(16, 4, batch_first=True).eval()
    empty = torch.ones(1, 5, dtype=torch.bool)
    with capture_attention(model) as capture:
        quiet, _ = model(X[:1], X[:1], X[:1], key_padding_mask=empty, need_weights=False)
    assert torch.isfinite(quiet).all()
    assert not capture.trace.maps.popitem()[1].weights.any()
    with capture_attention(model) as capture:
        asked, _ = model(X[:1], X[:1], X[:1], key_padding_mask=empty)
    assert torch.isnan(asked).all()
    assert np.isnan(capture.trace.maps.popitem()[1].weights).all()


def test_an_unbatched_call_and_a_mask_for_each_head() -> None:
    model = nn.MultiheadAttention(16, 4).eval()
    blocked = torch.rand(4, 5, 5) < 0.3
    blocked[:, range(5), range(5)] = False
    with capture_attention(model) as capture:
        _, weights = model(X[0], X[0], X[0], attn_mask=blocked, average_attn_weights=False)
    one = capture.trace.encoder
    assert one is not None
    np.testing.assert_array_equal(one.weights[0], weights.detach())
    np.testing.assert_array_equal(one.mask, (~blocked).any(0))


def qkv(*lengths: int, heads: int = 2) -> list[Tensor]:
    torch.manual_seed(1)
    return [torch.randn(1, heads, length, 4) for length in lengths]


@pytest.mark.parametrize(
    ("how", "allowed"),
    [
        ({}, np.ones((3, 5))),
        ({"is_causal": True}, np.tri(3, 5)),
        ({"attn_mask": causal_lower_right(3, 5)}, np.tri(3, 5, 2)),
        ({"attn_mask": torch.ones(3, 5).tril() > 0, "scale": 2.0}, np.tri(3, 5)),
        ({"attn_mask": torch.tensor([[0, 0.5, -3, -1e9, -torch.inf]])}, np.array([[1, 1, 1, 0, 0]] * 3)),
    ],
    ids=["full", "causal", "lower right", "boolean", "added"],
)
def test_the_fused_kernel_with_every_sort_of_mask(how: dict[str, object], allowed: np.ndarray) -> None:
    q, k, v = qkv(3, 5, 5)
    model = Fused(**how)
    with capture_attention(model, ["v"]) as capture:
        output = model(q, k, v)
    assert torch.equal(output, Fused(**how)(q, k, v))
    one = capture.trace.maps.popitem()[1]
    np.testing.assert_array_equal(one.mask, allowed.astype(bool))
    np.testing.assert_allclose(one.weights[0] @ one.tensors["v"][0], output[0], atol=1e-6)
    assert "weights times values differ from its output by at most" in capture.observer_effect


def test_keys_of_fewer_heads_and_calls_without_a_head_axis() -> None:
    (q,), (k, v) = qkv(3), qkv(3, 3, heads=1)
    with capture_attention(model := Fused(enable_gqa=True), ["k"]) as capture:
        model(q, k, v)
    assert capture.trace.maps.popitem()[1].tensors["k"].shape == (1, 2, 3, 4)
    with capture_attention(model := Fused()) as capture:
        model(k[:, 0], k[:, 0], v[:, 0])
    assert capture.trace.maps.popitem()[1].weights.shape == (1, 1, 3, 3)


def test_a_model_by_hand_tells_its_three_kinds_and_leaves_other_softmaxes_out() -> None:
    torch.manual_seed(0)
    model = AttentionSeq2Seq()
    source, target = torch.tensor([[3, 4, 5, 0]]), torch.tensor([[1, 6, 7]])
    names = {"source": ["a", "b", "c", "<pad>"], "target": ["<s>", "x", "y"]}
    with capture_attention(model, tokens=names) as capture:
        model(source, target)
    trace = capture.trace
    assert {kind: one.layers for kind, one in trace.maps.items()} == {"encoder": 2, "decoder": 2, "cross": 2}
    assert trace.cross is not None
    assert (trace.cross.query_tokens, trace.cross.key_tokens) == (("<s>", "x", "y"), ("a", "b", "c", "<pad>"))
    assert (trace.source, trace.target) == ("a b c", "x y")
    kept = model.decoder[1].get_submodule("src_attn").kept
    assert isinstance(kept, Tensor)
    np.testing.assert_array_equal(trace.cross.weights[1], kept[0].detach())
    np.testing.assert_array_equal(trace.cross.mask, [[True, True, True, False]] * 3)
    assert capture.observer_effect == REMARK_MESSAGES["unchanged"]


def test_layers_that_are_looped_over_in_other_methods_than_forward() -> None:
    torch.manual_seed(0)
    model = ByMethods()
    source, target = torch.tensor([[3, 4, 5, 6]]), torch.tensor([[1, 6, 7]])
    shapes = {"encoder": (3, 2, 4, 4), "decoder": (2, 2, 3, 3), "cross": (2, 2, 3, 4)}
    with capture_attention(model) as capture:
        for _ in range(2):
            model.decode(target, model.encode(source))
    assert {kind: one.weights.shape for kind, one in capture.trace.maps.items()} == shapes
    with capture_attention(model) as capture:
        model.greedy(source, 3)
    assert {kind: one.weights.shape for kind, one in capture.trace.maps.items()} == shapes
    with capture_attention(model, modules=["encoder.*"]) as capture:
        for _ in range(2):
            model.encode(source)
    assert {kind: one.weights.shape for kind, one in capture.trace.maps.items()} == {"encoder": (3, 2, 4, 4)}


def test_a_free_function_that_calls_a_method_again_makes_runs_of_it() -> None:
    def loop(model: ByMethods) -> None:
        for _ in range(3):
            model.encode(torch.tensor([[3, 4, 5, 6]]))

    with capture_attention(model := ByMethods()) as capture:
        loop(model)
    assert capture.trace.encoder is not None
    assert capture.trace.encoder.weights.shape == (3, 2, 4, 4)


def test_steps_of_other_numbers_of_heads_are_refused_in_a_sentence() -> None:
    model, first = Fused(), qkv(4, 4, 4)
    second = [*qkv(1, heads=4), *qkv(5, 5, heads=4)]
    with capture_attention(model, modules={"*": "decoder"}) as capture:
        model(*first)
        model(*second)
    with pytest.raises(TraceError, match=r"does not stack into layers over 2 steps: .*\(2, 4, 4\).*\(4, 1, 5\)"):
        _ = capture.trace


@pytest.mark.parametrize(("layout", "axis"), [("bqkh", 2), ("bqkh", -2), ("bhkq", 2), ("bkqh", 1), ("bhqk", -1)])
def test_a_softmax_over_any_axis_when_the_heads_are_said(layout: str, axis: int) -> None:
    q, k = torch.randn(1, 3, 4, 8), torch.randn(1, 5, 4, 8)
    with capture_attention(model := nn.ModuleDict({"attention": OtherAxes(layout, axis)})) as capture:
        weights = model["attention"](q, k)
    one = capture.trace.maps.popitem()[1]
    np.testing.assert_array_equal(one.weights, torch.einsum(f"{layout}->bhqk", weights))


@pytest.mark.parametrize(
    ("layout", "axis", "heads", "shape"),
    [
        ("bqkh", 2, 1, r"axis 2 of \(2, 5, 5, 1\)"),
        ("bqkh", 2, 5, r"axis 2 of \(2, 5, 5, 5\)"),
        ("bhqk", 0, 4, r"axis 0 of \(2, 4, 5, 5\)"),
        ("qkh", 1, 4, r"axis 1 of \(5, 5, 4\)"),
        ("bk", -1, 4, r"axis -1 of \(2, 5\)"),
    ],
)
def test_a_softmax_that_cannot_be_read_is_named(layout: str, axis: int, heads: int, shape: str) -> None:
    model = nn.ModuleDict({"attention": OtherAxes(layout, axis, heads)})
    with capture_attention(model, modules=["attention"]) as capture:
        model["attention"](torch.randn(2, 5, heads, 8), torch.randn(2, 5, heads, 8))
    with pytest.raises(TraceError, match=f"Not recorded, .* softmax of attention .{shape}"):
        _ = capture.trace
    assert "Not recorded" in capture.observer_effect


def test_scores_of_one_query_below_each_other_are_a_row() -> None:
    model = OtherAxes("bkq", 1, heads=1)
    with capture_attention(model, modules=["*"]) as capture:
        weights = model(torch.randn(2, 1, 1, 8), torch.randn(2, 5, 1, 8))
    one = capture.sample(1).maps.popitem()[1]
    np.testing.assert_array_equal(one.weights[0, 0], weights[1].T)


@pytest.mark.parametrize("method", ["forward", "greedy"])
def test_an_attention_called_once_a_time_step_is_rows_of_one_layer(method: str) -> None:
    model, keys = Recurrent(), torch.randn(2, 5, 8)
    with capture_attention(model) as capture:
        for steps in (4, 3):
            getattr(model, method)(keys, steps)
    trace = capture.sample(1)
    assert list(trace.maps) == ["cross"]
    assert trace.cross is not None
    assert trace.cross.weights.shape == (1, 1, 3, 5)
    kept = torch.cat(model.attention.kept[4:], -1)
    np.testing.assert_array_equal(trace.cross.weights[0, 0], kept[1].T.detach())


def test_time_steps_of_multi_head_attention_are_rows_with_their_tensors() -> None:
    model, keys = RecurrentFused().eval(), torch.randn(1, 5, 8)
    with capture_attention(model, ["q", "k", "scores"]) as capture:
        model(keys, 3)
    one = capture.trace.cross
    assert one is not None
    assert one.weights.shape == (1, 2, 3, 5)
    np.testing.assert_allclose(one.tensors["scores"], one.tensors["q"] @ one.tensors["k"].swapaxes(2, 3) / 2, atol=1e-5)


def test_a_module_for_each_head_becomes_one_layer() -> None:
    model = nn.Sequential(Block(), Block(), Block())
    with capture_attention(model, modules=["*.heads.*"]) as capture:
        model(torch.randn(1, 4, 8))
    one = capture.trace.decoder
    assert one is not None
    assert one.weights.shape == (3, 2, 4, 4)
    np.testing.assert_array_equal(one.mask, np.tri(4, dtype=bool))


def test_a_softmax_that_nothing_calls_attention_is_named_in_the_refusal() -> None:
    model = nn.Sequential(Block())
    with capture_attention(model) as capture:
        model(torch.randn(1, 4, 8))
    with pytest.raises(TraceError, match=r"A softmax ran in 0\.heads\.0, 0\.heads\.1: if that is attention, name it"):
        _ = capture.trace


def test_any_module_that_one_names_by_what_it_returns() -> None:
    model, before = Mixers(), state(Mixers())
    with capture_attention(model, modules={"blocks.*": "decoder"}) as capture:
        model(torch.randn(1, 4, 8) / 8)
    assert state(model) == before
    one = capture.trace.decoder
    assert one is not None
    assert one.weights.shape == (2, 1, 4, 4)
    np.testing.assert_allclose(one.weights.sum(-1), 1, atol=1e-6)


@pytest.mark.parametrize(
    ("modules", "said"),
    [(["nothing.*"], "No module of this Mixers is named 'nothing"), ({"blocks.*": "sideways"}, "must be one of")],
)
def test_names_that_do_not_exist_are_refused(modules: object, said: str) -> None:
    with pytest.raises(TraceError, match=said), capture_attention(Mixers(), modules=modules):  # type: ignore[arg-type]
        pass


def recorded(model: nn.Module, *inputs: Tensor, **masks: Tensor) -> set[str]:
    with torch.no_grad(), capture_attention(model) as capture:
        model(*inputs, **masks)
    return set(capture.sample(0).maps)


NOTHING, ONE = torch.ones(2, 5).bool(), torch.tensor([[False, True, True, True, True]] * 2)


@pytest.mark.parametrize("blocked", [NOTHING, ONE, ONE.flip(1), PAD])
def test_padding_makes_no_decoder(blocked: Tensor) -> None:
    attention = nn.MultiheadAttention(16, 4, batch_first=True).eval()
    assert recorded(attention, X, X, X, key_padding_mask=blocked) == {"encoder"}
    assert recorded(encoder(), X, src_key_padding_mask=blocked) == {"encoder"}


@pytest.mark.parametrize(
    ("allowed", "kind"),
    [
        (torch.eye(5), "encoder"),
        (torch.zeros(5, 5), "encoder"),
        (torch.ones(1, 1), "encoder"),
        (torch.ones(5, 5), "encoder"),
        (torch.ones(5, 5).triu(), "encoder"),
        (torch.ones(2, 2).tril(), "decoder"),
        (torch.ones(5, 5).tril(), "decoder"),
        (torch.ones(5, 5).tril().triu(-1), "decoder"),
    ],
)
def test_a_stack_alone_is_a_decoder_if_its_mask_shows_it(allowed: Tensor, kind: str) -> None:
    attention = nn.MultiheadAttention(16, 4, batch_first=True).eval()
    x = X[:, : len(allowed)]
    assert recorded(attention, x, x, x, attn_mask=allowed == 0) == {kind}


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_decoder_with_cross_attention_is_one_from_its_first_token_on(length: int) -> None:
    layer = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True)
    model, future = nn.TransformerDecoder(layer, 2).eval(), nn.Transformer.generate_square_subsequent_mask(length)
    assert recorded(model, X[:, :length], X.flip(0), tgt_mask=future) == {"decoder", "cross"}


class PassedOn(nn.Module):
    """A block whose dropout, identity and own module all return the weights once more."""

    class Own(nn.Module):
        def forward(self, weights: Tensor) -> Tensor:
            return weights

    def __init__(self, returned: bool) -> None:
        super().__init__()
        self.returned, self.mixer, self.qk = returned, Mixers().blocks[0], nn.Linear(8, 16)
        self.drop, self.own, self.identity = nn.Dropout(0.1), PassedOn.Own(), nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        if self.returned:
            weights = self.mixer(x)[1]["shares"]
        else:
            q, k = self.qk(x).chunk(2, -1)
            weights = (q @ k.mT).softmax(-1)
        return self.identity(self.own(self.drop(weights))) @ x


@pytest.mark.parametrize("returned", [True, False])
def test_what_passes_weights_on_is_no_layer(returned: bool) -> None:
    """By the pattern that a refusal suggests."""
    model = nn.ModuleDict({"blocks": nn.Sequential(*(PassedOn(returned) for _ in range(3)))}).eval()
    with torch.no_grad(), capture_attention(model, modules=["blocks.*"]) as capture:
        model["blocks"](torch.randn(1, 4, 8) / 8)
    assert capture.trace.maps.popitem()[1].weights.shape == (3, 1, 4, 4)


def test_a_dropout_may_be_named_by_its_full_path() -> None:
    model = PassedOn(True).eval()
    with torch.no_grad(), capture_attention(model, modules=["drop"]) as capture:
        model(torch.randn(1, 4, 8) / 8)
    assert capture.trace.maps.popitem()[1].weights.shape == (1, 1, 4, 4)
