"""The recipes of the documents, executed as they stand there, and what a training is like while it is watched."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F

import attenscope
from attenscope.capture.training_watch import watch
from attenscope.trace import AttentionTrace, TraceError

PAGE = Path(__file__).resolve().parents[3] / "docs" / "recipes.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
TRAINING, TRAINER, GENERATION, SOFTMAX, VISION = BLOCKS


class Small(nn.Module):
    """An encoder with dropout, whose training depends on torch's random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 8)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.3, batch_first=True), 2)
        self.out = nn.Linear(8, 9)

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.encoder(self.embed(ids)))


class Mixer(nn.Module):
    """Attention, in a module whose name does not say so."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (one.unflatten(-1, (2, 4)).transpose(1, 2) for one in (self.q(x), self.k(x), x))
        return ((q @ k.transpose(-1, -2)).softmax(-1) @ v).transpose(1, 2).flatten(2)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mixer = Mixer()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mixer(x)


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, x: Tensor) -> Tensor:
        mixed: Tensor = self.blocks(x)
        return mixed


def run(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **names: Any) -> dict[str, Any]:
    monkeypatch.chdir(folder)
    names |= {"attenscope": attenscope, "transformers": transformers}
    exec(compile(code, str(PAGE), "exec"), names)
    return names


def trained(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Small, Tensor]:
    torch.manual_seed(0)
    model = Small()
    x = torch.tensor([[1, 2, 3]])
    batches = [(torch.randint(9, (4, 3)), torch.randint(9, (4, 3))) for _ in range(45)]
    loss_of = lambda logits, target: F.cross_entropy(logits.flatten(0, 1), target.flatten())  # noqa: E731
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    run(code, folder, monkeypatch, model=model, x=x, batches=batches, loss_of=loss_of, optimizer=optimizer)
    return model, x


@pytest.mark.sweep
def test_a_training_is_watched_and_goes_on_as_if_it_were_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = TRAINING.replace("every=500", "every=20")
    model, x = trained(code, tmp_path, monkeypatch)
    alone = "".join(line for line in code.splitlines(keepends=True) if "watch" not in line)
    unwatched, _ = trained(alone, tmp_path, monkeypatch)
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), unwatched.parameters(), strict=True))
    files = sorted((tmp_path / "my-run").iterdir())
    assert [path.name for path in files] == [f"step-{step:07d}.safetensors" for step in (0, 20, 40)]
    traces = [AttentionTrace.load(path) for path in files]
    assert [trace.settings["step"] for trace in traces] == [0, 20, 40]
    assert all(trace.maps["encoder"].key_tokens == ("one", "two", "three") for trace in traces)
    assert not np.array_equal(traces[0].maps["encoder"].weights, traces[2].maps["encoder"].weights)
    watched = watch(model, lambda: model(x), to=tmp_path / "after")
    with torch.no_grad(), attenscope.capture_attention(model.eval()) as capture:
        model(x)
    np.testing.assert_array_equal(watched.record().maps["encoder"].weights, capture.trace.maps["encoder"].weights)


def test_the_modes_of_modules_stay(tmp_path: Path) -> None:
    model = Small().train()
    model.encoder.layers[0].eval()
    before = [module.training for module in model.modules()]
    watch(model, lambda: model(torch.tensor([[1, 2]])), to=tmp_path)
    assert [module.training for module in model.modules()] == before


def test_a_trainer_calls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Small()
    watched = watch(model, lambda: model(torch.tensor([[1, 2]])), every=2, to=tmp_path)
    names = run(TRAINER, tmp_path, monkeypatch, watched=watched)
    handler = transformers.trainer_callback.CallbackHandler([names["Watch"]()], model, None, None, None)
    state, control = transformers.TrainerState(), transformers.TrainerControl()
    for step in (1, 2, 3, 4):
        state.global_step = step
        handler.on_step_end(SimpleNamespace(), state, control)
    assert sorted(path.name[5:12] for path in tmp_path.iterdir()) == ["0000000", "0000002", "0000004"]


@pytest.mark.sweep
def test_generation_with_a_cache_is_one_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_head=2, n_embd=8, n_layer=2, vocab_size=30, eos_token_id=29, pad_token_id=28)
    language_model = transformers.GPT2LMHeadModel(config).eval()
    prompt = torch.tensor([[3, 4, 5]])
    names = run(GENERATION, tmp_path, monkeypatch, language_model=language_model, prompt=prompt)
    decoder, ids = names["capture"].trace.decoder, names["ids"]
    copied = copy.deepcopy(language_model)
    copied.set_attn_implementation("eager")
    with torch.no_grad():
        whole = copied(ids[:, :-1], output_attentions=True).attentions
    np.testing.assert_allclose(decoder.weights, np.stack([one[0].numpy() for one in whole]), atol=1e-5)
    assert decoder.key_tokens == tuple(str(one) for one in ids[0, :-1].tolist())


def test_a_softmax_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run(SOFTMAX, tmp_path, monkeypatch, mixer_model=Mixed().eval(), x=torch.randn(1, 5, 8))
    assert names["capture"].trace.decoder.layer_paths == ("blocks.0.mixer", "blocks.1.mixer")


def test_a_vision_model_has_patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[str, Any] = {
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    vision_model = transformers.ViTModel(transformers.ViTConfig(**sizes, image_size=8, patch_size=2)).eval()
    names = run(VISION, tmp_path, monkeypatch, vision_model=vision_model, image=torch.randn(1, 3, 8, 8))
    encoder = names["capture"].trace.encoder
    assert encoder.weights.shape == (2, 2, 17, 17)
    assert encoder.key_tokens[:3] == ("class", "1,1", "1,2")


def test_what_cannot_be_watched_is_refused_at_once(tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    with pytest.raises(TraceError, match="Nothing was captured"):
        watch(model, lambda: model(torch.ones(1, 2)), to=tmp_path)
    with pytest.raises(ValueError, match="every=0"):
        watch(model, lambda: None, every=0, to=tmp_path)
