"""The attention blocks of any model, found in one recorded pass and each checked by its numbers.

What a block is made of is not known from outside, so it is looked for among the tensors of the pass: the projection
that was given weights times values, and the norm that reads the sum of its output and the residual stream. What is
not found is refused, and so is a model in which anything but attention mixes positions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..capture.attention import capture_attention, find_attention_sites
from ..language import say
from ..network.hooks import declare_observer, is_observing
from ..runnable_model import LocalModel
from ..trace import AttentionMap, AttentionTrace
from .alti_and_leave_one_out import AttentionBlock
from .logit import FixedScaleNorm
from .target import AttributionError, Target

BLOCK_TOLERANCE = 1e-4
"""The largest difference of two tensors that are taken for the same, relative to the largest number of either."""


class RecordedCall(NamedTuple):
    """One call of a module: its tensors (1, N, width), and what came out."""

    module: nn.Module
    given: tuple[Tensor, ...]
    output: Tensor


@dataclass(frozen=True, eq=False)
class _FoundBlock:
    """A block, and the tensors of the pass that it reads and makes, parts of the graph of gradients."""

    block: AttentionBlock
    before: Tensor
    after: Tensor
    memory: Tensor | None
    """What a cross-attention reads."""


def find_attention_blocks(reading: RepeatablePass, position: int) -> tuple[list[AttentionBlock], list[AttentionBlock]]:
    """Return the attention blocks of encoder and decoder, in the order in which they ran.

    Raises AttributionError where a part of a block is not found, or positions are mixed beside attention.
    """
    calls: list[RecordedCall] = []
    embedded: dict[int, Tensor] = {}

    def note(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        first = output[0] if isinstance(output, tuple) and output else output
        tensors = tuple(one for one in (*given, *named.values()) if isinstance(one, Tensor) and one.ndim == 3)
        if isinstance(first, Tensor) and first.ndim == 3 and tensors:
            calls.append(RecordedCall(module, tensors, first))

    def leaf(side: int) -> Any:
        def change_tensor(tensor: Tensor) -> Tensor:
            embedded[side] = tensor.detach().requires_grad_()
            return embedded[side]

        return change_tensor

    model = reading.model
    with (
        torch.enable_grad(),
        capture_attention(model, ("v",)) as capture,
        hook_modules([one for one in model.modules() if next(one.parameters(), None) is not None], note),
    ):
        compute_row_logits(reading, {side: leaf(side) for side in ((1,) if reading.one_text else (0, 1))}, position)
    found = _find_blocks_of_maps(model, capture.trace, calls)
    encoder, decoder = ([one for one in found if (one.block.kind == "encoder") == side] for side in (True, False))
    if reading.one_text:
        if encoder or {one.block.kind for one in decoder} != {"decoder"}:
            raise AttributionError(_format_untraceable_attention_message(say("it has not attention of each kind")))
        _check_only_blocks_mix_positions(embedded[1], decoder)
        return [], [one.block for one in decoder]
    if not encoder or {one.block.kind for one in decoder} != {"decoder", "cross"}:
        raise AttributionError(_format_untraceable_attention_message(say("it has not attention of each kind")))
    _check_only_blocks_mix_positions(embedded[0], encoder)
    _check_only_blocks_mix_positions(embedded[1], decoder)
    _check_positions_stay_independent([(encoder[-1].after, one.memory) for one in decoder if one.memory is not None])
    return [one.block for one in encoder], [one.block for one in decoder]


def _format_untraceable_attention_message(reason: str) -> str:
    return say("What its attention passes on cannot be followed: {reason}.", reason=reason)


def _find_blocks_of_maps(model: nn.Module, trace: AttentionTrace, calls: Sequence[RecordedCall]) -> list[_FoundBlock]:
    """The blocks of all maps, in the order in which their modules ran."""
    found: list[tuple[int, _FoundBlock]] = []
    for kind, attention in trace.maps.items():
        paths = attention.layer_paths or tuple(site.path for site in find_attention_sites(model) if site.kind == kind)
        for layer, path in enumerate(paths):
            places = _find_module_call_indices(model, path, calls)
            again = paths[:layer].count(path)
            if len(places) <= again:
                raise AttributionError(
                    _format_untraceable_attention_message(say("{path} takes or returns no stream", path=path))
                )
            place = places[again]
            found.append((place, _find_block(attention, layer, path, calls[place], calls)))
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def _find_module_call_indices(model: nn.Module, path: str, calls: Sequence[RecordedCall]) -> list[int]:
    """Where the module at a path was called; hook points are not, but the module that they stand in is."""
    while path:
        module = model.get_submodule(path)
        if places := [place for place, call in enumerate(calls) if call.module is module]:
            return places
        path = path.rpartition(".")[0]
    return []


def _find_block(
    attention: AttentionMap, layer: int, path: str, call: RecordedCall, calls: Sequence[RecordedCall]
) -> _FoundBlock:
    if "v" not in attention.tensors:
        raise AttributionError(
            _format_untraceable_attention_message(say("the values of {path} are not seen", path=path))
        )
    weights, values = (torch.from_numpy(one[layer]).double() for one in (attention.weights, attention.tensors["v"]))
    projection, output, off = _find_output_projection(path, call, (weights @ values).transpose(0, 1), calls)
    weights = weights.masked_fill(off[:, None, None], 0.0)
    slices = _read_linear_weight(projection).T.reshape(len(values), values.shape[-1], -1)
    read = call.given[0]
    before, after, norm = _find_residual_streams(path, read, output, calls)
    others = [one for one in call.given if one is not read and one.shape[1] == values.shape[1]]
    if attention.kind == "cross" and not others:
        raise AttributionError(
            _format_untraceable_attention_message(say("what {path} reads of the source is not seen", path=path))
        )
    bias = dict(projection.named_parameters()).get("bias")
    projected = torch.einsum("hkd,hdm->hkm", values, slices)
    stream, behind = (one[0].detach().double().cpu() for one in (before, after))
    block = AttentionBlock(
        attention.kind,
        weights,
        projected,
        None if bias is None else bias.detach().double().cpu(),
        stream,
        behind,
        norm,
    )
    return _FoundBlock(block, before, after, others[0] if attention.kind == "cross" else None)


def _is_linear(module: nn.Module) -> bool:
    """Whether a module is a linear map: of torch, or the one of GPT-2 in transformers, which holds it transposed."""
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def _read_linear_weight(module: nn.Module) -> Tensor:
    """(out, in) float64"""
    weight = module.get_parameter("weight").detach().double().cpu()
    return weight if isinstance(module, nn.Linear) else weight.T


def _find_output_projection(
    path: str, call: RecordedCall, context: Tensor, calls: Sequence[RecordedCall]
) -> tuple[nn.Module, Tensor, Tensor]:
    """The linear map that was given the heads' results (Q, H, d) beside each other, what it made of them (1, Q, D), and
    which heads are switched off (H,), their results zero.

    nn.MultiheadAttention applies its map without calling it as a module.
    """
    inside = set(call.module.modules())
    for one in calls:
        if one.module in inside and _is_linear(one.module) and one.given[0][0].numel() == context.numel():
            off = one.given[0][0].detach().cpu().reshape(context.shape).abs().amax((0, 2)) == 0
            if _is_close(one.given[0], context.masked_fill(off[:, None], 0.0).flatten(1)[None]):
                return one.module, one.output, off
    if isinstance(call.module, nn.MultiheadAttention):
        projection = call.module.out_proj
        if _is_close(projection(context.flatten(1).to(projection.weight))[None], call.output):
            none = torch.zeros(context.shape[1], dtype=torch.bool, device=context.device)
            return projection, call.output, none
    raise AttributionError(
        _format_untraceable_attention_message(
            say("no linear map of {path} was given its weights times its values", path=path)
        )
    )


def _find_residual_streams(
    path: str, read: Tensor, output: Tensor, calls: Sequence[RecordedCall]
) -> tuple[Tensor, Tensor, nn.Module | None]:
    """The residual stream before and behind a block that read `read` and added `output`, and the norm behind it."""
    norms = [one for one in calls if "norm" in type(one.module).__name__.lower() and one.given[0].shape == read.shape]
    for one in norms:
        if _is_close(one.given[0], read + output):
            return read, one.output, _find_linearizable_norm(path, one)
    for before in (one.given[0] for one in norms if one.output is read):
        for one in norms:
            if _is_close(one.given[0], before + output):
                return before, one.given[0], None
    raise AttributionError(
        _format_untraceable_attention_message(
            say("what {path} adds is added to no stream that a norm reads", path=path)
        )
    )


def _find_linearizable_norm(path: str, call: RecordedCall) -> nn.Module:
    """The norm behind a block, if holding its scale makes it the linear map that :class:`FixedScaleNorm` knows."""
    norm, read = call.module, call.given[0].detach().double()
    try:
        held = FixedScaleNorm(norm, read)
        known = _is_close(held(read) + held.bias, call.output)
    except (AttributeError, AssertionError):
        known = False
    if not known:
        raise AttributionError(
            _format_untraceable_attention_message(say("the norm behind {path} is none that is known here", path=path))
        )
    return norm


def _is_close(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same numbers but for rounding."""
    if one.shape != other.shape:
        return False
    one, other = (tensor.detach().double().cpu() for tensor in (one, other))
    return float((one - other).abs().max()) <= BLOCK_TOLERANCE * max(float(one.abs().max()), float(other.abs().max()))


