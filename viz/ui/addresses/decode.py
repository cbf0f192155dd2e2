"""What the address of the page Decode can say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from ..url_state.kinds import choice, number, switch, text
from ..url_state.page import Page, parameters_in
from ..url_state.parameter import Parameter
from . import shared
from .pins import PIN

Method = Literal["greedy", "sample", "beam", "given"]
METHODS: tuple[Method, ...] = get_args(Method)
Ids = tuple[int, ...]


def write_ids(ids: Iterable[int]) -> str:
    """Token ids as they stand in the address: ``12.44.7``."""
    return ".".join(map(str, ids))


def read_ids(text: str) -> Ids:
    """The token ids that :func:`write_ids` wrote. Raises ValueError for anything else."""
    if not _is_ids(text):
        raise ValueError(f"These are no token ids: {text[:40]}")
    return tuple(map(int, text.split(".")))


def read_several_ids(text: str) -> tuple[Ids, ...]:
    """``12.44~7``: several sequences of token ids; what is none is left out."""
    return tuple(read_ids(part) for part in text.split("~") if _is_ids(part))


def write_several_ids(sequences: Iterable[Ids]) -> str:
    return "~".join(map(write_ids, sequences))


def _is_ids(text: str) -> bool:
    return all(part.isascii() and part.isdigit() and len(part) < 8 for part in text.split("."))


METHOD = choice("method", METHODS)
TEMPERATURE = number("temperature", 1.0, 0.0, 5.0, views=("sample",))
TOP_K = number("top-k", 0, 0, 1000, views=("sample",))
TOP_P = number("top-p", 1.0, 0.01, 1.0, views=("sample",))
SEED = number("seed", 0, 0, 999_999, views=("sample",))
WIDTH = number("width", 4, 1, 10, views=("beam",))
PENALTY = number("penalty", 1.0, 0.0, 3.0, views=("beam",))
EARLY = switch("early", views=("beam",))
BEGIN = text("begin", views=("greedy", "sample", "beam"))
NEVER = text("never", views=("greedy", "sample", "beam"))

BRANCH: Parameter[Ids] = Parameter("branch", (), read_ids, write=write_ids, longest=10_000)
"""The token ids that the translation is forced to begin with."""
WITHOUT: Parameter[tuple[Ids, ...]] = Parameter("without", (), read_several_ids, write=write_several_ids)
"""Sequences of token ids that are never written."""
WAY: Parameter[Ids] = Parameter("way", (), read_ids, write=write_ids, longest=10_000, views=("beam",))
"""The node of the beam tree that the player shows, as the token ids that lead to it."""
STEP = number("step", None, 1, 99_999, slot="decoding step", scrubbed=True)
"""Where the player stands, from 1; None until somebody has chosen a step."""
CROSS = text("cross", slot="cross head")
"""The head of cross-attention that the player shows: ``3.1``, ``3.mean`` or ``aligning``."""
OWN = text("own", slot="own head")
"""The same for the decoder's self-attention."""

OF_BRANCH = (BRANCH, WITHOUT, WAY, STEP)
"""What belongs to one decoding of one sentence, and is forgotten with it."""
PAGE = Page.of("decode", *shared.COMMON, shared.GIVEN, shared.CHANGES, PIN, *parameters_in(globals()), view=METHOD)
