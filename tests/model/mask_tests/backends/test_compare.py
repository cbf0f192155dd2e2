"""Kernels, caches, paddings and packing of real architectures agree; a fault planted in one is found where it sits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attenscope.mask_tests.backend_runs import Batch
from attenscope.mask_tests.backends import (
    WAYS,
    assert_backends_agree,
    assert_cache_agrees,
    assert_packing_agrees,
    assert_padding_sides_agree,
    assert_static_cache_agrees,
    compare_backends,
)

transformers = pytest.importorskip("transformers")
IDS = torch.randint(3, 59, (3, 9), generator=torch.Generator().manual_seed(0))
KEEP = torch.arange(9) < torch.tensor([[9], [6], [4]])
INPUTS = {"input_ids": IDS, "attention_mask": KEEP.long()}
SIZES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 60}
GROUPED = SIZES | {"intermediate_size": 64, "num_key_value_heads": 2}


def gpt2() -> Any:
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_embd=32, n_layer=3, n_head=4, vocab_size=60, initializer_range=0.3)
    return transformers.GPT2LMHeadModel(config).eval()


MODELS: dict[str, Callable[[], Any]] = {
    "GPT-2": gpt2,
    "Mistral": lambda: transformers.MistralForCausalLM(transformers.MistralConfig(**GROUPED, sliding_window=4)),
    "Gemma 2": lambda: transformers.Gemma2ForCausalLM(
        transformers.Gemma2Config(**GROUPED, head_dim=8, sliding_window=4, layer_types=None)
    ),
    "BERT": lambda: transformers.BertModel(transformers.BertConfig(**SIZES, intermediate_size=64)),
    "Bloom": lambda: transformers.BloomForCausalLM(
        transformers.BloomConfig(hidden_size=32, n_layer=3, n_head=4, vocab_size=60)
    ),
}
NOT_RUN = {
    "GPT-2": {"sdpa efficient", "flex"},
    "Mistral": {"sdpa efficient"},
    "Gemma 2": {"sdpa math", "sdpa efficient", "sdpa flash"},
    "BERT": {"sdpa efficient", "cache", "static cache"},
    "Bloom": {"sdpa math", "sdpa efficient", "sdpa flash", "flex", "packed"},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of torch itself, when flex_attention runs uncompiled
@pytest.mark.parametrize("name", MODELS)
def test_real_architectures_agree_in_every_way_that_they_have(name: str) -> None:
    model = MODELS[name]().eval()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    found = compare_backends(model, INPUTS)
    assert [one.name for one in found.results] == list(WAYS)
    assert found.differing_results == ()
    if not torch.cuda.is_available():
        assert {one.name for one in found.results if one.status == "not run"} <= NOT_RUN[name]
    assert all(one.reason for one in found.results if one.status == "not run")
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())


def replaced(model: Any, path: str, change: Callable[..., Any]) -> Any:
    """The model with the output of one of its modules changed by ``change(model, module, output, *inputs)``."""

    def hook(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        return change(module, output, *inputs)

    model.get_submodule(path).register_forward_hook(hook)
    return model


def louder_in_eager(module: Any, output: Any, *inputs: Any) -> Any:
    if module.config._attn_implementation != "eager":
        return output
    return (output[0] * torch.linspace(1, 1.5, output[0].shape[1])[:, None], *output[1:])


def test_a_layer_that_one_kernel_computes_otherwise_is_named() -> None:
    found = compare_backends(replaced(gpt2(), "transformer.h.1.attn", louder_in_eager), INPUTS)
    (parting,) = found.differing_results
    assert (parting.name, parting.layer, parting.sample, parting.row) == ("eager", "transformer.h.1", 0, 1)
    assert parting.difference > 10 * parting.noise
    assert "eager: parts at transformer.h.1, sample 0, token 1, by" in str(found)
    with pytest.raises(AssertionError, match=r"eager: parts at transformer\.h\.1"):
        assert_backends_agree(replaced(gpt2(), "transformer.h.1.attn", louder_in_eager), INPUTS)


def second_sample_in_eager(value: float) -> Callable[..., Any]:
    """Sets all outputs of the second sample, in eager alone."""

    def change(module: Any, output: Any, *inputs: Any) -> Any:
        if module.config._attn_implementation != "eager":
            return output
        spoilt = output[0].clone()
        spoilt[1] = value
        return (spoilt, *output[1:])

    return change


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_nan_and_infinity_in_any_sample_part_and_are_said_in_words(value: float) -> None:
    model = replaced(gpt2(), "transformer.h.1.attn", second_sample_in_eager(value))
    found = compare_backends(model, IDS[:2], ways=("eager", "batch of one"))
    assert [(one.name, one.layer, one.sample, one.row) for one in found.differing_results] == [
        ("eager", "transformer.h.1", 1, 0)
    ]
    said = "eager: parts at transformer.h.1, sample 1, token 0; outputs of this layer are NaN or infinite"
    assert str(found["eager"]) == said
    with pytest.raises(AssertionError, match=said):
        assert_backends_agree(model, IDS[:2])


def test_infinity_in_the_model_as_it_is_is_no_noise() -> None:
    model = gpt2()
    model.set_attn_implementation("eager")
    found = compare_backends(
        replaced(model, "transformer.h.1.attn", second_sample_in_eager(torch.inf)), IDS[:2], ways=("sdpa math",)
    )
    assert [(one.layer, one.sample) for one in found.differing_results] == [("transformer.h.1", 1)]


def columns(module: nn.Embedding, output: Tensor, positions: Tensor) -> Tensor:
    """Positions by column, whatever the model was given."""
    return module.weight[torch.arange(positions.shape[1])].expand_as(output)


def test_positions_that_are_ignored_part_in_cache_padding_and_packing() -> None:
    model = replaced(gpt2(), "transformer.wpe", columns)
    found = compare_backends(model, INPUTS)
    assert {one.name for one in found.differing_results} == {"cache", "static cache", "left padding", "packed"}
    assert (found["cache"].layer, found["cache"].sample, found["cache"].row) == ("transformer.h.0", 0, 4)
    assert (found["left padding"].sample, found["left padding"].row) == (0, 0)
    assert (found["packed"].sample, found["packed"].row) == (1, 0)
    for check in (assert_cache_agrees, assert_static_cache_agrees, assert_packing_agrees, assert_padding_sides_agree):
        with pytest.raises(AssertionError, match=r"parts at transformer\.h\.0"):
            check(model, INPUTS)
        check(gpt2(), INPUTS)


def test_a_left_padded_batch_without_positions_parts_from_each_sample_alone() -> None:
    left = {"input_ids": IDS.flip(1), "attention_mask": KEEP.flip(1).long()}
    found = compare_backends(gpt2(), left, ways=("batch of one", "right padding"))
    assert [(one.name, one.sample, one.row) for one in found.differing_results] == [
        ("right padding", 1, 0),
        ("batch of one", 1, 0),
    ]


def test_what_cannot_be_compared_is_said() -> None:
    with pytest.raises(ValueError, match="There is no way warp; there are eager"):
        compare_backends(gpt2(), INPUTS, ways=("warp",))
    with pytest.raises(TypeError, match="Give a Hugging Face model"):
        compare_backends(nn.Linear(2, 2), INPUTS)
    with pytest.raises(TypeError, match="also needs decoder_input_ids"):
        compare_backends(TWO_STACKS["T5"](), INPUTS)
    with pytest.raises(ValueError, match="Give decoder_input_ids"):
        compare_backends(TWO_STACKS["T5"](), INPUTS | {"decoder_input_ids": IDS[:, :1]})
    with pytest.raises(ValueError, match=r"call model\.eval\(\) first"):
        compare_backends(gpt2().train(), INPUTS)
    with pytest.raises(ValueError, match="two real tokens in each sample"):
        compare_backends(gpt2(), {"input_ids": IDS, "attention_mask": KEEP.long() * 0})
    with pytest.raises(ValueError, match="cache: not run, the model is not causal"):
        assert_cache_agrees(MODELS["BERT"]().eval(), INPUTS)


BART: dict[str, Any] = {"vocab_size": 60, "d_model": 32, "max_position_embeddings": 32, "init_std": 0.3}
BART |= {f"{part}_{name}": size for part in ("encoder", "decoder") for name, size in (("layers", 2), ("ffn_dim", 64))}
BART |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "decoder_start_token_id": 1}
BART |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
T5: dict[str, Any] = {"vocab_size": 60, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
T5 |= {"pad_token_id": 0, "decoder_start_token_id": 0}
TWO_STACKS: dict[str, Callable[[], Any]] = {
    "T5": lambda: seeded(transformers.T5ForConditionalGeneration, transformers.T5Config(**T5)),
    "BART": lambda: seeded(transformers.BartForConditionalGeneration, transformers.BartConfig(**BART)),
    "Marian": lambda: seeded(transformers.MarianMTModel, transformers.MarianConfig(**BART)),
}
TARGET_KEEP = torch.arange(6) < torch.tensor([[4], [6], [5]])
TARGET = {"decoder_input_ids": IDS.flip(0)[:, :6] * TARGET_KEEP, "decoder_attention_mask": TARGET_KEEP.long()}
NEVER = {"sdpa efficient", "static cache", "packed"}
TWO_NOT_RUN = {"T5": NEVER | {"flex"}, "BART": NEVER | {"left padding"}, "Marian": NEVER | {"left padding"}}


def seeded(kind: Any, config: Any) -> Any:
    torch.manual_seed(0)
    return kind(config).eval()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TWO_STACKS)
def test_models_of_two_stacks_agree_in_every_way_that_they_have(name: str) -> None:
    found = compare_backends(TWO_STACKS[name](), INPUTS | TARGET)
    assert found.differing_results == ()
    if not torch.cuda.is_available():
        assert {one.name for one in found.results if one.status == "not run"} <= TWO_NOT_RUN[name]
    assert all(one.reason for one in found.results if one.status == "not run")


def test_padding_that_cross_attention_sees_parts_in_the_decoder() -> None:
    def open_all(module: nn.Module, args: Any, kwargs: Any) -> Any:
        return args, kwargs | {"attention_mask": None}

    model = TWO_STACKS["BART"]()
    model.model.decoder.layers[1].encoder_attn.register_forward_pre_hook(open_all, with_kwargs=True)
    found = compare_backends(model, INPUTS | TARGET, ways=("cache", "right padding", "batch of one"))
    layers = {one.name: (one.layer, one.sample) for one in found.differing_results}
    assert layers == {
        "cache": ("model.decoder.layers.1", 1),
        "right padding": ("model.decoder.layers.1", 0),
        "batch of one": ("model.decoder.layers.1", 1),
    }
    with pytest.raises(AssertionError, match=r"cache: parts at model\.decoder\.layers\.1"):
        assert_cache_agrees(model, INPUTS | TARGET)
    assert_cache_agrees(TWO_STACKS["BART"](), INPUTS | TARGET)


def test_the_layers_of_an_encoder_are_those_of_the_source_whatever_is_around_them() -> None:
    target = Batch(torch.tensor([[1, 2, 3]]), torch.ones(1, 3, dtype=torch.bool))
    batch = Batch(torch.tensor([[4, 5]]), torch.ones(1, 2, dtype=torch.bool), target)
    for path, length in (
        ("encoder_decoder.encoder.layers.0", 2),
        ("encoder_decoder.decoder.layers.0", 3),
        ("decoder.0", 3),
    ):
        assert batch.get_layer_keep_mask(path).shape == (1, length), path
