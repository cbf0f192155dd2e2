"""The masks of an architecture without weights, against what the full-size class hands to each of its layers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("transformers")
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from attenscope.cli.architecture_mask import run_mask
from attenscope.hugging_face.masks import (
    IMAGE_MARK,
    ArchitectureMasks,
    build_architecture_masks,
    read_architecture_masks,
    shrink_configuration,
)
from attenscope.runnable_model import LocalError
from bench.apart import run_apart
from tests.model.hugging_face.published_shapes import PUBLISHED

pytestmark = [
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile"),
    pytest.mark.filterwarnings("ignore:_compile flag"),
    pytest.mark.filterwarnings("ignore:`torch.jit"),
]
WORDS = [
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "a",
    "lazy",
    "dog",
    "while",
    "it",
    "rains",
    "and",
    "nobody",
    "looks",
]
LENGTHS = {"gpt-oss": 140, "modernbert": 150, "gemma3": 1040}
"""Tokens of a longer text, on which the windows show."""


def draw_text(name: str, seed: int) -> list[str]:
    generator = np.random.default_rng(seed)
    count = LENGTHS.get(name, 60) if seed == 0 else int(generator.integers(1, 40))
    words = generator.choice(WORDS, count).tolist()
    if name == "gemma3" and count > 3:
        first = int(generator.integers(0, count - 2))
        end = int(generator.integers(first + 2, min(count, first + 12) + 1))
        words[first:end] = [IMAGE_MARK] * (end - first)
    return words


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(PUBLISHED[request.param]))
    return tmp_path


def configuration(folder: Path) -> PreTrainedConfig:
    config: PreTrainedConfig = AutoConfig.from_pretrained(folder, local_files_only=True)
    return config


class Layer(nn.Module):
    """A layer of a full-size model without its weights: it notes the masks that it is given, and passes states on."""

    def __init__(self, tuples: bool, more: dict[str, Any]) -> None:
        super().__init__()
        self.tuples = tuples
        self.given: dict[str, Any] = {}
        for name, value in more.items():
            setattr(self, name, value)

    def forward(self, states: Tensor, *args: Any, **given: Any) -> Any:
        masks = [one for one in args if isinstance(one, Tensor) and one.dim() == 4]
        self.given = {"attention_mask": masks[0] if masks else None, "encoder_attention_mask": None} | given
        if len(masks) > 1:
            self.given["encoder_attention_mask"] = masks[1]
        return (states, None, None) if self.tuples else states


class Nothing(nn.Module):
    """Any other module: states of the right width, or what it is given."""

    def __init__(self, width: int = 0) -> None:
        super().__init__()
        self.width = width

    def forward(self, *args: Tensor, **more: Any) -> Tensor:
        given = args[0] if args else next(one for one in more.values() if isinstance(one, Tensor))
        return torch.zeros(*given.shape, self.width) if self.width else given


class Rotation(nn.Module):
    def forward(self, states: Tensor, *args: Any, **more: Any) -> tuple[Tensor, Tensor]:
        return torch.zeros(1), torch.zeros(1)


def hollow_out(
    stack: nn.Module, layers: str, embeddings: tuple[str, ...], width: int, tuples: bool = False
) -> list[Layer]:
    """Put notes in the place of all layers of a stack on the meta device, and nothing in that of all other modules."""
    kept = ("attention_type", "is_sliding", "self_attn", "layer_type")
    made = [
        Layer(tuples, {name: getattr(one, name) for name in kept if isinstance(getattr(one, name, None), str | bool)})
        for one in getattr(stack, layers)
    ]
    setattr(stack, layers, nn.ModuleList(made))
    for name, module in list(stack.named_children()):
        if name == layers:
            continue
        plain = Rotation() if "rotary" in name else Nothing(width if name in embeddings else 0)
        setattr(stack, name, plain if not isinstance(module, nn.ModuleList) else nn.ModuleList())
    return made


@torch.no_grad()
def full_size_masks(folder: Path, tokens: list[str]) -> dict[tuple[str, int], np.ndarray]:
    """The masks (Q, K) that the class of full size hands to each layer, by side and number; all open where none is."""
    config = configuration(folder)
    config._attn_implementation = "eager"
    import transformers

    kind: type[PreTrainedModel] = getattr(transformers, config.architectures[0])
    with torch.device("meta"):
        model: Any = kind._from_config(config, attn_implementation="eager").eval()
    ids = torch.tensor([[7 if one == IMAGE_MARK else 5 for one in tokens]])
    text, count = config.get_text_config(decoder=True), len(tokens)
    found: dict[tuple[str, int], np.ndarray] = {}

    def note(side: str, layers: list[Layer], queries: int, keys: int, name: str = "attention_mask") -> None:
        for at, layer in enumerate(layers):
            mask = layer.given.get(name)
            found[side, at] = np.ones((queries, keys), bool) if mask is None else open_cells(mask)

    if config.model_type == "t5":
        encoder = hollow_out(model.encoder, "block", (), 0, tuples=True)
        decoder = hollow_out(model.decoder, "block", (), 0, tuples=True)
        states = torch.zeros(1, count, 8)
        model.encoder(inputs_embeds=states, attention_mask=torch.ones_like(ids))
        model.decoder(
            inputs_embeds=states,
            encoder_hidden_states=states,
            encoder_attention_mask=torch.ones_like(ids),
            use_cache=False,
        )
        note("encoder", encoder, count, count)
        note("decoder", decoder, count, count)
        note("cross", decoder, count, count, "encoder_attention_mask")
    elif config.model_type == "whisper":
        stack, frames = model.model.decoder, config.max_source_positions
        layers = hollow_out(stack, "layers", ("embed_tokens",), 8)
        stack.embed_positions = Nothing()
        stack.embed_positions.forward = lambda *args, **more: torch.zeros(1)
        stack(input_ids=ids, encoder_hidden_states=torch.zeros(1, frames, 8), use_cache=False)
        encoder = hollow_out(model.model.encoder, "layers", (), 0)
        note("encoder", encoder, frames, frames)  # it takes no mask at all
        note("decoder", layers, count, count)
        note("cross", layers, count, frames, "encoder_attention_mask")
    elif config.model_type == "gemma3":
        layers = hollow_out(model.model.language_model, "layers", ("embed_tokens",), 8)
        embeds = torch.zeros(1, count, 8)
        model.model(
            inputs_embeds=embeds, attention_mask=torch.ones_like(ids), token_type_ids=(ids == 7).long(), use_cache=False
        )
        note("decoder", layers, count, count)
    elif config.model_type == "modernbert":
        layers = hollow_out(model.model, "layers", ("embeddings",), 8)
        model.model(input_ids=ids, attention_mask=torch.ones_like(ids))
        note("encoder", layers, count, count)
    else:
        layers = hollow_out(model.model, "layers", ("embed_tokens",), 8)
        model.model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False)
        note("decoder", layers, count, count)
    assert text is not None
    return found


def open_cells(mask: Tensor) -> np.ndarray:
    return (mask[0, 0] if mask.dtype == torch.bool else mask[0, 0] > -1).numpy()


def check(folder: Path, tokens: list[str], kernels: tuple[str, ...]) -> ArchitectureMasks:
    """Compare all masks cell by cell; return those of the small model."""
    found = build_architecture_masks(configuration(folder), tokens, kernels)
    whole = full_size_masks(folder, tokens)
    seen = set()
    for one in found.masks:
        for layer in one.layers:
            np.testing.assert_array_equal(
                one.allowed, whole[one.map, layer], err_msg=f"{one.map} {layer} {one.kernels}"
            )
            seen.add((one.map, layer))
        assert one.diagnosis is not None
        assert one.diagnosis.verdict == "sound", (one.meant, one.words, one.diagnosis.findings)
    assert seen == set(whole)
    return found


@pytest.mark.parametrize("folder", PUBLISHED, indirect=True, ids=str)
def test_each_kind_of_layer_has_the_mask_of_the_full_size_class(folder: Path, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["folder"]
    for seed in (0, 1):
        check(folder, draw_text(name, seed), ("eager", "sdpa"))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("folder", PUBLISHED, indirect=True, ids=str)
def test_on_fifty_texts_by_every_kernel(folder: Path, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["folder"]
    for seed in range(50):
        found = check(folder, draw_text(name, seed), ("eager", "sdpa", "flex_attention"))
        assert (set(found.left_out) == set()) == (name != "gpt-oss")


MEASURED = """
import sys, time
from pathlib import Path
from attenscope.hugging_face.masks import read_architecture_masks

