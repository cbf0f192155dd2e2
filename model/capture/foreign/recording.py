"""Calls of attention, in the order in which they were made, and the traces that they become."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from torch import Tensor, nn

from ...text.token_names import Tokens, name_tokens
from ...trace import KINDS, AttentionTrace, Kind, TraceError
from ..base import Capture
from .call_site import Place
from .fused_weights import Attention
from .kinds import Facts, is_causal, kinds
from .looking import looking
from .named_modules import holder
from .stacking import last_runs, map_of
from .time_steps import as_rows, is_step

ATTENTION = re.compile(r"att(n|ention)|mha|\bsa\b", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Call:
    """One attention of one module."""

    path: str
    attention: Attention
    crossing: bool
    """Whether queries and keys were made of different tensors, where that can be known."""
    fused: bool
    """Whether a fused kernel ran, and the weights were computed beside it."""
    fast_path: bool
    """Whether nn.MultiheadAttention would have gone its fast way if nobody looked."""
    beside: Tensor | None = None
    """Largest difference between the kernel's output and weights times values; 0-dimensional."""
    run: int = 0
    forward: int = 0
    """Which of the outermost forwards made it; of several in one run, each is a layer or a step."""

    @property
    def shape(self) -> tuple[int, int]:
        """(Q, K)"""
        queries, keys = self.attention.weights.shape[2:]
        return queries, keys


@dataclass(eq=False)
class ForeignRecording(Capture):
    """What was seen of one model in one block."""

    model: nn.Module
    tensors: frozenset[str] = frozenset()
    named: Mapping[str, Kind | None] = field(default_factory=dict)
    tokens: Tokens | None = None
    calls: list[Call] = field(default_factory=list)
    passed_over: set[str] = field(default_factory=set)
    """Modules that made a softmax and were not taken for attention."""
    unread: dict[str, str] = field(default_factory=dict)
    """Modules of attention whose softmax was not recorded, and over what it ran."""

    def __post_init__(self) -> None:
        found = self.model.named_modules(remove_duplicate=True)
        self.modules = {id(module): (path, module) for path, module in found}
        self._run = -1
        self._forward = -1
        self._frames: tuple[FrameType | None, FrameType | None] = (None, None)

    def wants(self, path: str) -> bool:
        """Whether calls at this path are recorded."""
        return not self.named or holder(path, self.named) is not None

    def is_attention(self, found: Place, axes: int) -> bool:
        """Whether a softmax of so many axes is one of attention: by the module's path or class, or as it is named."""
        if self.named:
            return self.wants(found.path)
        inner = any(ATTENTION.search(path) for path, _ in found.module.named_modules())
        by_class = ATTENTION.search(type(found.module).__name__) and not (found.module is self.model and inner)
        return axes > 2 and bool(ATTENTION.search(found.path) or by_class)

    def add(self, found: Place, call: Call) -> None:
        self.add_at(found.path, found, call)

    def add_at(self, path: str, found: Place | None, call: Call) -> None:
        """Note a call.

        A run ends with its frame, and where a module comes again in another shape, or in another forward, unless that
        may be the next time step.
        """
        run, forward = (found.run, found.forward) if found else (None, None)
        if forward is None or forward is not self._frames[1]:
            self._forward += 1
        before = [one for one in self._of_run() if one.path == path]
        step = is_step(call)
        again = any(one.shape != call.shape or (one.forward != self._forward and not step) for one in before)
        if run is None or run is not self._frames[0] or again:
            self._run += 1
        self._frames = run, forward
        kept = {name: tensor for name, tensor in call.attention.tensors.items() if name in self.tensors}
        attention = replace(call.attention, tensors=kept)
        self.calls.append(replace(call, attention=attention, run=self._run, forward=self._forward))

    def seen_since(self, path: str) -> bool:
        """Whether this run has a call at or below the path already."""
        return any(holder(call.path, {path: None}) is not None for call in self._of_run())

    def end(self) -> None:
        """Let go of the last run's frames and of what they hold."""
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
    def looking(self) -> str:
        return " ".join(filter(None, (looking(self.calls), self._unread())))

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
        settings = {"looking": self.looking, "device": self.calls[-1].attention.weights.device.type}
        trace = AttentionTrace(**maps, model=type(self.model).__name__, settings=settings)
        return trace if self.tokens is None else name_tokens(trace, self.tokens, index)

    def _unread(self) -> str:
        if not self.unread:
            return ""
        some = ", ".join(f"{path or 'the model itself'} ({over})" for path, over in sorted(self.unread.items())[:8])
        return f"Not recorded, because the axes do not tell samples, heads, queries and keys: softmax of {some}."

    def _nothing(self) -> str:
        name = type(self.model).__name__
        if self.unread:
            return f"Nothing was captured of this {name}. {self._unread()}"
        if self.passed_over:
            some = ", ".join(sorted(self.passed_over)[:8]) or "the model itself"
            return (
                f"Nothing was captured: no attention was found in this {name}. A softmax ran in {some}: if that is "
                "attention, name it: capture_attention(model, modules=[...])."
            )
        return f"Nothing was captured: run the model inside the block. No attention was found in this {name} so far."

    def _kinds(self, calls: Sequence[Call]) -> Mapping[str, Kind]:
        by_path: dict[str, list[Call]] = {}
        for call in calls:
            by_path.setdefault(call.path, []).append(call)
        facts = [Facts(path, any(one.crossing for one in found), _causal(found)) for path, found in by_path.items()]
        guessed = kinds(facts, type(self.model).__name__)
        said = {path: self.named.get(holder(path, self.named) or "") for path in by_path}
        return {path: said[path] or guessed[path] for path in by_path}


def _causal(calls: Sequence[Call]) -> bool | None:
    found = {is_causal(call.attention.allowed) for call in calls} - {None}
    return None if not found else False not in found
