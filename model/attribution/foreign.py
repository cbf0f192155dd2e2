"""What can be said of a model that nobody here wrote: pieces removed, and gradient x input, at its embeddings.

Its masks cannot be reached in general, so a piece is removed by making its embedding zero; heads, layers and shares of
the source need to know what the modules are, and are not computed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..network.hooks import observes, observing
from ..user_model import LocalModel
from .methods import METHODS, Attribution
from .target import AttributionError, Target

Hook = Callable[[nn.Module, tuple[Any, ...], dict[str, Any], Any], Any]
"""Module, arguments, named arguments and output -> what replaces the output, or None."""
COMPUTED = {
    "leave-one-out": "how far the value falls when the piece's embedding is zero",
    "gradient-x-input": METHODS["gradient-x-input"],
}
"""Name -> what the score is."""
NOT_COMPUTED = (
    "Of a model that is not of this project, only leave-one-out (by zero embeddings, as its masks cannot be reached) "
    "and gradient-x-input are computed: the others need to know what each of its modules is."
)


@dataclass(frozen=True, eq=False)
class _Reading:
    """One forward pass of the whole translation that can be made again with other embeddings."""

    run: Callable[[], Tensor]
    """-> logits (1, T, V)"""
    tables: tuple[nn.Module, nn.Module]
    """The embeddings of source and target; they may be one module."""
    ids: tuple[Tensor, Tensor]
    """What they look up, (1, S) and (1, T)."""
    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    predicted: tuple[str, ...]


def foreign_attributions(model: LocalModel, text: str, word: int, method: str) -> tuple[list[Attribution], str]:
    """Return the attribution of piece `word` (from 1), all for the method "all", and what cannot be computed.

    X is the most probable piece at its row. Raises AttributionError for a method that this model cannot have, and
    where its embeddings or logits are not found.
    """
    if method not in (*COMPUTED, "all"):
        raise AttributionError(NOT_COMPUTED)
    reading = _read(model, text)
    if not 1 <= word <= len(reading.predicted):
        raise AttributionError(f"There is no piece {word}: this translation has {len(reading.predicted)} pieces.")
    explained = {"leave-one-out": _leave_one_out, "gradient-x-input": _gradient_x_input}
    chosen = tuple(COMPUTED) if method == "all" else (method,)
    return [explained[one](reading, word - 1) for one in chosen], NOT_COMPUTED


def values_without(model: LocalModel, text: str, word: int, removed: np.ndarray) -> np.ndarray:
    """Return log p of piece `word` (from 1) with source pieces away: removed (N, S) bool -> (N,), natural logarithm.

    A piece is away as in leave-one-out. Raises AttributionError as :func:`foreign_attributions` does.
    """
    reading = _read(model, text)
    values = []
    with torch.no_grad():
        target, _ = _target(reading, word - 1)
        for row in torch.from_numpy(removed):

            def without(embedded: Tensor, row: Tensor = row) -> Tensor:
                return embedded.masked_fill(row.to(embedded.device)[None, :, None], 0.0)

            values.append(target.value(_logits(reading, {0: without}, word - 1)))
    return torch.cat(values).double().numpy(force=True)


def _leave_one_out(reading: _Reading, position: int) -> Attribution:
    with torch.no_grad():
        target, value = _target(reading, position)
        falls: tuple[list[Tensor], list[Tensor]] = ([], [])
        for side, count in enumerate((len(target.source_ids), position + 1)):
            for piece in range(count):

                def without(embedded: Tensor, piece: int = piece) -> Tensor:
                    return embedded.index_fill(1, torch.tensor([piece], device=embedded.device), 0.0)

                falls[side].append(value - target.value(_logits(reading, {side: without}, position)))
    return _attribution("leave-one-out", target, value, *(torch.cat(one) for one in falls))


def _gradient_x_input(reading: _Reading, position: int) -> Attribution:
    leaves: dict[int, Tensor] = {}

    def leaf(side: int) -> Callable[[Tensor], Tensor]:
        return lambda embedded: leaves.setdefault(side, embedded.detach().requires_grad_())

    with torch.enable_grad():
        target, _ = _target(reading, position)
        value = target.value(_logits(reading, {side: leaf(side) for side in (0, 1)}, position))
        gradients = torch.autograd.grad(value.sum(), [leaves[0], leaves[1]])
    source, inputs = ((one * leaves[side]).sum(-1)[0] for side, one in enumerate(gradients))
    return _attribution("gradient-x-input", target, value.detach(), source, inputs[: position + 1])


def _attribution(method: str, target: Target, value: Tensor, source: Tensor, prefix: Tensor) -> Attribution:
    by_source, by_prefix = (one.detach().double().cpu().numpy() for one in (source, prefix))
    return Attribution(method, by_source, by_prefix, float(by_source.sum() + by_prefix.sum()), target, float(value))


def _target(reading: _Reading, position: int) -> tuple[Target, Tensor]:
    """The most probable piece at a row as the target, and its value (1,)."""
    logits = _logits(reading, {}, position)
    source, inputs = (tuple(one[0].tolist()) for one in reading.ids)
    target = Target(
        source,
        reading.source_tokens,
        inputs[: position + 1],
        reading.target_tokens[: position + 1],
        (int(logits[0, 0].argmax()),),
        (reading.predicted[position],),
    )
    return target, target.value(logits).detach()


def _logits(reading: _Reading, changes: Mapping[int, Callable[[Tensor], Tensor]], position: int) -> Tensor:
    """Logits (1, 1, V) of one row, the embeddings of source (0) or target (1) changed at their first lookup."""
    with ExitStack() as stack:
        for side, change in changes.items():
            stack.enter_context(_hooked([reading.tables[side]], _first_lookup(reading.ids[side], change)))
        return reading.run()[:, position : position + 1]


def _first_lookup(ids: Tensor, change: Callable[[Tensor], Tensor]) -> Hook:
    done: list[bool] = []

    def hook(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Tensor) -> Tensor | None:
        if done or not given or not torch.equal(given[0], ids):
            return None
        done.append(True)
        return change(output)

    return hook


@contextmanager
def _hooked(modules: Iterable[nn.Module], hook: Hook) -> Iterator[None]:
    """Forward hooks that act in this thread alone, since the model may be shared; gone when the block ends."""
    observer = object()

    def own(*call: Any) -> Any:
        return hook(*call) if observes(observer) else None

    with observing(observer), ExitStack() as stack:
        for module in modules:
            stack.callback(module.register_forward_hook(own, with_kwargs=True).remove)
        yield


def _read(model: LocalModel, text: str) -> _Reading:
    lookups: list[tuple[nn.Module, Any]] = []
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def look_up(table: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        lookups.append((table, given[0] if given else named.get("input")))

    def call(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        calls.append((given, dict(named)))

    embeddings = [module for module in model.model.modules() if isinstance(module, nn.Embedding)]
    with torch.no_grad(), _hooked(embeddings, look_up), _hooked([model.model], call):
        tokens = model.run(text)
    if not isinstance(tokens, Mapping) or {"source", "target"} - set(tokens):
        raise AttributionError("This model has no source and target to attribute to: its tokens must name both.")
    source, target, predicted = (tuple(map(str, tokens.get(side, ()))) for side in ("source", "target", "predicted"))
    texts = [(table, ids) for table, ids in lookups if isinstance(ids, Tensor) and ids.ndim == 2 and not _counts(ids)]
    first = next((at for at, (_, ids) in enumerate(texts) if ids.shape[1] == len(source)), None)
    if first is None or first + 1 == len(texts):
        raise AttributionError("The embeddings of this model are not nn.Embedding modules that look up its tokens.")
    (table, ids), *rest = texts[first:]
    inputs = torch.cat([one for _, one in rest], 1)[:, : len(target)]
    run = _again(model.model, calls[-1], ids, inputs)
    return _Reading(run, (table, rest[0][0]), (ids, inputs), source, target, predicted or target)


def _counts(ids: Tensor) -> bool:
    """Whether ids are positions: a row that counts up from anywhere."""
    return ids.shape[1] > 1 and bool((ids[:, 1:] - ids[:, :-1] == 1).all())


def _again(
    model: nn.Module, call: tuple[tuple[Any, ...], dict[str, Any]], ids: Tensor, inputs: Tensor
) -> Callable[[], Tensor]:
    """The pass made again: by ids where the model takes both sides so (Hugging Face), else by the call it had."""
    named = inspect.signature(model.forward).parameters
    if {"input_ids", "decoder_input_ids"} <= set(named):
        return lambda: model(input_ids=ids, decoder_input_ids=inputs, use_cache=False).logits

    def run() -> Tensor:
        found = model(*call[0], **call[1])
        logits = getattr(found, "logits", found)
        if not isinstance(logits, Tensor) or logits.ndim != 3:
            raise AttributionError("This model's output is not logits (1, T, V), so no word can be attributed.")
        return logits

    return run
