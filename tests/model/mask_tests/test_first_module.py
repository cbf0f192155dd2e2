"""The module that lets a forbidden input in is named, and told apart from attention."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attenscope.mask_tests.first_leaking_module import describe_leaking_module
from attenscope.mask_tests.outcomes import BATCH_NEIGHBOUR, FUTURE_TOKEN, PADDING_AMOUNT, PADDING_CONTENT
from attenscope.mask_tests.subjects import subject_from_ids
from attenscope.testing import assert_batch_invariant, assert_no_future_leak, assert_padding_ignored
from tests.model.mask_tests.broken_models import BROKEN, IDS, KEEP, Attention, Broken, Model
from tests.model.mask_tests.models import IDS as OTHER_IDS
from tests.model.mask_tests.models import hugging_face, subject

ASSERTIONS: dict[str, Any] = {
    "future": assert_no_future_leak,
    "padding": assert_padding_ignored,
    "batch": assert_batch_invariant,
}
MODULE = re.compile(r"First let in by (the attention of )?(\S+|the model itself) \((\w+)")


def said(asserted: str, model: nn.Module, **more: Any) -> str:
    with pytest.raises(AssertionError) as error:
        ASSERTIONS[asserted](model, IDS, keep=KEEP, embedding=model.embedding, **more)
    return str(error.value)


def named(message: str) -> list[tuple[bool, str, str]]:
    """Whether it is attention, its path and its class, of each module that a message names."""
    return [(bool(attention), path, kind) for attention, path, kind in MODULE.findall(message)]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: f"{one.name}, {one.asserted}")
def test_what_is_not_attention_is_named(broken: Broken) -> None:
    model = Model(broken.mixer).eval()
    path = ".".join(filter(None, ["layers.1.mixer", broken.path]))
    module = model.get_submodule(path)
    message = said(broken.asserted, model)
    assert named(message) == [(False, path, type(module).__name__)]
    assert message.endswith(", which calls no attention.")
    assert ("read from the token ids" in message) == (broken.name in ("next id", "count of ids"))


def test_there_are_so_many() -> None:
    assert len(BROKEN) >= 24


class Sees(Attention):
    """The same attention with a part of its mask left out."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        if self.what == "padding":
            return super().forward(x, torch.ones_like(keep))
        q, k, v = (one.unflatten(-1, (2, -1)).transpose(1, 2) for one in self.qkv(x).chunk(3, -1))
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None, None])
        return self.out(found.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("layer", range(3))
def test_attention_is_named_with_its_argument(layer: int) -> None:
    model = Model()
    model.layers[layer].attention = Sees("future")
    message = said("future", model.eval())
    assert named(message) == [(True, f"layers.{layer}.attention", "Sees")]
    lines, start = inspect.getsourcelines(Sees)
    line = start + next(number for number, text in enumerate(lines) if "scaled_dot_product" in text)
    assert f"{__file__}:{line}, calls F.scaled_dot_product_attention; carried by attn_mask=bool" in message


def test_padding_that_attention_sees_is_told_from_padding_that_a_convolution_sees() -> None:
    model = Model()
    model.layers[1].attention = Sees("padding")
    with pytest.raises(AssertionError) as error:
        assert_padding_ignored(model.eval(), IDS, keep=KEEP.flip(1), embedding=model.embedding)
    assert named(str(error.value)) == [(True, "layers.1.attention", "Sees")]


def test_the_first_of_two_is_named() -> None:
    model = Model(BROKEN[0].mixer)
    model.layers[2].attention = Sees("future")
    assert named(said("future", model.eval())) == [(False, "layers.1.mixer.inner", "Conv1d")]
    model.layers[0].attention = Sees("future")
    assert named(said("future", model.eval())) == [(True, "layers.0.attention", "Sees")]


def test_torchs_attention_is_named() -> None:
    torch.manual_seed(0)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 2, 24, 0.0, batch_first=True), 2)

    class Torch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.encoder = nn.Embedding(50, 12), encoder

        def forward(self, ids: Tensor) -> Tensor:
            return self.encoder(self.embedding(ids))

    message = said("future", Torch().eval())
    assert named(message) == [(True, "encoder.layers.0.self_attn", "MultiheadAttention")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "path", "kind"),
    [
        ("BertModel", "encoder.layer.0.attention.self", "BertSelfAttention"),
        ("RoFormerForCausalLM", "roformer.encoder.layer.0.attention.self", "RoFormerSelfAttention"),
    ],
)
def test_hugging_faces_attention_is_named(name: str, path: str, kind: str) -> None:
    with pytest.raises(AssertionError) as error:
        assert_no_future_leak(hugging_face(name), OTHER_IDS)
    assert named(str(error.value)) == [(True, path, kind)]


def test_a_function_has_no_module_and_a_module_as_subject_has() -> None:
    with pytest.raises(AssertionError, match="First let in by the model itself"):
        assert_batch_invariant(subject("neighbour"))
    model = Model(BROKEN[0].mixer).eval()

    def call(ids: Tensor, keep: Tensor) -> Tensor:
        return model(ids)

    with pytest.raises(AssertionError) as error:
        assert_no_future_leak(call, IDS, embedding=model.embedding, call=call)
    assert "First let in" not in str(error.value)


@pytest.mark.sweep
def test_a_compiled_model_is_named_as_it_was_written() -> None:
    model = Model(BROKEN[0].mixer).eval()
    compiled: Any = torch.compile(model, backend="eager")
    with pytest.raises(AssertionError) as error:
        assert_no_future_leak(compiled, IDS, keep=KEEP, embedding=model.embedding)
    assert named(str(error.value)) == [(False, "layers.1.mixer.inner", "Conv1d")]


def test_sound_models_have_no_first_module() -> None:
    model = Model().eval()
    sound = subject_from_ids(lambda ids, keep: model(ids), model.embedding, IDS, KEEP, True, module=model)
    for check in (FUTURE_TOKEN, PADDING_CONTENT, PADDING_AMOUNT, BATCH_NEIGHBOUR):
        assert describe_leaking_module(sound, check) == ""


def test_no_hook_is_left() -> None:
    model = Model(BROKEN[0].mixer).eval()
    said("future", model)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
