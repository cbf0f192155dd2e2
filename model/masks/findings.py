"""The findings of a diagnosis with their places, the diagnosis in progress, and the line that fixes a fault."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal

import numpy as np

from ..language import say, say_many, to_say
from .arrays import Arrays, broadcast_key_mask
from .attention_call_origin import AttentionCall
from .evidence import Evidence
from .fault_catalogue import FAULTS, NOTHING_TO_FIX, Level, Severity
from .fix_lines import write_intent_fix_line
from .intent import IntendedMask

# A place is a number from 0 for programs, and from 1 in the message, which people read. A finding of the level
# ``likely`` rests on a guess of what was meant: it is a question, and never of the severity ``error``.


FindingRank = Literal["error", "warning", "likely", "info"]
"""How a finding is shown, the worst first."""
Verdict = Literal["faulty", "question", "open", "sound"]
"""``faulty``: something is wrong; ``question``: something is wrong if the guess of what was meant is right; ``open``:
nothing contradicts the guess, and nobody said what was meant, or padding was named and nothing says which keys it is;
``sound``: nothing contradicts what was meant."""


@dataclass(frozen=True)
class Finding:
    """One fault and its place. ``None`` for a sample, layer or head means several of them, or all."""

    code: str
    severity: Severity
    map: str
    """``encoder``, ``decoder``, ``cross``, or empty when the arrays do not say."""
    sample: int | None
    layer: int | None
    head: int | None
    queries: tuple[int, ...]
    """Rows concerned, counted from 0, in the first sample concerned."""
    keys: tuple[int, ...]
    """Columns concerned, counted from 0, in the same sample."""
    message: str
    fix: str
    level: Level = "certain"
    layers: tuple[int, ...] = ()
    """The layers concerned, counted from 0."""
    origin: str = ""
    """Where in the code the first of them calls attention, and which argument carries the fault; of a capture."""
    first_map: tuple[int, int, int] = (0, 0, 0)
    """Sample, layer and head, counted from 0, of the first map concerned."""

    @property
    def rank(self) -> FindingRank:
        """The severity, or ``likely`` for what is only likely, whatever it would cost."""
        return "likely" if self.level == "likely" else self.severity

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as values of JSON."""
        return dataclasses.asdict(self) | {
            name: list(getattr(self, name)) for name in ("queries", "keys", "layers", "first_map")
        }


@dataclass(frozen=True)
class UndecidedFault:
    """A code that could not be judged without further arrays."""

    code: str
    missing: tuple[str, ...]
    """Names of these arrays; ``a|b`` stands for either."""

    @property
    def text(self) -> str:
        """The code, and the arrays that are missing."""
        each = (reduce(_join_with_or, need.split("|")) for need in self.missing)
        return say("{code} (without {arrays})", code=self.code, arrays=reduce(_join_with_and, each))


@dataclass(frozen=True)
class Diagnosis:
    """The verdict on one set of arrays."""

    findings: tuple[Finding, ...]
    """The most likely cause first; notes (info) last."""
    unknown: tuple[UndecidedFault, ...]
    meaning: str
    """The mask that was taken to be meant, in words."""
    sure: float
    """How sure that is, 0 to 1: 1 when it was stated."""
    meant: np.ndarray | None = field(default=None, compare=False, repr=False)
    """(B, L, H, Q, K) bool, axes may be 1: that mask, True = may attend. ``None`` when it cannot be told."""
    stated: bool = False
    """Whether somebody said what was meant, by name or as an array."""
    guess: str = ""
    """The name of the mask that was taken to be meant, as ``diagnose(meant=...)`` takes it; empty where it has none."""
    padding_unknown: bool = False
    """Whether padding was named as meant while nothing says which keys are padding."""

    @property
    def sound(self) -> bool:
        """Whether nothing is above info."""
        return all(one.severity == "info" for one in self.findings)

    @property
    def verdict(self) -> Verdict:
        """What is known: certain findings make it faulty, likely ones a question; sound needs a stated meaning."""
        levels = {one.level for one in self.findings}
        if "certain" in levels:
            return "faulty"
        if "likely" in levels:
            return "question"
        return "sound" if self.stated and not self.padding_unknown else "open"


