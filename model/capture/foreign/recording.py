"""Calls of attention, in the order in which they were made, and the traces that they become."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from torch import nn

from ...trace import KINDS, AttentionTrace, Kind, TraceError
from .call import Call
from .call_site import CallSite
from .kinds import Facts, is_causal, kinds
from .named_modules import named_ancestor
from .stacking import last_runs, map_of
from .time_steps import as_rows, is_step

ATTENTION = re.compile(r"att(n|ention)|mha|\bsa\b", re.IGNORECASE)
UNCHANGED = "The model computed these weights itself, and observing it changed nothing."
FAST_PATH = (
    "Unobserved, torch would have taken the fused fast path of nn.TransformerEncoder or nn.MultiheadAttention; "
    "observed, its plain path ran: outputs of real tokens may differ in the last digits, those of padding more."
)


@dataclass(eq=False)
class ForeignRecording:
    """The calls of attention that one model made in one block."""

    model: nn.Module
    tensors: frozenset[str] = frozenset()
    kinds_by_path: Mapping[str, Kind | None] = field(default_factory=dict)
    """The paths of the modules that alone are recorded, and the kind that each was said to be; empty for all."""
    calls: list[Call] = field(default_factory=list)
    other_softmaxes: set[str] = field(default_factory=set)
    """Modules that made a softmax and were not taken for attention."""
    unknown_axes: dict[str, str] = field(default_factory=dict)
    """Modules of attention whose softmax was not recorded, and the axis that it ran over."""

    def __post_init__(self) -> None:
        self.modules = {id(module): (path, module) for path, module in self.model.named_modules()}
        self._run = -1
        self._forward = -1
        self._frames: tuple[FrameType | None, FrameType | None] = (None, None)

    def records(self, path: str) -> bool:
        """Whether calls at this path are recorded."""
        return not self.kinds_by_path or named_ancestor(path, self.kinds_by_path) is not None

    def is_attention(self, site: CallSite, axes: int) -> bool:
        """Whether a softmax of so many axes is one of attention: by the module's path or class, or as it is named."""
        if self.kinds_by_path:
            return self.records(site.path)
        inner = any(ATTENTION.search(path) for path, _ in site.module.named_modules())
        by_class = ATTENTION.search(type(site.module).__name__) and not (site.module is self.model and inner)
        return axes > 2 and bool(ATTENTION.search(site.path) or by_class)

    def add(self, call: Call, site: CallSite | None) -> None:
        """Note a call made at `site`, None where it was not made inside the model.

        A run ends with its frame, and where a module comes again in another shape, or in another forward, unless that
        may be the next time step.
        """
        run, forward = (site.run, site.forward) if site else (None, None)
        if forward is None or forward is not self._frames[1]:
            self._forward += 1
        before = [one for one in self._of_run() if one.path == call.path]
        step = is_step(call)
        again = any(one.shape != call.shape or (one.forward != self._forward and not step) for one in before)
        if run is None or run is not self._frames[0] or again:
            self._run += 1
        self._frames = run, forward
        kept = {name: tensor for name, tensor in call.attention.tensors.items() if name in self.tensors}
        attention = replace(call.attention, tensors=kept)
        self.calls.append(replace(call, attention=attention, run=self._run, forward=self._forward))

    def has_call_below(self, path: str) -> bool:
        """Whether this run has a call at or below the path already."""
        return any(named_ancestor(call.path, {path: None}) is not None for call in self._of_run())

    def end(self) -> None:
        """Release the last run's frames and of what they hold."""
        self._frames = (None, None)

    def _of_run(self) -> list[Call]:
        found = []
        for call in reversed(self.calls):
            if call.run != self._run:
                break
            found.append(call)
        return found

    def batches(self) -> Collection[int]:
        return {call.attention.weights.shape[0] for call in self.calls}

    @property
    def observer_effect(self) -> str:
        sentences = [FAST_PATH] if any(call.fast_path for call in self.calls) else []
        sentences += [_fused_in_words(self.calls)] if any(call.fused for call in self.calls) else []
        sentences = sentences or [UNCHANGED]
        return " ".join([*sentences, self._unknown_axes_in_words()] if self.unknown_axes else sentences)

    def sample(self, index: int) -> AttentionTrace:
        if not self.calls:
            raise TraceError(self._nothing())
        calls = as_rows(self.calls)
        of = self._kinds(calls)
        by_kind: dict[Kind, list[Call]] = {}
        for call in calls:
            by_kind.setdefault(of[call.path], []).append(call)
        maps: dict[str, Any] = {
            kind: map_of(kind, last_runs(kind, by_kind), index) for kind in KINDS if kind in by_kind
        }
        settings = {"observer_effect": self.observer_effect, "device": self.calls[-1].attention.weights.device.type}
        return AttentionTrace(**maps, model=type(self.model).__name__, settings=settings)

    def _unknown_axes_in_words(self) -> str:
        first = sorted(self.unknown_axes.items())[:8]
        some = ", ".join(f"{path or 'the model itself'} ({axis})" for path, axis in first)
        return f"Not recorded, because the axes do not tell samples, heads, queries and keys: softmax of {some}."

    def _nothing(self) -> str:
        name = type(self.model).__name__
        if self.unknown_axes:
            return f"Nothing was captured of this {name}. {self._unknown_axes_in_words()}"
        if self.other_softmaxes:
            some = ", ".join(sorted(self.other_softmaxes)[:8]) or "the model itself"
            return (
                f"Nothing was captured: no attention was found in this {name}. A softmax ran in {some}: if that is "
                "attention, name it: capture_attention(model, modules=[...])."
            )
        return f"Nothing was captured: run the model inside the block. No attention was found in this {name} so far."

    def _kinds(self, calls: Sequence[Call]) -> Mapping[str, Kind]:
        by_path: dict[str, list[Call]] = {}
        for call in calls:
            by_path.setdefault(call.path, []).append(call)
        facts = [Facts(path, any(one.is_cross for one in found), _causal(found)) for path, found in by_path.items()]
        guessed = kinds(facts, type(self.model).__name__)
        said = {path: self.kinds_by_path.get(named_ancestor(path, self.kinds_by_path) or "") for path in by_path}
        return {path: said[path] or guessed[path] for path in by_path}


def _fused_in_words(calls: Sequence[Call]) -> str:
    """How far the weights shown explain the outputs of the fused kernels that ran."""
    kernels = "A fused kernel ran, as it does unobserved; the weights were computed beside it"
    differences = [call.kernel_difference.item() for call in calls if call.kernel_difference is not None]
    if not differences:
        return f"{kernels}, before dropout."
    return f"{kernels}, and weights times values differ from its output by at most {max(differences):.1e}."


def _causal(calls: Sequence[Call]) -> bool | None:
    found = {is_causal(call.attention.allowed) for call in calls} - {None}
    return None if not found else False not in found
