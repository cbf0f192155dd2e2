"""Decodings that a visitor requests: each runs in a thread of its own, so the page never waits for a slow model."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from attenscope.decoding.beam import BeamStop, BeamTree
from attenscope.decoding.greedy_and_sampling import NO_CONSTRAINTS, Constraints, ObserverCheck, Sampling, Strategy
from attenscope.devices import OutOfMemory, switch_process_to_cpu
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import InterventionError, parse_changes
from attenscope.language import current_language, say, to_say, use_language
from attenscope.runnable_model import InputError, RunnableModel, Translation
from attenscope.viz.fair_queue import COMPUTE_QUEUE, BusyError
from attenscope.viz.streamlit_internals import create_connection_probe
from attenscope.viz.ui.addresses.decode import DecodeMethod

PUBLISH_SECONDS = 0.15
"""Seconds between two updates of the progress of an unfinished decoding."""
WAIT_SECONDS = 1.0
"""Seconds the page waits for a decoding before it shows an unfinished one."""
MAX_RUNS = 24
"""Decodings that a visitor's session keeps."""
GPU_IS_FULL = to_say(
    "The GPU has no memory left. From now on everything is computed on the CPU: please decode once more."
)


@dataclass(frozen=True, eq=False)
class DecodingProgress:
    """The translation that a run has so far."""

    result: Translation | None = None
    tree: BeamTree | None = None
    """The tree of a beam search."""


class DecodingRun:
    """One decoding in a thread of its own."""

    def __init__(
        self, model: RunnableModel, request: DecodingRequest, wanted: Callable[[], bool] = lambda: True
    ) -> None:
        self.request = request
        self.language = current_language()
        """The language of the visitor who asked; error messages are in it."""
        self._wanted = wanted
        self.progress = DecodingProgress()
        self.check: ObserverCheck | None = None
        self.error: Exception | None = None
        self.stopped = False
        self.ticket = COMPUTE_QUEUE.ticket(request.method == "beam")
        self.waits = True
        """Whether its turn to compute has not come yet."""
        self.abandoned = False
        """Whether it ended early because its visitor had gone; its result is incomplete."""
        self._finished = threading.Event()
        self._started = self._published = time.monotonic()
        self._thread = threading.Thread(target=self._run_in_visitor_language, args=(model,), daemon=True)
        self._thread.start()

    @property
    def is_working(self) -> bool:
        return not self._finished.is_set()

    def has_error_in_other_language(self) -> bool:
        """Whether it has failed with a sentence that is not in the language of the visitor now."""
        return self.error is not None and self.language != current_language()

    def wait(self, seconds: float) -> None:
        self._finished.wait(seconds)

    def stop(self) -> None:
        """Keep what there is and end after the step under way; what has ended stays as it is."""
        self.stopped = self.stopped or self.is_working

    def _run_in_visitor_language(self, model: RunnableModel) -> None:
        with use_language(self.language):
            self._decode_and_check(model)

    def _decode_and_check(self, model: RunnableModel) -> None:
        try:
            changes = parse_changes(self.request.changes)
            with COMPUTE_QUEUE.turn(self.ticket, is_wanted=self._wanted), apply_changes(model.model, changes):
                self.waits = False
                self.progress = self._decode(model)
                if self.progress.result:  # with the changes still made: only the capture may differ
                    self.check = model.check_observer(self.progress.result)
        except OutOfMemory:
            switch_process_to_cpu()
            self.error = InputError(say(GPU_IS_FULL))
        except Exception as error:  # shown by the page, which runs in another thread
            self.error = error
            self.abandoned = isinstance(error, BusyError) and not self._wanted()
        finally:
            self._finished.set()

    def _decode(self, model: RunnableModel) -> DecodingProgress:
        request = self.request
        if request.method == "given":
            return DecodingProgress(model.force(request.text, request.given))
        if request.method != "beam":
            show = self._make_progress_publisher(DecodingProgress)
            return DecodingProgress(model.translate(request.text, request.strategy, on_step=show))
        show = self._make_progress_publisher(lambda tree: DecodingProgress(tree=tree))
        tree = model.search(request.text, request.width, request.penalty, request.constraints, request.stop, show)
        result = model.force(request.text, _best_token_ids(tree))
        return DecodingProgress(replace(result, seconds=time.monotonic() - self._started), tree)

    def _make_progress_publisher(
        self, progress: Callable[[Any], DecodingProgress]
    ) -> Callable[[Callable[[], Any]], bool]:
        """Return a decoder's `on_step`, which updates the progress now and then and returns False once stopped."""

        def on_step(so_far: Callable[[], Any]) -> bool:
            COMPUTE_QUEUE.yield_to_earlier_tickets()
            if time.monotonic() - self._published > PUBLISH_SECONDS:
                self.abandoned = self.abandoned or not self._wanted()
                self.progress = progress(so_far())
                self._published = time.monotonic()
            return not (self.stopped or self.abandoned)

        return on_step


