"""Attention weights of every layer and head, read through forward hooks while a model runs.

    with capture_attention(model) as capture:
        model(source, target)
    capture.trace.cross.weights        # (L, H, T, S)

Nothing in the model knows of it, no output changes, and two threads capturing on one shared model get their own traces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from torch import Tensor, nn

from ..language.say import listed, say
from ..network.hooks import OutputHook, hook_outputs
from ..pytorch.torch_internals import eagerly, uncompiled
from ..text.token_names import Tokens
from ..trace import TENSORS, Kind, TraceError
from .base import Capture, Recording
from .foreign.watcher import watch
from .recording import HookRecording
from .sites import AttentionSite, attention_sites


@contextmanager
def capture_attention(
    model: nn.Module,
    tensors: Collection[str] = (),
    *,
    modules: Collection[str] | Mapping[str, Kind] = (),
    tokens: Tokens | None = None,
    half: bool = False,
    detach: bool = True,
) -> Iterator[Capture]:
    """Record the attention of whatever `model` runs inside the block, in this thread.

    Args:
        model: one of this project, or any other: what it does by ``F.scaled_dot_product_attention``, flex_attention,
            nn.MultiheadAttention, or a softmax in a module called attention is recorded.
        tensors: more to keep: any of q, k, v, scores, masked_scores. Of a foreign model only those that can be seen.
        modules: paths or patterns (``blocks.*.mixer``) of the modules that are attention, where names do not say
            so; nothing else is recorded then. A mapping also says what they are: ``{"blocks.*.mixer": "decoder"}``.
        tokens: names of the rows and columns: a list of strings, one list for each sample of a batch, or either as
            ``{"source": ..., "target": ...}``.
        half: store weights in half precision, in half the memory, until a trace is made of them: each is then off by
            at most 2.5e-4.
        detach: False to keep the graph of gradients, for :meth:`~.base.Capture.gradients`; where a fused kernel would
            run, weights times values are computed in its place.

    The model is as it was when the block ends, also by an exception. What is compiled runs uncompiled inside the
    block. A module that is scripted, exported or runs in another thread cannot be observed. Raises TraceError for
    names that do not exist.
    """
    if unknown := set(tensors) - set(TENSORS):
        raise TraceError(
            say("Cannot capture {unknown}; there are {known}.", unknown=listed(sorted(unknown)), known=listed(TENSORS))
        )
    model = uncompiled(model)
    sites = attention_sites(model)
    own = bool(sites) and not modules
    block: AbstractContextManager[Recording]
    block = (
        _record_hook_points(model, sites, tensors, half, not detach)
        if own
        else watch(model, tensors, modules, half, not detach)
    )
    with eagerly(), block as recording:
        yield Capture(recording, tokens)


@contextmanager
def _record_hook_points(
    model: nn.Module, sites: list[AttentionSite], tensors: Collection[str], half: bool, graph: bool
) -> Iterator[HookRecording]:
    """The recording of a model with hook points."""
    recording = HookRecording(sites, type(model).__name__)
    functions: dict[nn.Module, OutputHook] = {}
    for site in sites:
        for point in ("weights", *tensors):
            kept = recording.calls[site.path, point]
            keeper = _half_keeper if half and point == "weights" else _keeper
            functions[getattr(site.module, point)] = keeper(kept)
            if graph and point == "weights":
                functions[getattr(site.module, point)] = _in_graph(keeper(kept), recording.graph[site.path])
        functions[site.module.get_submodule("mask")] = _mask_keeper(recording, site.path)
    with hook_outputs(functions):
        yield recording


def _keeper(calls: list[Tensor]) -> OutputHook:
    def keep(output: Tensor) -> None:
        calls.append(output.detach())

    return keep


def _in_graph(keep: OutputHook, graph: list[Tensor]) -> OutputHook:
    """The same, which keeps the tensor itself as well."""

    def also(output: Tensor) -> None:
        graph.append(output)
        keep(output)

    return also


def _half_keeper(calls: list[Tensor]) -> OutputHook:
    def keep(output: Tensor) -> None:
        calls.append(output.detach().half())

    return keep


def _mask_keeper(recording: HookRecording, path: str) -> OutputHook:
    """A call need not have a mask, so a mask is kept by the number of its call: that of the weights to come."""

    def keep(output: Tensor) -> None:
        recording.masks[path, len(recording.calls[path, "weights"])] = output.detach()

    return keep