def _check_only_blocks_mix_positions(embedded: Tensor, found: Sequence[_FoundBlock]) -> None:
    """Refuse a stack in which anything but its blocks lets one position read another."""
    _check_positions_stay_independent(
        zip([embedded, *(one.after for one in found)], (one.before for one in found), strict=False)
    )


def _check_positions_stay_independent(steps: Iterable[tuple[Tensor, Tensor]]) -> None:
    """Refuse steps (from, to), both (1, N, D), in which a position of the second depends on another of the first.

    The first and the last position are tried, in a random direction each.
    """
    for earlier, later in steps:
        if later is earlier:
            continue
        for row in (0, later.shape[1] - 1):
            direction = torch.randn(later.shape[-1], generator=torch.Generator("cpu").manual_seed(0), device="cpu")
            value = later[0, row] @ direction.to(later)
            (slope,) = torch.autograd.grad(value, earlier, retain_graph=True, allow_unused=True)
            size = torch.zeros(later.shape[1], device="cpu") if slope is None else slope[0].abs().amax(-1).cpu()
            if float(size[row]) == 0 or float(size.sum() - size[row]) > BLOCK_TOLERANCE * float(size[row]):
                raise AttributionError(
                    _format_untraceable_attention_message(say("positions are mixed beside its attention"))
                )


