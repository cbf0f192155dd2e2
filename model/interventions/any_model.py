"""Heads of anybody's model switched off, made uniform or copied, inside one block and for one thread.

    with capture_attention(model) as capture:
        model(x)
    with intervene(model, "decoder.3.2:off", capture.trace):
        model(x)

Nothing is put on the model: the calls of attention are let through, and what a changed head gives to the output
projection is replaced. Open a capture inside the block, and it records the changed weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from ..capture.any_model.axes import CallSite, find_call_site, gather_axis_evidence, infer_layout, iterate_tensors
from ..capture.any_model.kernel_weights import (
    compute_fused_attention,
    read_block_attention,
    read_softmax_attention,
    unfold_heads,
)
from ..capture.any_model.watcher import (
    SOFTMAX_FUNCTIONS,
    HeadEdit,
    HeadEdits,
    is_editing_paused,
    read_softmax_axis,
    register_active_head_edits,
)
from ..capture.attention import find_attention_sites
from ..language import join_items, say, to_say
from ..network.hooks import is_observed
from ..torch_internals import check_frame_reading_supported, copy_without_override_check, run_eagerly, unwrap_compiled
from ..trace import AttentionTrace, Kind
from .apply import apply_changes
from .changes import (
    HeadChange,
    InterventionError,
    ModelChange,
    duplicate_head_change_text,
    parse_changes,
    too_few_heads_text,
    too_few_layers_text,
)

CAPTURE_FIRST_MESSAGE = to_say(
    "Which module is which layer is read from a trace: run the model once inside capture_attention(model), and give "
    "that capture's trace."
)


@contextmanager
def intervene(
    model: nn.Module, changes: str | Sequence[ModelChange], trace: AttentionTrace | None = None
) -> Iterator[None]:
    """Make the changes to whatever `model` runs inside the block, in this thread.

    Args:
        model: one of this project, or any other whose attention can be captured.
        changes: text such as ``"decoder.3.2:off, encoder.1.1:uniform, cross.2.4:head.1"``, counted from 1, or the
            values of :mod:`.changes`. Masks can be changed in models of this project only.
        trace: of a model that is not of this project, a trace captured of it, which says where its layers are.

    A head that is off gives zeros to the output projection; a uniform one averages the values that it may attend to; a
    copy has the weights of another head of its layer and its own values. Copied weights carry no gradient into the
    scores where a fused kernel ran. Raises InterventionError for what the model has not, for axes that cannot be told,
    and, when the block ends, for a changed head that computed nothing in it.
    """
    asked = parse_changes(changes) if isinstance(changes, str) else tuple(changes)
    model = unwrap_compiled(model)
    if find_attention_sites(model):
        with apply_changes(model, asked):
            yield
        return
    if trace is None:
        raise InterventionError(say(CAPTURE_FIRST_MESSAGE))
    if asked and is_observed():
        raise InterventionError(
            say("Open intervene around capture_attention: a capture inside it sees what is changed.")
        )
    check_frame_reading_supported(model)
    edits = make_head_edits(model, asked, trace)
    with run_eagerly(), register_active_head_edits(edits), _HeadChanger(model, edits):
        yield
    if unmade := sorted(set(edits.by_path) - edits.made):
        raise InterventionError(
            say("Nothing was changed: {modules} computed no attention inside the block.", modules=join_items(unmade))
        )


def head_effects(
    model: nn.Module, run: Callable[[], Any], trace: AttentionTrace, kinds: Sequence[Kind] = ()
) -> Mapping[Kind, np.ndarray]:
    """Return how far the output moves with each head off alone: (L, H) for each kind of the trace, or for `kinds`.

    `run` runs the model and returns its output; compared are all floating-point tensors in it, end to end, as
    norm(with the head off - unchanged) / norm(unchanged).
    """
    unchanged = _flatten_run_output(run)
    size = max(float(unchanged.norm()), torch.finfo(torch.float64).tiny)
    found: dict[Kind, np.ndarray] = {}
    for kind in kinds or tuple(trace.maps):
        attention = trace.maps[kind]
        found[kind] = np.zeros((attention.layers, attention.heads))
        for layer, head in np.ndindex(attention.layers, attention.heads):
            with intervene(model, [HeadChange(kind, layer, head)], trace):
                found[kind][layer, head] = float((_flatten_run_output(run) - unchanged).norm()) / size
    return found


@torch.no_grad()
def _flatten_run_output(run: Callable[[], Any]) -> Tensor:
    """All numbers of what a model returned, float64."""
    output = run()
    if not isinstance(output, Tensor | list | tuple | dict) and hasattr(output, "__dict__"):
        output = vars(output)
    found = [
        tensor.detach().double().flatten().cpu() for tensor in iterate_tensors(output) if tensor.is_floating_point()
    ]
    if not found:
        raise InterventionError(say("run() returned no tensor of floating-point numbers to be compared."))
    return torch.cat(found)


def make_head_edits(model: nn.Module, changes: Sequence[ModelChange], trace: AttentionTrace) -> HeadEdits:
    """Return which heads of which modules change, by the paths that a trace has. Raises InterventionError."""
    modules = dict(model.named_modules())
    by_path: dict[str, list[list[HeadEdit]]] = {}
    heads: dict[str, int] = {}
    for change in changes:
        if not isinstance(change, HeadChange):
            raise InterventionError(
                say("{change}: masks can be changed in models of this project only.", change=change)
            )
        attention = trace.maps.get(change.kind)
        if attention is None or not 0 <= change.layer < attention.layers:
            have = 0 if attention is None else attention.layers
            raise InterventionError(too_few_layers_text(change, have))
        if not all(0 <= head < attention.heads for head in (change.head, change.source or 0)):
            raise InterventionError(too_few_heads_text(change, attention.heads))
        path = attention.layer_paths[change.layer] if attention.layer_paths else ""
        if not path or path not in modules:
            raise InterventionError(
                say("{change}: the trace names no module of this model for that layer.", change=change)
            )
        same = [layer for layer, one in enumerate(attention.layer_paths) if one == path]
        calls = by_path.setdefault(path, [[] for _ in same])
        own = calls[same.index(change.layer)]
        if any(edit.head == change.head for edit in own):
            raise InterventionError(duplicate_head_change_text(change))
        own.append(HeadEdit(change.head, change.change, change.source))
        heads[path] = attention.heads
    return HeadEdits(by_path, heads)


class _HeadChanger(TorchFunctionMode):
    """A mode that replaces what the changed heads give. Modes are a thread's own."""

    def __init__(self, model: nn.Module, edits: HeadEdits) -> None:
        super().__init__()
        self._edits = edits
        self._modules = {id(module): (path, module) for path, module in model.named_modules()}

    @cached_property
    def _multi_head(self) -> Callable[..., Any]:
        return copy_without_override_check(F.multi_head_attention_forward)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if func is F.multi_head_attention_forward:
            with self:
                return self._multi_head(*args, **given)
        output = func(*args, **given)
        if (func is F.scaled_dot_product_attention or func in SOFTMAX_FUNCTIONS) and not is_editing_paused():
            site = find_call_site(self._modules)
            edits = self._edits.select_call_edits(site.path if site else None)
            if site is not None and edits:
                change = (
                    _edit_fused_attention_output if func is F.scaled_dot_product_attention else _edit_attention_weights
                )
                output = change(edits, site, args, given, output, self._edits.heads[site.path])
                self._edits.made.add(site.path)
        return output


