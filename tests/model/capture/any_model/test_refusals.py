"""When nothing was captured, the sentence says why: what the model is, what ran, and what can be done."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attenscope.capture.attention import capture_attention
from attenscope.trace import TraceError
from tests.model.capture.any_model.models import Mixers
from tests.model.capture.any_model.test_hugging_face import SOURCE

X = torch.randn(1, 2, 4, 8)


class Kernel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(self.q(x), x, x)


def refusal(model: nn.Module, run: Any) -> str:
    with torch.no_grad(), capture_attention(model) as capture:
        run()
    with pytest.raises(TraceError) as refused:
        _ = capture.trace
    return str(refused.value)


def test_a_model_that_did_not_run() -> None:
    assert "nothing of this Kernel ran inside the block" in refusal(Kernel(), lambda: None)


def test_a_model_that_ran_in_another_thread() -> None:
    model = Kernel()

    def elsewhere() -> None:
        thread = threading.Thread(target=lambda: model(X))
        thread.start()
        thread.join()

    assert "what runs in another thread or process is not seen" in refusal(model, elsewhere)


def test_a_model_that_ran_without_any_softmax() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    assert "this Sequential ran, but called no softmax" in refusal(model, lambda: model(X))
    model = nn.Sequential(nn.Linear(8, 8), Mixers())
    assert "If a module returns attention weights, name it" in refusal(model, lambda: model(X[0]))


def test_programs_that_run_past_python() -> None:
    exported = torch.export.export(Kernel(), (X,)).module()
    assert "is an exported program" in refusal(exported, lambda: exported(X))
    with pytest.warns(DeprecationWarning, match=r"torch\.jit"):
        traced = torch.jit.trace(Kernel(), (X,))
    assert "is scripted or traced by torch.jit" in refusal(traced, lambda: traced(X))


@pytest.mark.parametrize(
    ("name", "config", "layers"),
    [("FNetModel", "FNetConfig", "FNet"), ("MambaModel", "MambaConfig", "Mamba"), ("RwkvModel", "RwkvConfig", "Rwkv")],
)
def test_models_without_attention_weights(name: str, config: str, layers: str) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64}
    model = getattr(transformers, name)(getattr(transformers, config)(**sizes)).eval()
    assert f"layers of {layers} have no attention weights" in refusal(model, lambda: model(SOURCE))


def test_prophetnet_has_no_cache_that_keeps_a_window() -> None:
    transformers = pytest.importorskip("transformers")
    sides = {f"num_{side}_{what}": number for side in ("encoder", "decoder") for what, number in (("layers", 1),)}
    sides |= {f"num_{side}_attention_heads": 4 for side in ("encoder", "decoder")}
    sides |= {f"{side}_ffn_dim": 64 for side in ("encoder", "decoder")}
    config = transformers.ProphetNetConfig(vocab_size=50, hidden_size=32, ngram=2, **sides)
    model = transformers.ProphetNetModel(config).eval()
    with torch.no_grad(), capture_attention(model) as capture:
        model(SOURCE[:1], decoder_input_ids=SOURCE[:1, :3])
    assert set(capture.trace.maps) == {"encoder", "cross"}
    assert "decoder.layers.0.self_attn (axis -1 of (1, 2, 4, 3, 6), 4 heads)" in capture.observer_effect


def test_windows_of_an_image_are_no_batch() -> None:
    transformers = pytest.importorskip("transformers")
    how = {"image_size": 16, "patch_size": 2, "embed_dim": 16, "depths": [2], "num_heads": [2], "window_size": 4}
    model = transformers.SwinModel(transformers.SwinConfig(**how)).eval()
    image = torch.randn(1, 3, 16, 16)
    said = refusal(model, lambda: model(image))
    assert said == (
        "A trace is of one sentence, but its attention is within windows, [4] of one image, each a sample: use "
        ".sample(i)."
    )
    with torch.no_grad(), capture_attention(model) as capture:
        model(image)
    assert capture.sample(3).maps.popitem()[1].weights.shape == (2, 2, 16, 16)