def _best_token_ids(tree: BeamTree) -> tuple[int, ...]:
    """The best translation; of a search that was stopped before it found one, the best beginning."""
    if tree.best:
        return tree.best[0].token_ids
    last = tree.nodes[-1].position
    return max((node for node in tree.nodes if node.position == last), key=lambda node: node.score).token_ids


def get_or_start_run(model: RunnableModel, request: DecodingRequest) -> DecodingRun:
    """This visitor's run of `request`: the one there is, or a new one, for which an unfinished one is stopped.

    Ends the page with a sentence when the text cannot be decoded.
    """
    runs: dict[tuple[str, DecodingRequest], DecodingRun] = st.session_state.setdefault("runs", {})
    key = (model.name, request)
    if key not in runs or runs[key].abandoned or runs[key].has_error_in_other_language():
        for other_key, other in list(runs.items()):
            if other.is_working:  # Removed as well, so that whoever comes back to it gets the whole decoding.
                other.stop()
                del runs[other_key]
        runs[key] = DecodingRun(model, request, create_connection_probe())
        runs[key].wait(WAIT_SECONDS)
        for oldest in list(runs)[:-MAX_RUNS]:
            del runs[oldest]
    return runs[key]


def list_finished_runs(model: RunnableModel, text: str) -> list[DecodingRun]:
    """This visitor's finished runs of a sentence, in the order they were asked for."""
    runs: dict[tuple[str, DecodingRequest], DecodingRun] = st.session_state.get("runs", {})
    own = (run for (name, request), run in runs.items() if (name, request.text) == (model.name, text))
    return [run for run in own if not (run.is_working or run.abandoned) and run.progress.result]


def apply_tree_path(
    model: RunnableModel, progress: DecodingProgress, request: DecodingRequest, ids: tuple[int, ...]
) -> DecodingProgress:
    """The progress with the translation that ends in a node of the beam tree; as it is where `ids` is empty."""
    if not ids:
        return progress
    with apply_changes(model.model, parse_changes(request.changes)):
        return replace(progress, result=model.force(request.text, ids))


def input_problem_text(run: DecodingRun) -> str:
    """The sentence to show when a run has failed by its input; "" when it has not. Any other error is raised again."""
    if run.error is None or isinstance(run.error, (InputError, InterventionError, BusyError)):
        return "" if run.error is None else str(run.error)
    raise run.error


@dataclass(frozen=True)
class DecodingRequest:
    """All that the result of one decoding depends on; hashable, and kept in the address."""

    text: str
    method: DecodeMethod = "greedy"
    sampling: Sampling = field(default_factory=Sampling)
    """How ``sample`` draws each token."""
    seed: int = 0
    width: int = 4
    """The hypotheses that ``beam`` keeps at each step."""
    penalty: float = 1.0
    """The alpha of sum / length ** alpha, by which ``beam`` scores."""
    stop: BeamStop = "proven"
    """When ``beam`` ends its search."""
    given: str = ""
    """The translation that ``given`` reads by teacher forcing."""
    constraints: Constraints = NO_CONSTRAINTS
    changes: str = ""
    """Changes to the model, as :mod:`attenscope.interventions.changes` writes them; "" for the model as it is."""

    @property
    def is_own(self) -> bool:
        """Whether this is what the unchanged model writes of itself."""
        return self == DecodingRequest(self.text)

    @property
    def strategy(self) -> Strategy:
        """How ``greedy`` and ``sample`` choose each token."""
        return Strategy(self.sampling if self.method == "sample" else None, self.seed, self.constraints)

    def branch(self, result: Translation, step: int, token_id: int) -> DecodingRequest:
        """The same up to `step` (from 0), then `token_id`, then freely; a given translation goes on greedily."""
        prefix = (*result.target_ids[:step], token_id)
        method: DecodeMethod = "greedy" if self.method == "given" else self.method
        return replace(self, method=method, constraints=replace(self.constraints, prefix=prefix))

    def forbid(self, token_id: int) -> DecodingRequest:
        """The same from the start, the token never written."""
        method: DecodeMethod = "greedy" if self.method == "given" else self.method
        forbidden = dict.fromkeys((*self.constraints.forbidden, (token_id,)))
        return replace(self, method=method, constraints=Constraints(forbidden=tuple(forbidden)))

    @property
    def name(self) -> str:
        """Its name in the list of versions; :func:`attenscope.viz.decode.texts.version_name` adds the constraints."""
        if self.method == "sample":
            return say("sample {seed}", seed=self.seed)
        return say("beam {width}", width=self.width) if self.method == "beam" else say(self.method)
