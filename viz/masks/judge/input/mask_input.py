"""The arrays that a person hands over to be judged, whichever way, and how they were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from model.diagnosis.readers.passed_masks import PassedMasks
from model.masking.attention_call import AttentionCall
from model.masking.toy_attention import Reader


@dataclass(frozen=True, eq=False)
class MaskInput:
    """The arrays of one map."""

    identity: str
    """Changes, fixes and marks of a visitor belong to this."""
    arrays: Mapping[str, np.ndarray]
    """Under the names of a diagnosis, in its conventions."""
    map: str = ""
    """encoder, decoder or cross, where that is known."""
    named: str | None = None
    """The meant mask, as :func:`model.masking.structure_names.parse_structure` reads it, where the person named it."""
    rule: str = ""
    """The rule that the mask was built from, where there is one."""
    notes: tuple[str, ...] = ()
    """How it was read, a sentence each."""
    editable: frozenset[str] = frozenset()
    """Pictures whose cells can be turned over: ``meant``, ``given``."""
    raw_mask: np.ndarray | None = None
    """The mask exactly as a program would hand it over, where that is known."""
    reader: Reader = "sdpa"
    """Who reads it."""
    blocks: bool = False
    """Whether the mask was written as True = blocked: then so are the fixes."""
    calls: tuple[AttentionCall, ...] = ()
    """Where in the code each layer called attention, where a trace knows it."""
    passed: PassedMasks | None = None
    """The masks that these calls were given beside those in force, where a trace knows them."""
    tokens: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """The tokens of the queries and of the keys, where they are known."""
