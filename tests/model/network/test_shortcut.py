"""Decoding past the modules' calls: the same digits, and never past anybody who looks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn

from attenscope import fast_linear
from attenscope.decoding.beam import beam_search
from attenscope.decoding.greedy_and_sampling import decode_greedily
from attenscope.fast_linear import reorder_linear_weights
from attenscope.network import transformer
from attenscope.network.attention import force_attention_path
from attenscope.network.config import PRESETS, make_preset_config
from attenscope.network.hooks import declare_observer, hook_outputs
from attenscope.network.transformer import Transformer, can_use_decoder_shortcut, make_decoder_shortcut

SIZES = {"d_model": 32, "heads": 4, "feed_forward": 48, "encoder_layers": 2, "decoder_layers": 2}
CPU = torch.device("cpu")


@pytest.fixture(autouse=True, params=[True, False], ids=["of AMD", "of another"])
def processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_linear, "is_onednn_faster", lambda: request.param)


def small(name: str, laid_out: bool = True) -> Transformer:
    torch.manual_seed(1)
    model = Transformer(make_preset_config(name, vocab_size=90, target_vocab_size=90, **SIZES)).eval()
    if laid_out:
        reorder_linear_weights(model)
    return model


def sources(rows: int) -> Tensor:
    source = torch.randint(5, 90, (rows, 9))
    source[1:, 7:] = 0
    return source


@contextmanager
def by_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setattr(transformer, "can_use_decoder_shortcut", lambda device: False)
        yield


@pytest.mark.parametrize("laid_out", [True, False])
@pytest.mark.parametrize("name", PRESETS)
def test_every_digit_of_a_greedy_decoding_is_the_same(
    name: str, laid_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, source = small(name, laid_out), sources(1)
    found = list(decode_greedily(model, source, 12))
    with by_modules(monkeypatch):
        assert list(decode_greedily(model, source, 12)) == found


@pytest.mark.parametrize("name", PRESETS)
def test_every_digit_of_a_beam_search_is_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, source = small(name), sources(3)
    *_, found = beam_search(model, source, 4, max_tokens=12)
    with by_modules(monkeypatch):
        *_, expected = beam_search(model, source, 4, max_tokens=12)
    assert [found.best(row) for row in range(3)] == [expected.best(row) for row in range(3)]


def test_a_step_is_taken_past_the_modules_only_where_nobody_looks() -> None:
    with torch.no_grad():
        assert can_use_decoder_shortcut(CPU)
        with declare_observer(object()):
            assert not can_use_decoder_shortcut(CPU)
        with force_attention_path("fused"):
            assert not can_use_decoder_shortcut(CPU)
    assert not can_use_decoder_shortcut(CPU)


def test_there_is_no_way_past_a_hook_or_through_layers_in_training() -> None:
    layers = small("pad_row").decoder.layers
    assert make_decoder_shortcut(layers)
    handle = layers[1].get_submodule("cross_attention.weights").register_forward_hook(lambda *_: None)
    assert not make_decoder_shortcut(layers)
    handle.remove()
    assert not make_decoder_shortcut(layers.train())
    everywhere = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert not make_decoder_shortcut(layers.eval())
    finally:
        everywhere.remove()
    assert make_decoder_shortcut(layers)


def test_a_decoding_that_is_looked_at_halfway_is_seen_from_there_on() -> None:
    model = small("pad_row")
    seen: list[torch.Size] = []

    def look(weights: Tensor) -> None:
        seen.append(weights.shape)

    steps = decode_greedily(model, sources(1), 8)
    next(steps), next(steps)
    with hook_outputs({model.get_submodule("decoder.layers.0.cross_attention.weights"): look}):
        next(steps)
    assert seen == [(1, 4, 1, 9)]
    next(steps)
    assert len(seen) == 1
