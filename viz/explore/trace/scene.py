"""What the views of Explore need of a trace that comes without a translation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from model.trace import AttentionTrace
from viz.explore.run import Reading
from viz.explore.scene import Scene

if TYPE_CHECKING:
    from model.untrusted_trace import Opened
    from viz.explore.choices import Display
    from viz.explore.token_display import Arranged


class Named(NamedTuple):
    """Stands where a scene has its model."""

    name: str


class Run(NamedTuple):
    """Stands where a scene has its translation."""

    trace: AttentionTrace
    steps: tuple[()] = ()


class TraceScene(Scene):
    """One head of a trace. Nothing can be asked of a model."""

    @property
    def whole_trace(self) -> AttentionTrace:
        """The trace itself: it holds queries, keys and values if they were saved."""
        return self.result.trace


def scene_of(opened: Opened, arranged: Arranged, layer: int, head: int, display: Display) -> TraceScene:
    """A scene of an opened trace; layer and head count from 0."""
    name = opened.shown.model
    model: Any = Named(name)
    run: Any = Run(opened.shown)
    return TraceScene(model, Reading(name, opened.identity), run, arranged, layer, head, display)
