"""One diagnosis while it is being made: the arrays, what they show, and what was found so far."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from .evidence import Evidence
from .findings import Finding, Severity
from .inputs import Arrays
from .intent import Intent
from .places import finding
from .side import side


@dataclass
class Case:
    """Arrays, evidence and findings of one map."""

    arrays: Arrays
    evidence: Evidence
    found: list[Finding] = field(default_factory=list)
    spoiled: np.ndarray | None = None
    """(B, L, H) bool: units already explained, in which nothing more is looked for."""

    def add(
        self,
        code: str,
        where: np.ndarray,
        severity: Severity | None = None,
        detail: str = "",
        fix: str | None = None,
        looks: str | None = None,
    ) -> None:
        """Note a finding at the cells ``where`` (broadcasts to the weights); nothing happens when there are none."""
        whole = np.broadcast_to(where, self.evidence.lit.shape)
        if whole.any():
            self.found.append(finding(code, whole, self.arrays.map, severity, detail, fix, looks))

    def add_rows(
        self, code: str, rows: np.ndarray, detail: str = "", severity: Severity | None = None, fix: str | None = None
    ) -> None:
        """Note a finding about whole rows (B, L, H, Q)."""
        self.add(code, np.broadcast_to(rows[..., None], self.evidence.lit.shape), severity, detail, fix)

    def spoil(self, units: np.ndarray) -> None:
        """Look for nothing more in these units (B, L, H)."""
        self.spoiled = units if self.spoiled is None else self.spoiled | units

    def named(self, *codes: str) -> bool:
        """Whether any of these codes was found above info."""
        return any(one.code in codes for one in self.found if one.severity != "info")

    def padding(self, intent: Intent) -> np.ndarray:
        """(B, Q): padding queries, given, or implied by self-attention's own keys or by rows meant to be empty."""
        if self.arrays.query_keep is not None:
            return ~self.arrays.query_keep | intent.idle
        _, _, _, queries, keys = self.arrays.sizes
        if queries == keys and side(self.arrays) != "cross":
            return ~intent.keep | intent.idle
        return intent.idle

    def rows(self, intent: Intent, every: bool = False) -> np.ndarray:
        """(B, L, H, Q): the rows that count: those of real queries, or every one."""
        real = np.ones_like(intent.idle) if every else ~self.padding(intent)
        judged = np.broadcast_to(real[:, None, None], self.evidence.dead.shape)
        return judged if self.spoiled is None else judged & ~self.spoiled[..., None]

    def without(self, cells: np.ndarray) -> Case:
        """The same case as if these cells were zero, with nothing found yet."""
        evidence = dataclasses.replace(self.evidence, lit=self.evidence.lit & ~cells)
        return Case(self.arrays, evidence, [], self.spoiled)
