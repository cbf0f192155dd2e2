"""One diagnosis in progress: the arrays, what they show, and the findings so far."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from ..inputs.arrays import Arrays, as_columns
from ..inputs.evidence import Evidence
from ..inputs.intent import Intent
from .fault_catalogue import Level, Severity
from .findings import Finding, make_finding
from .fix_code import fix_line


@dataclass
class Case:
    """Arrays, evidence and findings of one map."""

    arrays: Arrays
    evidence: Evidence
    findings: list[Finding] = field(default_factory=list)
    explained_units: np.ndarray | None = None
    """(B, L, H) bool: samples, layers and heads in which nothing more is looked for."""
    stated: bool = False
    """Whether somebody said what was meant."""

    def add(
        self,
        code: str,
        where: np.ndarray,
        severity: Severity | None = None,
        detail: str = "",
        fix: str | None = None,
        looks: str | None = None,
        level: Level | None = None,
        intent: Intent | None = None,
    ) -> None:
        """Add a finding at the cells ``where`` (broadcasts to the weights); nothing happens when there are none.

        Its ``level`` is certain where what was meant is stated, or where the weights contradict an array given. The fix
        is written for the mask as it was given, and builds what ``intent`` says where that is known.
        """
        cells = np.broadcast_to(where, self.evidence.nonzero.shape)
        if cells.any():
            if fix is None:
                structures = () if intent is None else intent.structures
                fix = fix_line(code, self.arrays.writing, structures, intent is not None and intent.padded)
            known = level or ("certain" if self.stated or contradicts_given(self, cells) else "likely")
            self.findings.append(make_finding(code, cells, self.arrays.map, severity, detail, fix, looks, known))

    def add_rows(
        self, code: str, rows: np.ndarray, detail: str = "", severity: Severity | None = None, fix: str | None = None
    ) -> None:
        """Add a finding about whole rows (B, L, H, Q)."""
        self.add(code, np.broadcast_to(rows[..., None], self.evidence.nonzero.shape), severity, detail, fix)

    def exclude(self, units: np.ndarray) -> None:
        """Look for nothing more in these units (B, L, H)."""
        self.explained_units = units if self.explained_units is None else self.explained_units | units

    def has(self, *codes: str) -> bool:
        """Whether any of these codes was found above info; without codes, whether anything was."""
        return any(finding.severity != "info" and (not codes or finding.code in codes) for finding in self.findings)

    def padding_queries(self, intent: Intent) -> np.ndarray:
        """Return (B, Q): padding queries, as given, or by the keys of self-attention and the rows meant to be empty."""
        if self.arrays.query_keep is not None:
            return ~self.arrays.query_keep | intent.keyless_queries
        _, _, _, queries, keys = self.arrays.sizes
        if queries == keys and self.arrays.self_or_cross != "cross":
            return ~intent.keep | intent.keyless_queries
        return intent.keyless_queries

    def rows(self, intent: Intent, with_padding: bool = False) -> np.ndarray:
        """Return (B, L, H, Q): the rows to judge, those of real queries or all, without excluded units."""
        real = np.ones_like(intent.keyless_queries) if with_padding else ~self.padding_queries(intent)
        rows = np.broadcast_to(real[:, None, None], self.evidence.all_zero.shape)
        return rows if self.explained_units is None else rows & ~self.explained_units[..., None]

    def excluding(self, units: np.ndarray) -> Case:
        """Return the same case with nothing looked for in these units (B, L, H; axes may be 1)."""
        whole = np.broadcast_to(units, self.evidence.all_zero.shape[:3])
        units = whole if self.explained_units is None else self.explained_units | whole
        return Case(self.arrays, self.evidence, [], units, self.stated)

    def without(self, cells: np.ndarray) -> Case:
        """Return the same case as if these cells were zero, with no finding yet."""
        evidence = dataclasses.replace(self.evidence, nonzero=self.evidence.nonzero & ~cells)
        return Case(self.arrays, evidence, [], self.explained_units, self.stated)


def contradicts_given(case: Case, cells: np.ndarray) -> bool:
    """Whether in some of ``cells`` (B, L, H, Q, K) the arrays given contradict each other, whatever was meant.

    That is a row of NaN; weight where the mask given blocks, or on padding, in a row that has other keys; and a real
    query all of whose real keys the mask blocks.
    """
    arrays, evidence = case.arrays, case.evidence
    if (evidence.nan[..., None] & cells).any():
        return True
    keep = np.ones((1, 1), bool) if arrays.key_keep is None else arrays.key_keep
    mask = np.ones((1, 1, 1, 1, 1), bool) if arrays.mask is None else arrays.mask
    allowed = mask & as_columns(keep)
    live = allowed.any(-1, keepdims=True)
    if arrays.given & {"weights", "masked_scores"} and (evidence.nonzero & ~allowed & live & cells).any():
        return True
    real = arrays.real_queries[:, None, None, :, None] & as_columns(keep).any(-1, keepdims=True)
    return bool((mask.any(-1, keepdims=True) & ~live & real & cells).any())
