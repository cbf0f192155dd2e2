"""The private parts of torch: each is there in this version, and where one were missing, a sentence would name it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attenscope import torch_internals
from attenscope.capture.attention import capture_attention
from attenscope.network.hooks import HookPoint
from attenscope.torch_internals import (
    TorchInternalsError,
    check_frame_reading_supported,
    copy_without_override_check,
    is_compiled,
)

X = torch.randn(1, 3, 8, generator=torch.Generator().manual_seed(0))


def attend(model: nn.Module) -> None:
    with capture_attention(model):
        model(X, X, X)


class Plain(nn.Module):
    """Attention by hand: nothing of it has a fast path."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.transpose(-1, -2)).softmax(-1) @ v


@pytest.mark.filterwarnings("ignore:.*script_method")  # of torch.compile's own
def test_this_torch_has_every_part() -> None:
    check_frame_reading_supported(nn.Transformer(8, 2, 1, 1, 8, batch_first=True))
    assert copy_without_override_check(F.multi_head_attention_forward) is not F.multi_head_attention_forward
    assert is_compiled(torch.compile(nn.Linear(2, 2)))  # type: ignore[arg-type]
    assert not is_compiled(nn.Linear(2, 2))


def test_a_module_without_the_dictionary_of_hooks() -> None:
    point = HookPoint()
    del point._forward_hooks
    with pytest.raises(TorchInternalsError, match=r"no nn\.Module\._forward_hooks, which is needed to run"):
        point(X)


def test_a_module_that_is_called_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_internals, "MODULE_CALL_METHODS", ("_renamed_call",))
    with pytest.raises(TorchInternalsError, match=r"no nn\.Module\._renamed_call, which is needed to say which module"):
        attend(Plain())


def test_a_fast_path_that_notes_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only models that have a fast path are refused."""
    monkeypatch.setattr(torch_internals, "OVERRIDE_REASON", "another reason")
    with pytest.raises(TorchInternalsError, match=r"'another reason' in nn\.MultiheadAttention\.forward"):
        attend(nn.MultiheadAttention(8, 2, batch_first=True))
    attend(Plain())


def test_a_function_that_asks_for_overrides_in_another_way() -> None:
    renamed: Callable[..., None] = lambda: None  # noqa: E731
    with pytest.raises(TorchInternalsError, match=r"no has_torch_function in .*test_torch_internals\.<lambda>"):
        copy_without_override_check(renamed)
