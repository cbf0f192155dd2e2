"""Decodings that run beside the page: it shows what there is, can stop them, and never waits for a slow model."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from model.devices import OutOfMemory, leave_gpu
from model.interventions.apply import intervening
from model.interventions.changes import InterventionError, parse
from model.language.current import current_language, speaking
from model.language.say import say, to_say
from model.translate import InputError

from ..streamlit_internals import connection_probe
from ..turns import TURNS, BusyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from model.decoding.beam_tree import BeamTree
    from model.decoding.observer_check import ObserverCheck
    from model.live.live_model import LiveModel
    from model.translate import Translation

    from .request import Request

PUBLISH_EVERY = 0.15
"""Seconds between two looks at an unfinished decoding."""
PATIENCE = 1.0
"""Seconds the page waits for a decoding before it shows an unfinished one."""
MOST_RUNS = 24
"""Decodings that a visitor's session keeps."""
GPU_IS_FULL = to_say(
    "The GPU has no memory left. From now on everything is computed on the CPU: please decode once more."
)


@dataclass(frozen=True, eq=False)
class Progress:
    """The translation that a run has so far."""

    result: Translation | None = None
    tree: BeamTree | None = None
    """The tree of a beam search."""


class Run:
    """One decoding in a thread of its own."""

    def __init__(self, model: LiveModel, request: Request, wanted: Callable[[], bool] = lambda: True) -> None:
        self.request = request
        self.language = current_language()
        """That of the visitor who asked, in which an error is said."""
        self._wanted = wanted
        self.progress = Progress()
        self.check: ObserverCheck | None = None
        self.error: Exception | None = None
        self.stopped = False
        self.ticket = TURNS.ticket(request.method == "beam")
        self.waits = True
        """Whether its turn to compute has not come yet."""
        self.abandoned = False
        """Ended because its visitor had gone: what there is of it is a part."""
        self._finished = threading.Event()
        self._started = self._published = time.monotonic()
        self._thread = threading.Thread(target=self._work, args=(model,), daemon=True)
        self._thread.start()

    @property
    def working(self) -> bool:
        return not self._finished.is_set()

    def speaks_another(self) -> bool:
        """Whether it has failed with a sentence that is not in the language of the visitor now."""
        return self.error is not None and self.language != current_language()

    def wait(self, seconds: float) -> None:
        self._finished.wait(seconds)

    def stop(self) -> None:
        """Keep what there is and end after the step under way; what has ended stays as it is."""
        self.stopped = self.stopped or self.working

    def _work(self, model: LiveModel) -> None:
        with speaking(self.language):
            self._run(model)

    def _run(self, model: LiveModel) -> None:
        try:
            with TURNS.turn(self.ticket), intervening(model.model, parse(self.request.changes)):
                self.waits = False
                self.progress = self._decode(model)
                if self.progress.result:  # with the changes still made: only the capture may differ
                    self.check = model.check_observer(self.progress.result)
        except OutOfMemory:
            leave_gpu()
            self.error = InputError(say(GPU_IS_FULL))
        except Exception as error:  # shown by the page, which runs in another thread
            self.error = error
        finally:
            self._finished.set()

    def _decode(self, model: LiveModel) -> Progress:
        request = self.request
        if request.method == "given":
            return Progress(model.force(request.text, request.given))
        if request.method != "beam":
            show = self._publisher(Progress)
            return Progress(model.translate(request.text, request.strategy, on_step=show))
        show = self._publisher(lambda tree: Progress(tree=tree))
        tree = model.search(request.text, request.width, request.penalty, request.constraints, request.stop, show)
        result = model.force(request.text, _best(tree))
        return Progress(replace(result, seconds=time.monotonic() - self._started), tree)

    def _publisher(self, progress: Callable[[Any], Progress]) -> Callable[[Callable[[], Any]], bool]:
        """A decoder's `on_step`: now and then take over what there is, and go on unless stopped."""

        def on_step(so_far: Callable[[], Any]) -> bool:
            TURNS.pause()
            if time.monotonic() - self._published > PUBLISH_EVERY:
                self.abandoned = self.abandoned or not self._wanted()
                self.progress = progress(so_far())
                self._published = time.monotonic()
            return not (self.stopped or self.abandoned)

        return on_step


def _best(tree: BeamTree) -> tuple[int, ...]:
    """The best translation; of a search that was stopped before it found one, the best beginning."""
    if tree.best:
        return tree.best[0].token_ids
    last = tree.nodes[-1].position
    return max((node for node in tree.nodes if node.position == last), key=lambda node: node.score).token_ids


def run(model: LiveModel, request: Request) -> Run:
    """This visitor's run of `request`: the one there is, or a new one, for which an unfinished one is stopped.

    Ends the page with a sentence when the text cannot be decoded.
    """
    runs: dict[tuple[str, Request], Run] = st.session_state.setdefault("runs", {})
    key = (model.name, request)
    if key not in runs or runs[key].abandoned or runs[key].speaks_another():
        for other_key, other in list(runs.items()):
            if other.working:  # Nobody asked for a part of it: who comes back to it gets the whole.
                other.stop()
                del runs[other_key]
        runs[key] = Run(model, request, connection_probe())
        runs[key].wait(PATIENCE)
        for oldest in list(runs)[:-MOST_RUNS]:
            del runs[oldest]
    return runs[key]


def finished_runs(model: LiveModel, text: str) -> list[Run]:
    """This visitor's finished runs of a sentence, in the order they were asked for."""
    runs: dict[tuple[str, Request], Run] = st.session_state.get("runs", {})
    own = (run for (name, request), run in runs.items() if (name, request.text) == (model.name, text))
    return [run for run in own if not (run.working or run.abandoned) and run.progress.result]


def with_path(model: LiveModel, progress: Progress, request: Request, ids: tuple[int, ...]) -> Progress:
    """The progress with the translation that ends in a node of the beam tree; as it is where `ids` is empty."""
    if not ids:
        return progress
    with intervening(model.model, parse(request.changes)):
        return replace(progress, result=model.force(request.text, ids))


def input_problem(run: Run) -> str:
    """The sentence to show when a run has failed by its input; "" when it has not. Any other error is raised again."""
    if run.error is None or isinstance(run.error, (InputError, InterventionError, BusyError)):
        return "" if run.error is None else str(run.error)
    raise run.error
