"""How a fault of the gallery is run: small, broken beside fixed, with what the diagnosis says of each side.

The code that is shown is the code that runs: functions of :mod:`.code` and :mod:`.field`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..behaviour.checks import Outcome, Subject, dependencies, examine, reachable
from ..diagnosis import Diagnosis, arrange, judge
from . import code as c
from . import field as f
from .batch import Batch
from .cases import Recipe, suitable

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
    "document-leak": {"sizes": (8, 8)},
    "wrong-axis": {"samples": (4, 4), "sizes": (4, 4)},
}
"""Where a fault needs other sizes than SMALL to be seen well."""


@dataclass(frozen=True)
class Exhibit:
    """One entry of the gallery."""

    name: str
    """Short, for links."""
    broken: Callable[..., Any]
    fixed: Callable[..., Any]
    recipe: Recipe | None = None
    """Where the fault is in the tensors of attention."""
    subject: Callable[[Callable[..., Any]], Subject] | None = None
    """Where it takes a running model to see it: one of the two functions as the behaviour tests see it."""
    tests: tuple[str, ...] = ()
    """Of B1 to B8, those that tell."""

    @property
    def code(self) -> str:
        """What the diagnosis should name; empty where only a behaviour test can."""
        return self.recipe.code if self.recipe else ""


@dataclass(frozen=True, eq=False)
class Side:
    """What came out of one of the two functions."""

    weights: np.ndarray
    """(B, L, H, Q, K); of a model how much each output depends on each input, the largest of a row being 1."""
    meant: np.ndarray
    """(B, L, H, Q, K) bool, True = should have weight."""
    key_keep: np.ndarray
    """(B, K) bool, True = a real token."""
    query_keep: np.ndarray
    """(B, Q) bool, True = a real token."""
    diagnosis: Diagnosis | None = None
    outcomes: tuple[Outcome, ...] = ()
    error: str = ""
    """What torch said, where the code raised; then all weights are NaN."""

    @property
    def named(self) -> tuple[str, ...]:
        """Everything found wrong: codes of the diagnosis above info, and of failed behaviour tests."""
        found = [one.code for one in self.diagnosis.findings if one.severity != "info"] if self.diagnosis else []
        return (*dict.fromkeys(found), *(one.code for one in self.outcomes if one.status == "fault"))


def sources(function: Callable[..., Any]) -> tuple[str, str]:
    """The function as it stands in its file, and the project's helpers that it calls."""
    assert isinstance(function, FunctionType)
    called = (function.__globals__.get(name) for name in _names(function.__code__))
    helpers = [one for one in called if isinstance(one, FunctionType) and one.__module__ in (c.__name__, f.__name__)]
    return _source(function), "\n\n".join(map(_source, helpers))


def _source(function: FunctionType) -> str:
    return re.sub(r"  # noqa.*", "", inspect.getsource(function))


def _names(code: CodeType) -> dict[str, None]:
    """Global names a function uses, also in the lambdas inside it."""
    found = dict.fromkeys(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= _names(inner)
    return found


def run(exhibit: Exhibit) -> tuple[Side, Side]:
    """Broken and fixed, on the same small batch, each judged."""
    if exhibit.subject:
        with torch.random.fork_rng():
            return _examined(exhibit, exhibit.broken), _examined(exhibit, exhibit.fixed)
    recipe = exhibit.recipe
    assert recipe is not None
    small = SMALL | dict(recipe.batch) | {"sizes": (6, 6)} | BATCHES.get(exhibit.name, {})
    x = _batch(replace(recipe, batch=small))
    return _judged(recipe, exhibit.broken, x), _judged(recipe, exhibit.fixed, x)


def _batch(recipe: Recipe) -> Batch:
    """Sentences of a few words at least; one-word sentences show little."""
    generator = torch.Generator().manual_seed(3)
    while True:
        x = suitable(recipe, generator)
        if bool((x.key_keep.sum(-1) > x.keys / 2).all() & (x.query_keep.sum(-1) > x.queries / 2).all()):
            return x


def _judged(recipe: Recipe, function: Callable[..., Any], x: Batch) -> Side:
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
    wanted = {"key_keep", "query_keep", "meant", *recipe.needs}
    arrays = {name: one.numpy() for name, one in {**known, **made}.items() if name in wanted or name in made}
    weights = _five_axes(arrays.get("weights", np.full(x.scores.shape, np.nan)))
    return Side(
        weights,
        np.broadcast_to(_five_axes(meant.numpy()), weights.shape),
        x.key_keep.numpy(),
        x.query_keep.numpy(),
        judge(arrange(arrays)),
        (),
        error,
    )


def _five_axes(array: np.ndarray) -> np.ndarray:
    """(Q, K), (B, H, Q, K) or (B, L, H, Q, K) to the last of these."""
    array = array.reshape((1,) * (4 - array.ndim) + array.shape) if array.ndim < 4 else array
    return array if array.ndim == 5 else array[:, None]


def _examined(exhibit: Exhibit, function: Callable[..., Any]) -> Side:
    assert exhibit.subject is not None
    subject = exhibit.subject(function)
    outcomes = tuple(one for one in examine(subject) if one.code in exhibit.tests)
    found = dependencies(subject)
    assert found is not None
    sizes = found / found.nan_to_num().amax(-1, keepdim=True).clamp_min(1e-12)
    keep = subject.keep.numpy()
    meant = _five_axes(reachable(subject)[:, None].numpy())
    return Side(_five_axes(sizes[:, None].numpy()), meant, keep, keep, outcomes=outcomes)