# One forward pass that can be made again with other embeddings.


ForwardHook = Callable[[nn.Module, tuple[Any, ...], dict[str, Any], Any], Any]
"""Module, arguments, named arguments and output -> what replaces the output, or None."""


@dataclass(frozen=True, eq=False)
class RepeatablePass:
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
    one_text: bool = False
    """Whether source and target are one text, of a decoder alone: then both ids are the whole of it."""


def find_predicted_target(reading: RepeatablePass, position: int) -> tuple[Target, Tensor]:
    """Return the piece predicted at a row as the target, and its value (1,).

    It is what was fed next, where the names of the pieces say so, and else the most probable.
    """
    logits = compute_row_logits(reading, {}, position)
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


def compute_row_logits(
    reading: RepeatablePass, changes: Mapping[int, Callable[[Tensor], Tensor]], position: int
) -> Tensor:
    """Return logits (1, 1, V) of one row, the embeddings of source (0) or target (1) changed at their first lookup."""
    with ExitStack() as stack:
        for side, change in changes.items():
            stack.enter_context(
                hook_modules([reading.tables[side]], _make_first_lookup_hook(reading.ids[side], change))
            )
        return reading.run()[:, position : position + 1]


def _make_first_lookup_hook(ids: Tensor, change: Callable[[Tensor], Tensor]) -> ForwardHook:
    done: list[bool] = []

    def hook(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Tensor) -> Tensor | None:
        if done or not given or not torch.equal(given[0], ids):
            return None
        done.append(True)
        return change(output)

    return hook


@contextmanager
def hook_modules(modules: Iterable[nn.Module], hook: ForwardHook) -> Iterator[None]:
    """Hook modules inside the block. The hooks act in this thread alone, since the model may be shared."""
    observer = object()

    def own(*call: Any) -> Any:
        return hook(*call) if is_observing(observer) else None

    with declare_observer(observer), ExitStack() as stack:
        for module in modules:
            stack.callback(module.register_forward_hook(own, with_kwargs=True).remove)
        yield


