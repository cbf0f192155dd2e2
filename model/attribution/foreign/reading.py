"""One forward pass of a model that nobody here wrote, found by running it, that can be made again otherwise."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ...language.say import say
from ...live.local_model import LocalModel
from ...network.hooks import observes, observing
from ..target import AttributionError, Target

Hook = Callable[[nn.Module, tuple[Any, ...], dict[str, Any], Any], Any]
"""Module, arguments, named arguments and output -> what replaces the output, or None."""


@dataclass(frozen=True, eq=False)
class Reading:
    """One forward pass of the whole translation that can be made again with other embeddings."""

    model: nn.Module
    run: Callable[[], Tensor]
    """-> logits (1, T, V)"""
    tables: tuple[nn.Module, nn.Module]
    """The embeddings of source and target; they may be one module."""
    ids: tuple[Tensor, Tensor]
    """What they look up, (1, S) and (1, T)."""
    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    predicted: tuple[str, ...]


def target_of(reading: Reading, position: int) -> tuple[Target, Tensor]:
    """The piece predicted at a row as the target, and its value (1,).

    It is what was fed next, where the names of the pieces say so, and else the most probable.
    """
    logits = logits_of(reading, {}, position)
    source, inputs = (tuple(one[0].tolist()) for one in reading.ids)
    follows = position + 1 < len(inputs) and reading.predicted[position] == reading.target_tokens[position + 1]
    target = Target(
        source,
        reading.source_tokens,
        inputs[: position + 1],
        reading.target_tokens[: position + 1],
        (inputs[position + 1] if follows else int(logits[0, 0].argmax()),),
        (reading.predicted[position],),
    )
    return target, target.value(logits).detach()


def logits_of(reading: Reading, changes: Mapping[int, Callable[[Tensor], Tensor]], position: int) -> Tensor:
    """Logits (1, 1, V) of one row, the embeddings of source (0) or target (1) changed at their first lookup."""
    with ExitStack() as stack:
        for side, change in changes.items():
            stack.enter_context(hooked([reading.tables[side]], _first_lookup(reading.ids[side], change)))
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
def hooked(modules: Iterable[nn.Module], hook: Hook) -> Iterator[None]:
    """Forward hooks that act in this thread alone, since the model may be shared; gone when the block ends."""
    observer = object()

    def own(*call: Any) -> Any:
        return hook(*call) if observes(observer) else None

    with observing(observer), ExitStack() as stack:
        for module in modules:
            stack.callback(module.register_forward_hook(own, with_kwargs=True).remove)
        yield


def read(model: LocalModel, text: str) -> Reading:
    lookups: list[tuple[nn.Module, Any]] = []
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def look_up(table: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        lookups.append((table, given[0] if given else named.get("input")))

    def call(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        calls.append((given, dict(named)))

    with torch.no_grad(), hooked(_tables(model.model), look_up), hooked([model.model], call):
        tokens = model.run(text)
    if not isinstance(tokens, Mapping) or {"source", "target"} - set(tokens):
        raise AttributionError(say("This model has no source and target to attribute to: its tokens must name both."))
    source, target, predicted = (tuple(map(str, tokens.get(side, ()))) for side in ("source", "target", "predicted"))
    texts = [(table, ids) for table, ids in lookups if isinstance(ids, Tensor) and _is_text(ids)]
    first = next((at for at, (_, ids) in enumerate(texts) if ids.shape[1] == len(source)), None)
    if first is None or first + 1 == len(texts):
        raise AttributionError(
            say("The embeddings of this model are not nn.Embedding modules that look up its tokens.")
        )
    (table, ids), *rest = texts[first:]
    inputs = torch.cat([one for _, one in rest], 1)[:, : len(target)]
    run = _again(model.model, calls[-1], ids, inputs)
    return Reading(model.model, run, (table, rest[0][0]), (ids, inputs), source, target, predicted or target)


def _tables(model: nn.Module) -> list[nn.Module]:
    """The embeddings of tokens, where the model says which they are (transformers), else all that it has.

    Some models of transformers look ids up in their table of positions as well, to count them.
    """
    sides = [getattr(model, name, None) for name in ("get_encoder", "get_decoder")]
    if all(callable(one) for one in sides):
        return list(dict.fromkeys(one().get_input_embeddings() for one in sides if one is not None))
    return [module for module in model.modules() if isinstance(module, nn.Embedding)]


def _is_text(ids: Tensor) -> bool:
    """Whether ids are one text, and not positions, a row that counts up, nor distances, a row for each position."""
    if ids.ndim != 2 or len(ids) != 1 or ids.is_floating_point():
        return False
    return ids.shape[1] == 1 or not bool((ids[:, 1:] - ids[:, :-1] == 1).all())


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
            raise AttributionError(say("This model's output is not logits (1, T, V), so no word can be attributed."))
        return logits

    return run
