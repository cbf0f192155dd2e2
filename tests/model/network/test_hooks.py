"""Looking in and reaching in: for one thread, inside one block, and never left behind."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Generator

import pytest
import torch
from torch import Tensor

from attenscope.network.hooks import declare_observer, hook_outputs, is_observed, is_observing, record_outputs
from attenscope.network.transformer import Transformer
from tests.toy import random_model

SOURCE, TARGET = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 11, 12]])


def hooks_on(model: torch.nn.Module) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


def test_a_function_that_returns_nothing_only_looks(tiny_model: Transformer) -> None:
    seen: list[Tensor] = []
    alone = tiny_model(SOURCE, TARGET)
    with hook_outputs({tiny_model.encoder.output: seen.append}):
        assert torch.equal(tiny_model(SOURCE, TARGET), alone)
    assert torch.equal(seen[0], tiny_model.encode(SOURCE))


def test_a_function_that_returns_a_tensor_replaces(tiny_model: Transformer) -> None:
    memory = torch.zeros(1, 4, 64)
    with hook_outputs({tiny_model.encoder.output: lambda _: memory}):
        assert torch.equal(tiny_model.encode(SOURCE), memory)
    assert not torch.equal(tiny_model.encode(SOURCE), memory)


def test_no_hook_remains_after_the_block_or_an_exception() -> None:
    model = random_model()
    with hook_outputs({model.encoder.output: lambda _: None}):
        assert hooks_on(model) == 1
        assert is_observed()
    assert hooks_on(model) == 0
    with pytest.raises(RuntimeError, match="on purpose"), hook_outputs({model.encoder.output: lambda _: None}):
        raise RuntimeError("on purpose")
    assert hooks_on(model) == 0
    assert not is_observed()


def test_an_exception_inside_the_function_leaves_nothing() -> None:
    model = random_model()

    def fail(output: Tensor) -> None:
        raise ValueError("in the hook")

    with pytest.raises(ValueError, match="in the hook"), hook_outputs({model.encoder.output: fail}):
        model.encode(SOURCE)
    assert hooks_on(model) == 0
    assert not is_observed()


def test_blocks_nest_and_the_inner_one_ends_alone(tiny_model: Transformer) -> None:
    order: list[str] = []
    point = tiny_model.encoder.output
    with hook_outputs({point: lambda _: order.append("outer")}):
        with hook_outputs({point: lambda _: order.append("inner")}):
            tiny_model.encode(SOURCE)
        tiny_model.encode(SOURCE)
    tiny_model.encode(SOURCE)
    assert order == ["outer", "inner", "outer"]


def test_another_thread_runs_through_the_hook_untouched(tiny_model: Transformer) -> None:
    alone = tiny_model.encode(SOURCE)
    found: list[Tensor] = []
    with hook_outputs({tiny_model.encoder.output: torch.zeros_like}):
        thread = threading.Thread(target=lambda: found.append(tiny_model.encode(SOURCE)))
        thread.start()
        thread.join()
        assert tiny_model.encode(SOURCE).eq(0).all()
    assert torch.equal(found[0], alone)


def looking(observer: object) -> Generator[None, None, None]:
    with declare_observer(observer):
        yield
        yield


def test_observers_that_end_in_another_order_than_they_began() -> None:
    """Two suspended generators, each with its own block, closed first in, first out."""
    first, second = object(), object()
    one, two = looking(first), looking(second)
    next(one)
    next(two)
    one.close()
    assert not is_observing(first)
    assert is_observing(second)
    two.close()
    assert not is_observed()


def test_an_observer_may_end_in_another_context_than_it_began() -> None:
    """A generator that is thrown away is closed wherever the garbage collector happens to run."""
    generator = looking(object())
    contextvars.copy_context().run(next, generator)
    generator.close()
    assert not is_observed()


def test_record_keeps_outputs_by_path(tiny_model: Transformer) -> None:
    """Embedding, encoding and every residual stream of both stacks."""
    points = ["source_embedding.tokens", "source_embedding.encoding", "source_embedding.stream", "encoder.output"]
    for layer in (0, 1):
        points += [f"encoder.layers.{layer}.after_{part}.stream" for part in ("self_attention", "feed_forward")]
        parts = ("self_attention", "cross_attention", "feed_forward")
        points += [f"decoder.layers.{layer}.after_{part}.stream" for part in parts]
    points += ["target_embedding.stream", "decoder.output"]
    with record_outputs(tiny_model, *points) as found:
        logits = tiny_model(SOURCE, TARGET)
    assert set(found) == set(points)
    lengths = {name: tensor.shape[1] for name, tensor in found.items()}
    assert all(lengths[name] == (3 if name.startswith(("decoder", "target")) else 4) for name in points)
    assert all(not tensor.requires_grad for tensor in found.values())
    assert torch.equal(tiny_model.generator(found["decoder.output"]), logits)
    last_stream = found["encoder.layers.1.after_feed_forward.stream"]
    assert torch.equal(found["encoder.output"], tiny_model.encoder.final_norm(last_stream))
    assert hooks_on(tiny_model) == 0


def test_record_of_an_unknown_path_leaves_nothing() -> None:
    model = random_model()
    with (
        pytest.raises(AttributeError, match="no attribute"),
        record_outputs(model, "encoder.output", "encoder.nonsense"),
    ):
        pass
    assert hooks_on(model) == 0