def record_repeatable_pass(model: LocalModel, text: str) -> RepeatablePass:
    """Run a model on a text, and return the pass as one that can be made again.

    Raises AttributionError where its tokens name no source and target, or its embeddings are not found.
    """
    lookups: list[tuple[nn.Module, Any]] = []
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def look_up(table: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        lookups.append((table, given[0] if given else named.get("input")))

    def call(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        calls.append((given, dict(named)))

    with torch.no_grad(), hook_modules(_find_embedding_tables(model.model), look_up), hook_modules([model.model], call):
        tokens = model.run(text)
    if not isinstance(tokens, Mapping) or {"source", "target"} - set(tokens):
        raise AttributionError(say("This model has no source and target to attribute to: its tokens must name both."))
    source, target, predicted = (tuple(map(str, tokens.get(side, ()))) for side in ("source", "target", "predicted"))
    texts = [(table, ids) for table, ids in lookups if isinstance(ids, Tensor) and _is_token_id_sequence(ids)]
    first = next((at for at, (_, ids) in enumerate(texts) if ids.shape[1] == len(source)), None)
    if first is None or first + 1 == len(texts):
        raise AttributionError(
            say("The embeddings of this model are not nn.Embedding modules that look up its tokens.")
        )
    (table, ids), *rest = texts[first:]
    inputs = torch.cat([one for _, one in rest], 1)[:, : len(target)]
    run = _make_rerun_function(model.model, calls[-1], ids, inputs)
    return RepeatablePass(model.model, run, (table, rest[0][0]), (ids, inputs), source, target, predicted or target)


def _find_embedding_tables(model: nn.Module) -> list[nn.Module]:
    """The embeddings of tokens, where the model says which they are (transformers), else all that it has.

    Some models of transformers look ids up in their table of positions as well, to count them.
    """
    sides = [getattr(model, name, None) for name in ("get_encoder", "get_decoder")]
    if all(callable(one) for one in sides):
        return list(dict.fromkeys(one().get_input_embeddings() for one in sides if one is not None))
    return [module for module in model.modules() if isinstance(module, nn.Embedding)]


def _is_token_id_sequence(ids: Tensor) -> bool:
    """Whether ids are one text, and not positions, a row that counts up, nor distances, a row for each position."""
    if ids.ndim != 2 or len(ids) != 1 or ids.is_floating_point():
        return False
    return ids.shape[1] == 1 or not bool((ids[:, 1:] - ids[:, :-1] == 1).all())


def _make_rerun_function(
    model: nn.Module, call: tuple[tuple[Any, ...], dict[str, Any]], ids: Tensor, inputs: Tensor
) -> Callable[[], Tensor]:
    """The pass made again: by ids where the model takes both sides so (Hugging Face), else by the call it had."""
    named = inspect.signature(model.forward).parameters
    if {"input_ids", "decoder_input_ids"} <= set(named):
        return lambda: model(input_ids=ids, decoder_input_ids=inputs, use_cache=False).logits

    def rerun_call() -> Tensor:
        found = model(*call[0], **call[1])
        logits = getattr(found, "logits", found)
        if not isinstance(logits, Tensor) or logits.ndim != 3:
            raise AttributionError(say("This model's output is not logits (1, T, V), so no word can be attributed."))
        return logits

    return rerun_call


class AnyModelLine:
    """The line of :class:`.gradients.EmbeddingLine` from zero to the text, at one row of the output of any model.

    Every point takes a forward pass.
    """

    def __init__(self, reading: RepeatablePass, position: int) -> None:
        self.reading, self.position = reading, position
        with torch.no_grad():
            self.target, _ = find_predicted_target(reading, position)
        self.pieces = len(self.target.source_ids)

    def values(self, points: Tensor) -> Tensor:
        """Return F at points (N,) of the line: (N,) float64."""
        with torch.no_grad():
            return torch.cat([self._value(self._make_scale_changes(float(one))) for one in points]).cpu()

    def slopes(self, points: Tensor) -> Tensor:
        """Return dF/dt at points (N,), split over the pieces: gradient x embedding, (N, S + P) float64."""
        return torch.stack([self._slope(float(one)) for one in points]).cpu()

    def _slope(self, point: float) -> Tensor:
        leaves: dict[int, Tensor] = {}
        inputs: dict[int, Tensor] = {}

        def leaf(side: int) -> Callable[[Tensor], Tensor]:
            def change_tensor(embedded: Tensor) -> Tensor:
                inputs[side] = embedded.detach()
                leaves[side] = (inputs[side] * point).requires_grad_()
                return leaves[side]

            return change_tensor

        with torch.enable_grad():
            value = self._value({side: leaf(side) for side in (0, 1)})
            gradients = torch.autograd.grad(value.sum(), [leaves[0], leaves[1]])
        source, fed = ((one.double() * inputs[side].double()).sum(-1)[0] for side, one in enumerate(gradients))
        return torch.cat([source, fed[: self.position + 1]])

    def _make_scale_changes(self, point: float) -> dict[int, Callable[[Tensor], Tensor]]:
        return dict.fromkeys((0, 1), lambda embedded: embedded * point)

    def _value(self, changes: dict[int, Callable[[Tensor], Tensor]]) -> Tensor:
        return self.target.value(compute_row_logits(self.reading, changes, self.position))
