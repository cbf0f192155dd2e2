"""The linear layer with its weights laid out: the same numbers, fewer kernels, and never stale weights."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from attenscope import fast_linear
from attenscope.checkpoint.load import load_checkpoint
from attenscope.decoding.greedy_and_sampling import decode_batch_greedily
from attenscope.fast_linear import KERNEL_ROW_COUNTS, Linear, reorder_linear_weights
from attenscope.network.config import TransformerConfig
from attenscope.network.transformer import Transformer
from attenscope.torch_internals import reorder_weight

ASKED = fast_linear.is_onednn_faster
needs_onednn = pytest.mark.skipif(reorder_weight(torch.ones(2, 2)) is None, reason="torch has no such product here")


@pytest.fixture(autouse=True)
def of_amd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the processor is, the weights are laid out for oneDNN too."""
    monkeypatch.setattr(fast_linear, "is_onednn_faster", lambda: True)


def laid_out(bias: bool = True) -> Linear:
    torch.manual_seed(0)
    layer = Linear(24, 40, bias)
    layer.reorder_inference_weight()
    return layer


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1,), (3,), (4,), (5,), (128,), (129,), (400,), (2, 3), (7, 1, 11), (0,), (3, 0)])
def test_the_product_is_that_of_float64(shape: tuple[int, ...], bias: bool) -> None:
    layer, x = laid_out(bias), torch.randn(*shape, 24)
    exact = F.linear(x.double(), layer.weight.double(), None if layer.bias is None else layer.bias.double())
    with torch.no_grad():
        found = layer(x)
    assert found.shape == exact.shape
    torch.testing.assert_close(found.double(), exact, atol=2e-6, rtol=1e-6)


def test_rows_that_do_not_lie_in_one_piece_are_multiplied_too() -> None:
    layer, x = laid_out(), torch.randn(6, 5, 24).transpose(0, 1)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias))


@needs_onednn
def test_any_number_of_rows_takes_few_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()

    def product(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        seen.add(len(rows))
        return rows.new_zeros(len(rows), 40)

    monkeypatch.setattr(fast_linear, "multiply_reordered_weight", product)
    layer = laid_out()
    with torch.no_grad():
        for rows in range(1, 600):
            assert layer(torch.ones(rows, 24)).shape == (rows, 40)
    assert seen == set(KERNEL_ROW_COUNTS)


def test_gradients_are_those_of_a_layer_that_is_not_laid_out() -> None:
    layer, x = laid_out(), torch.randn(9, 24)
    other = nn.Linear(24, 40)
    other.load_state_dict(layer.state_dict())
    layer(x).square().sum().backward()
    other(x).square().sum().backward()
    assert layer.weight.grad is not None
    assert other.weight.grad is not None
    torch.testing.assert_close(layer.weight.grad, other.weight.grad)


def changed_in_place(layer: Linear) -> None:
    with torch.no_grad():
        layer.weight.mul_(2)


def replaced(layer: Linear) -> None:
    layer.weight = nn.Parameter(torch.randn_like(layer.weight))


def loaded(layer: Linear) -> None:
    layer.load_state_dict({name: torch.randn_like(one) for name, one in layer.state_dict().items()})


def rounded(layer: Linear) -> None:
    layer.half().float()


@pytest.mark.parametrize("change", [changed_in_place, replaced, loaded, rounded])
def test_weights_that_are_changed_are_used_as_they_are(change: Any) -> None:
    layer, x = laid_out(), torch.randn(9, 24)
    change(layer)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_a_copy_has_the_weights_and_may_be_changed(again: Any) -> None:
    layer, x = laid_out(), torch.randn(9, 24)
    other = again(layer)
    with torch.no_grad():
        torch.testing.assert_close(other(x), layer(x))
        other.weight.zero_()
        assert torch.equal(other(x), other.bias.expand(9, 40))
        assert not torch.equal(layer(x), other(x))


def test_who_watches_the_functions_of_torch_sees_the_weights() -> None:
    class Watching(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((func, args))
            return func(*args, **(kwargs or {}))

    seen: list[tuple[Any, Any]] = []
    layer = laid_out()
    with torch.no_grad(), Watching():
        layer(torch.randn(9, 24))
    assert any(func is F.linear and args[1] is layer.weight for func, args in seen)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_kinds_of_numbers_are_multiplied_as_ever(dtype: torch.dtype) -> None:
    layer = Linear(24, 40).to(dtype)
    layer.reorder_inference_weight()
    x = torch.randn(9, 24, dtype=dtype)
    with torch.no_grad():
        assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))
        assert laid_out().to(dtype)(x).dtype is dtype  # laid out before it was changed


def test_a_model_that_is_laid_out_writes_the_same_and_keeps_its_tied_weights() -> None:
    torch.manual_seed(0)
    model = Transformer(TransformerConfig()).eval()
    source = torch.randint(5, 8000, (7, 13))
    before, weights = decode_batch_greedily(model, source, 12), model.generator.weight.clone()
    reorder_linear_weights(model)
    assert decode_batch_greedily(model, source, 12) == before
    assert model.generator.weight is model.target_embedding.table.weight
    assert torch.equal(model.generator.weight, weights)


@needs_onednn
def test_a_checkpoint_is_loaded_laid_out() -> None:
    model = load_checkpoint("preset-original").model
    assert all(one._laid_out is not None for one in model.modules() if isinstance(one, Linear))


@pytest.mark.parametrize(
    ("told", "is_faster"), [("vendor_id\t: AuthenticAMD\n", True), ("vendor_id\t: GenuineIntel\n", False)]
)
def test_only_on_processors_of_amd_is_onednn_asked(monkeypatch: pytest.MonkeyPatch, told: str, is_faster: bool) -> None:
    monkeypatch.setattr(fast_linear.Path, "read_text", lambda *_, **__: told)
    assert ASKED.__wrapped__() is is_faster
    monkeypatch.setattr(fast_linear, "is_onednn_faster", ASKED.__wrapped__)
    layer = laid_out()
    assert (layer._laid_out is not None) is (is_faster and reorder_weight(torch.ones(2, 2)) is not None)
    assert layer.weight.stride() == (1, 40)  # columns in one piece on either


def test_threads_get_the_same_numbers() -> None:
    layer = laid_out()
    given = [torch.randn(rows, 24) for rows in range(1, 150, 7)]

    def product(x: Tensor) -> Tensor:
        with torch.inference_mode():
            return layer(x)

    alone = [product(x) for x in given]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(product, given * 8))
    assert all(torch.equal(one, alone[number % len(given)]) for number, one in enumerate(together))
