"""What a person brought, whichever way: the arrays to be judged, and how they were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from model.masking.toy_attention import Reader

MOST_CELLS = 2**22
"""Cells of the largest array that the page takes; the command line takes more."""


@dataclass(frozen=True, eq=False)
class Brought:
    """One map."""

    identity: str
    """Changes, fixes and marks of a visitor belong to this."""
    arrays: Mapping[str, np.ndarray]
    """Under the names of a diagnosis, in its conventions."""
    map: str = ""
    """encoder, decoder or cross, where that is known."""
    named: str | None = None
    """What was meant, as :func:`model.masking.structure.parse` reads it, where somebody said so."""
    rule: str = ""
    """What was meant, in the words of a rule, where the mask was built from one."""
    notes: tuple[str, ...] = ()
    """How it was read, a sentence each."""
    editable: frozenset[str] = frozenset()
    """Pictures whose cells can be turned over: ``meant``, ``given``."""
    handed: np.ndarray | None = None
    """The mask exactly as a program would hand it over, where that is known."""
    reader: Reader = "sdpa"
    """Who reads it."""
    tokens: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Of the queries and of the keys, where they are known."""