begun = time.process_time()
read_architecture_masks(Path(sys.argv[1]), sys.argv[2])
print(time.process_time() - begun)
"""
MOST_SECONDS, MOST_MEGABYTES = 5, 1000


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone says what a process had at most")
@pytest.mark.parametrize("folder", PUBLISHED, indirect=True, ids=str)
def test_the_largest_sizes_take_little_time_and_memory(folder: Path) -> None:
    (seconds,), megabytes = run_apart(MEASURED, str(folder), " ".join(draw_text("", 0)))
    assert float(seconds) < MOST_SECONDS
    assert megabytes < MOST_MEGABYTES


@pytest.mark.parametrize("folder", ["gemma3"], indirect=True)
def test_the_command_draws_judges_and_writes_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import argparse

    text = "look at <image> <image> now"
    asked = argparse.Namespace(model=f"hf:{folder}", text=text, kernel=["eager"], json=False)
    assert run_mask(asked) == 0
    said = capsys.readouterr().out
    assert "decoder, full_attention, layers 6, 12, 18" in said
    assert "  <image> ■ ■ ■ ■ ⬚\n" in said
    assert "“causal+window:1024+span:3-4” is the same as “causal+span:3-4”" not in said  # two tokens are no known span
    asked.json = True
    assert run_mask(asked) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["tokens"] == text.split()
    assert {one["verdict"] for one in facts["masks"]} == {"sound"}


@pytest.mark.parametrize("folder", PUBLISHED, indirect=True, ids=str)
def test_a_small_model_is_small(folder: Path) -> None:
    import transformers

    config = configuration(folder)
    small = shrink_configuration(config, ["full_attention"])
    kind: type[PreTrainedModel] = getattr(transformers, config.architectures[0])
    with torch.device("meta"):
        assert sum(one.numel() for one in kind._from_config(small).parameters()) < 1_000_000


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"model_type": "none"}', '{"model_type": "llama", "vocab_size": "x"}']
)
def test_what_is_no_configuration_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(LocalError):
        read_architecture_masks(tmp_path, "a b")
    with pytest.raises(LocalError):
        read_architecture_masks(tmp_path / "missing", "a b")


def test_an_image_longer_than_a_window_is_seen_no_farther(tmp_path: Path) -> None:
    """Gemma 3 since huggingface/transformers#46850."""
    text = {"model_type": "gemma3_text", "num_hidden_layers": 6, "sliding_window": 4}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gemma3", "text_config": text}))
    found = read_architecture_masks(tmp_path, "see " + "<image> " * 6 + "here now", ("eager",))
    assert [one.meant for one in found.masks] == ["causal+window:4+span:2-7", "causal+span:2-7"]
    assert [one.diagnosis and one.diagnosis.verdict for one in found.masks] == ["sound", "sound"]
    places = np.arange(9)
    assert not (found.masks[0].allowed & (places[:, None] - places > 3)).any()