def _edit_fused_attention_output(
    edits: Sequence[HeadEdit], site: CallSite, args: Any, given: dict[str, Any], output: Tensor, heads: int
) -> Tensor:
    """The output of a fused kernel, (B, H, Q, d) in some layout, with another for the changed heads."""
    query, key = (args[place] if len(args) > place else given[name] for place, name in enumerate(("query", "key")))
    if args[4] if len(args) > 4 else given.get("dropout_p", 0.0):
        raise InterventionError(say("{module} drops weights at random: call model.eval() first.", module=site.path))
    layout = infer_layout((*query.shape[:-1], key.shape[-2]), -1, gather_axis_evidence(site), fused=True)
    changed = output.clone()
    view = None if layout is None else layout(changed)
    if layout is None or view is None or view.data_ptr() != changed.data_ptr():
        raise InterventionError(_inseparable_heads_text(site))
    attention = unfold_heads(compute_fused_attention(*args, **given, layout=layout), site.module)
    if attention.weights.shape[1] != heads:
        raise InterventionError(_inseparable_heads_text(site))
    rows = heads // view.shape[1]  # more than 1 where a group of heads stands as rows beside each other
    for edit in edits:
        context = edit.weights(attention.weights, attention.allowed) @ attention.tensors["v"][:, edit.head].float()
        own = view[:, edit.head // rows]
        (own if rows == 1 else own[:, edit.head % rows, None])[:] = context.to(view.dtype)
    return changed


def _edit_attention_weights(
    edits: Sequence[HeadEdit], site: CallSite, args: Any, given: dict[str, Any], output: Tensor, heads: int
) -> Tensor:
    """The output of a softmax, with other weights for the changed heads."""
    scores = args[0] if args else given["input"]
    layout = infer_layout(tuple(output.shape), read_softmax_axis(scores, args, given), gather_axis_evidence(site))
    changed = output.clone()
    view = None if layout is None or read_block_attention(site, scores, output, None) is not None else layout(changed)
    if layout is None or view is None or view.data_ptr() != changed.data_ptr() or view.shape[1] != heads:
        raise InterventionError(_inseparable_heads_text(site))
    weights, allowed = layout(output), read_softmax_attention(scores, output, layout).allowed
    for edit in edits:
        view[:, edit.head] = edit.weights(weights, allowed)
    return changed


def _inseparable_heads_text(site: CallSite) -> str:
    return say(
        "The heads of {module} ({type}) cannot be told apart in what it computes, so none is changed.",
        module=site.path,
        type=type(site.module).__name__,
    )
