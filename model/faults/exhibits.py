"""Runs a fault of the gallery: small, broken beside fixed, with what the diagnosis says of each side.

The code that is shown is the code that runs: pairs of functions from :mod:`.mask_pairs`, :mod:`.softmax_pairs`,
:mod:`.layer_pairs` and :mod:`.field_pairs`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..behaviour.checks import examine
from ..behaviour.dependencies import dependencies, reachable
from ..behaviour.outcomes import Outcome
from ..behaviour.subject import Subject
from ..diagnosis import Diagnosis, arrange, judge
from ..diagnosis.inputs.shapes import five_axes
from .batch import Batch
from .cases import suitable
from .recipe import Recipe

SMALL = {"samples": (2, 2), "heads": (2, 2), "sizes": (6, 6), "sharpness": 1.0}
BATCHES: dict[str, dict[str, Any]] = {
    "causal-on-cross": {"sizes": (5, 7)},
    "padding-visible": {"sizes": (5, 7)},
    "padding-swapped": {"sizes": (5, 7)},
    "top-left-causal": {"sizes": (3, 7)},
    "weak-fill": {"sharpness": 12.0},
    "fill-overflow": {"side": "left"},
    "dropout-on": {"sizes": (7, 7)},
    "window-off-by-one": {"sizes": (8, 8)},
    "window-missing": {"sizes": (8, 8)},
    "mask-shifted": {"sizes": (5, 7)},
    "sample-order": {"samples": (3, 3), "sizes": (6, 9)},
    "stale-cache": {"sizes": (3, 8)},
    "document-leak": {"sizes": (8, 8)},
    "wrong-axis": {"samples": (4, 4), "sizes": (4, 4)},
}
"""Where a fault needs other sizes than SMALL to be seen well."""


@dataclass(frozen=True)
class Exhibit:
    """One entry of the gallery."""

    name: str
    """A short name, for links."""
    broken: Callable[..., Any]
    fixed: Callable[..., Any]
    recipe: Recipe | None = None
    """Given where the fault shows in the tensors of attention."""
    subject: Callable[[Callable[..., Any]], Subject] | None = None
    """Given where it takes a running model to see it: turns one of the two functions into a subject of the tests."""
    tests: tuple[str, ...] = ()
    """Codes of the behaviour tests that fail on the broken side."""
    of_arrays: str = ""
    """The code that the diagnosis finds in the arrays of such a model, where it has one."""
    batch: Mapping[str, Any] = field(default_factory=dict)
    """Where it needs another batch than SMALL, and is not among :data:`BATCHES`."""

    @property
    def code(self) -> str:
        """The code that the diagnosis should find; empty where only a behaviour test sees the fault."""
        return self.recipe.code if self.recipe else self.of_arrays


@dataclass(frozen=True, eq=False)
class Side:
    """The result of one of the two functions."""

    weights: np.ndarray
    """(B, L, H, Q, K); for a model how much each output depends on each input, the largest of a row being 1."""
    meant: np.ndarray
    """(B, L, H, Q, K) bool, True = should have weight."""
    key_keep: np.ndarray
    """(B, K) bool, True = a real token."""
    query_keep: np.ndarray
    """(B, Q) bool, True = a real token."""
    diagnosis: Diagnosis | None = None
    outcomes: tuple[Outcome, ...] = ()
    error: str = ""
    """The message of torch, where the code raised; then all weights are NaN."""

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of all faults: of the diagnosis above info, and of failed behaviour tests."""
        findings = self.diagnosis.findings if self.diagnosis else ()
        codes = dict.fromkeys(finding.code for finding in findings if finding.severity != "info")
        return (*codes, *(outcome.code for outcome in self.outcomes if outcome.status == "fault"))


def sources(function: Callable[..., Any]) -> tuple[str, str]:
    """Return the function as it stands in its file, and the helpers of this package that it calls."""
    assert isinstance(function, FunctionType)
    called = (function.__globals__.get(name) for name in _names(function.__code__))
    helpers = [one for one in called if isinstance(one, FunctionType) and one.__module__.startswith(f"{__package__}.")]
    return _source(function), "\n\n".join(map(_source, helpers))


def _source(function: FunctionType) -> str:
    return re.sub(r"  # noqa.*", "", inspect.getsource(function))


def _names(code: CodeType) -> dict[str, None]:
    """Return the global names a function uses, also in the lambdas inside it."""
    names = dict.fromkeys(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= _names(inner)
    return names


def run(exhibit: Exhibit) -> tuple[Side, Side]:
    """Return the broken and the fixed side, run on the same small batch and judged."""
    if exhibit.subject:
        with torch.random.fork_rng():
            return _run_model(exhibit, exhibit.broken), _run_model(exhibit, exhibit.fixed)
    recipe = exhibit.recipe
    assert recipe is not None
    small = SMALL | dict(recipe.batch) | {"sizes": (6, 6)} | BATCHES.get(exhibit.name, dict(exhibit.batch))
    x = _batch(replace(recipe, batch=small))
    return _run_attention(recipe, exhibit.broken, x), _run_attention(recipe, exhibit.fixed, x)


def _batch(recipe: Recipe) -> Batch:
    """Return sentences of a few words at least; one-word sentences show little."""
    generator = torch.Generator().manual_seed(3)
    while True:
        x = suitable(recipe, generator)
        real = x.key_keep.sum(-1)
        if bool(((real > x.keys / 2) | (real == 0)).all() & (x.query_keep.sum(-1) > x.queries / 2).all()):
            return x


def _run_attention(recipe: Recipe, function: Callable[..., Any], x: Batch) -> Side:
    meant, error = recipe.meant(x), ""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        try:
            out = function(x)
        except RuntimeError as raised:  # the diagnosis sees what the code wanted to do
            fill = torch.zeros(meant.shape).masked_fill(~meant, -1e10)
            error, out = str(raised), {"mask": fill, "scores": x.scores.half()}
    made: dict[str, Tensor] = out if isinstance(out, dict) else {"weights": out}
    known = {"key_keep": x.key_keep, "query_keep": x.query_keep, "meant": meant, "scores": x.scores}
    names = {"key_keep", "query_keep", "meant", *recipe.needs, *made}
    arrays = {name: tensor.numpy() for name, tensor in {**known, **made}.items() if name in names}
    weights = five_axes(arrays.get("weights", np.full(x.scores.shape, np.nan)))
    return Side(
        weights,
        np.broadcast_to(five_axes(meant.numpy()), weights.shape),
        x.key_keep.numpy(),
        x.query_keep.numpy(),
        judge(arrange(arrays)),
        (),
        error,
    )


def _run_model(exhibit: Exhibit, function: Callable[..., Any]) -> Side:
    assert exhibit.subject is not None
    subject = exhibit.subject(function)
    outcomes = examine(subject, codes=exhibit.tests)
    sizes = dependencies(subject)
    assert sizes is not None
    sizes = sizes / sizes.nan_to_num().amax(-1, keepdim=True).clamp_min(1e-12)
    keep = subject.keep.numpy()
    meant = five_axes(reachable(subject)[:, None].numpy())
    return Side(five_axes(sizes[:, None].numpy()), meant, keep, keep, outcomes=outcomes)
