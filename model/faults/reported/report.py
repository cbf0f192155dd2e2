"""One report of a bug, and the tiny programs that stand for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ...behaviour.subject import Subject
from ...language.say import say
from ..batch import Batch
from ..exhibits import Exhibit
from ..recipe import Recipe, causal_and_padding, padding_only


@dataclass(frozen=True)
class Report:
    """A bug as it was reported: where, what happened, and its essence in a few lines; texts are messages to say."""

    where: str
    """``owner/name#number`` of an issue or a pull request on GitHub."""
    title: str
    says: str
    """What was reported, in a sentence or two of our own."""
    code: str
    """What the diagnosis names."""
    broken: Callable[..., Any]
    fixed: Callable[..., Any]
    meant: Callable[[Batch], Tensor] = causal_and_padding
    needs: tuple[str, ...] = ("weights", "meant")
    batch: Mapping[str, Any] = field(default_factory=dict)
    symptoms: tuple[str, ...] = ()
    subject: Callable[[Callable[..., Any]], Subject] | None = None
    """Of a bug that only a running model shows."""
    tests: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A name for links: ``keras-23038``."""
        repository, _, number = self.where.partition("#")
        return f"{repository.partition('/')[2].lower()}-{number}"

    @property
    def place(self) -> str:
        """Repository and number in words."""
        repository, _, number = self.where.partition("#")
        return say("{repository}, number {number} on GitHub", repository=repository, number=number)

    @property
    def exhibit(self) -> Exhibit:
        """The entry of the gallery."""
        if self.subject is not None:
            return Exhibit(self.name, self.broken, self.fixed, None, self.subject, self.tests, self.code)
        recipe = Recipe(self.code, self.broken, self.fixed, self.meant, self.needs, self.batch)
        return Exhibit(self.name, self.broken, self.fixed, recipe, batch=self.batch)


def report(named: tuple[str, str], says: str, shown: tuple[Any, ...], **more: Any) -> Report:
    """Return a report of (where, title), what it says, and (code, broken, fixed, and perhaps meant and needs)."""
    return Report(*named, says, *shown, **more)


PADDED: dict[str, Any] = {"meant": padding_only, "needs": ("weights", "key_keep")}
"""A report about padding alone."""


def triangle(x: Batch, start: int = 0) -> Tensor:
    """Return (Q, K) bool, True at and below the diagonal that begins at column ``start`` of the first row."""
    return torch.ones(x.queries, x.keys, dtype=torch.bool).tril(start)