def make_finding(
    code: str,
    where: np.ndarray,
    map_name: str,
    severity: Severity | None = None,
    detail: str = "",
    fix: str | None = None,
    looks: str | None = None,
    level: Level | None = None,
) -> Finding:
    """Return a finding of ``code`` at the cells ``where`` (B, L, H, Q, K) bool.

    ``severity``, ``looks`` and ``fix`` replace those of the catalogue; ``detail`` is added to the message. ``looks``
    and ``detail`` are in the reader's language. What is only ``likely`` is no error.
    """
    fault = FAULTS[code]
    units = np.asarray(where.any((-1, -2)))
    sample, layer, head = (_find_single_index(units, axis) for axis in range(3))
    first = where[np.flatnonzero(where.any((1, 2, 3, 4)))[:1]]
    queries = tuple(int(row) for row in np.flatnonzero(first.any((0, 1, 2, 4))))
    keys = tuple(int(column) for column in np.flatnonzero(first.any((0, 1, 2, 3))))
    place = _place_text(map_name, units, sample, layer, head)
    what = looks or say(fault.looks)
    message = say("{place}: {what}.", place=place, what=what)
    if detail:
        message = say("{place}: {what}; {detail}.", place=place, what=what, detail=detail)
    rank = severity or fault.severity
    known: Level = "information" if rank == "info" else level or "certain"
    rank = "warning" if known == "likely" else rank
    line = fault.fix if fix is None else fix
    line = say(line) if line == NOTHING_TO_FIX else line
    layers = tuple(int(one) for one in np.flatnonzero(units.any((0, 2))))
    at = np.unravel_index(units.argmax(), units.shape)
    first_map = int(at[0]), int(at[1]), int(at[2])
    return Finding(
        code, rank, map_name, sample, layer, head, queries, keys, message, line, known, layers, first_map=first_map
    )


def add_attention_calls(diagnosis: Diagnosis, calls: Sequence[AttentionCall]) -> Diagnosis:
    """Return the diagnosis with the call of the first layer of each finding; ``calls`` (L,), a call a layer."""
    findings = tuple(
        dataclasses.replace(one, origin=_attention_call_text(calls[one.layers[0]].words(one.code), len(one.layers) - 1))
        if one.layers and one.layers[0] < len(calls)
        else one
        for one in diagnosis.findings
    )
    return dataclasses.replace(diagnosis, findings=findings)


def _attention_call_text(first: str, others: int) -> str:
    """Return the call of the first layer, and how many other layers there are."""
    if not others:
        return first
    return say_many("{first}; and {count} more layer", "{first}; and {count} more layers", others, first=first)


def _join_with_or(one: str, other: str) -> str:
    return say("{one} or {other}", one=one, other=other)


def _join_with_and(one: str, other: str) -> str:
    return say("{one} and {other}", one=one, other=other)


def _find_single_index(units: np.ndarray, axis: int) -> int | None:
    """Return the index concerned, or None for several; an axis of length 1 is index 0."""
    used = np.flatnonzero(units.any(tuple(other for other in range(3) if other != axis)))
    return int(used[0]) if used.size == 1 else None


_MAP_NAMES = {"encoder": to_say("Encoder"), "decoder": to_say("Decoder"), "cross": to_say("Cross")}
_FIRST_PLACE_TEXTS = (to_say("Sample {number}"), to_say("Layer {number}"), to_say("Head {number}"))
_LATER_PLACE_TEXTS = (to_say("sample {number}"), to_say("layer {number}"), to_say("head {number}"))
"""The axes of a place, as it begins and as it goes on."""


def _place_text(map_name: str, units: np.ndarray, sample: int | None, layer: int | None, head: int | None) -> str:
    """Return the place in words, ``Decoder, layer 2, head 1``; axes of length 1 are not named."""
    parts = [say(_MAP_NAMES.get(map_name, map_name.capitalize()))] if map_name else []
    for first, later, index, size in zip(
        _FIRST_PLACE_TEXTS, _LATER_PLACE_TEXTS, (sample, layer, head), units.shape, strict=True
    ):
        if size > 1 and index is not None:
            parts.append(say(later if parts else first, number=index + 1))
    if units.all() and units.size > 1:
        parts.append(say("everywhere") if parts else say("Everywhere"))
    elif units.size > 1 and None in (sample, layer, head):
        counts = {"some": int(units.sum()), "all": units.size}
        maps, heads = say("{some} of {all} maps", **counts), say("{some} of {all} heads", **counts)
        parts.append(heads if units.shape[0] == 1 else maps)
    return reduce(_join_place, parts) if parts else say("In this map")


def _join_place(place: str, part: str) -> str:
    return say("{place}, {part}", place=place, part=part)


def find_undecided_faults(given: Collection[str], findings: Sequence[Finding]) -> tuple[UndecidedFault, ...]:
    """Return the codes whose arrays are not among the names ``given``, in the order of the catalogue.

    Codes that were found in another way are left out.
    """
    have, found = set(given), {finding.code for finding in findings}
    missing = {
        code: tuple(need for need in fault.needs if not have & set(need.split("|")))
        for code, fault in FAULTS.items()
        if code not in found
    }
    return tuple(UndecidedFault(code, names) for code, names in missing.items() if names)


# The diagnosis in progress.


@dataclass
class DiagnosisCase:
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
        intent: IntendedMask | None = None,
    ) -> None:
        """Add a finding at the cells ``where`` (broadcasts to the weights); nothing happens when there are none.

        Its ``level`` is certain where what was meant is stated, or where the weights contradict an array given. The fix
        is written for the mask as it was given, and builds what ``intent`` says where that is known.
        """
        cells = np.broadcast_to(where, self.evidence.nonzero.shape)
        if cells.any():
            if fix is None:
                fix = write_intent_fix_line(
                    code, self.arrays, intent, cells, self.rows(intent) if intent is not None else None
                )
            known = level or ("certain" if self.stated or has_contradicting_given_arrays(self, cells) else "likely")
            self.findings.append(make_finding(code, cells, self.arrays.map, severity, detail, fix, looks, known))

    def add_row_finding(
        self, code: str, rows: np.ndarray, detail: str = "", severity: Severity | None = None, fix: str | None = None
    ) -> None:
        """Add a finding about whole rows (B, L, H, Q)."""
        self.add(code, np.broadcast_to(rows[..., None], self.evidence.nonzero.shape), severity, detail, fix)

    def exclude_units(self, units: np.ndarray) -> None:
        """Look for nothing more in these units (B, L, H)."""
        self.explained_units = units if self.explained_units is None else self.explained_units | units

    def has(self, *codes: str) -> bool:
        """Whether any of these codes was found above info; without codes, whether anything was."""
        return any(finding.severity != "info" and (not codes or finding.code in codes) for finding in self.findings)

    def find_padding_queries(self, intent: IntendedMask) -> np.ndarray:
        """Return (B, Q): padding queries, as given, or by the keys of self-attention and the rows meant to be empty."""
        if self.arrays.query_keep is not None:
            return ~self.arrays.query_keep | intent.keyless_queries
        _, _, _, queries, keys = self.arrays.sizes
        if queries == keys and self.arrays.self_or_cross != "cross":
            return ~intent.keep | intent.keyless_queries
        return intent.keyless_queries

    def rows(self, intent: IntendedMask, with_padding: bool = False) -> np.ndarray:
        """Return (B, L, H, Q): the rows to judge, those of real queries or all, without excluded units."""
        real = np.ones_like(intent.keyless_queries) if with_padding else ~self.find_padding_queries(intent)
        rows = np.broadcast_to(real[:, None, None], self.evidence.all_zero.shape)
        return rows if self.explained_units is None else rows & ~self.explained_units[..., None]

    def copy_excluding(self, units: np.ndarray) -> DiagnosisCase:
        """Return the same case with nothing looked for in these units (B, L, H; axes may be 1)."""
        whole = np.broadcast_to(units, self.evidence.all_zero.shape[:3])
        units = whole if self.explained_units is None else self.explained_units | whole
        return DiagnosisCase(self.arrays, self.evidence, [], units, self.stated)

    def copy_with_zeroed_cells(self, cells: np.ndarray) -> DiagnosisCase:
        """Return the same case as if these cells were zero, with no finding yet."""
        evidence = dataclasses.replace(self.evidence, nonzero=self.evidence.nonzero & ~cells)
        return DiagnosisCase(self.arrays, evidence, [], self.explained_units, self.stated)


def has_contradicting_given_arrays(case: DiagnosisCase, cells: np.ndarray) -> bool:
    """Whether in some of ``cells`` (B, L, H, Q, K) the arrays given contradict each other, whatever was meant.

    That is a row of NaN; weight where the mask given blocks, or on padding, in a row that has other keys; and a real
    query all of whose real keys the mask blocks.
    """
    arrays, evidence = case.arrays, case.evidence
    if (evidence.nan[..., None] & cells).any():
        return True
    keep = np.ones((1, 1), bool) if arrays.key_keep is None else arrays.key_keep
    mask = np.ones((1, 1, 1, 1, 1), bool) if arrays.mask is None else arrays.mask
    allowed = mask & broadcast_key_mask(keep)
    live = allowed.any(-1, keepdims=True)
    if arrays.given & {"weights", "masked_scores"} and (evidence.nonzero & ~allowed & live & cells).any():
        return True
    real = arrays.real_queries[:, None, None, :, None] & broadcast_key_mask(keep).any(-1, keepdims=True)
    return bool((mask.any(-1, keepdims=True) & ~live & real & cells).any())
