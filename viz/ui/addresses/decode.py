"""What the address of the page Decode can say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from attenscope.viz.ui.address import (
    AddressPage,
    Parameter,
    boolean_parameter,
    choice_parameter,
    collect_module_parameters,
    number_parameter,
    text_parameter,
)
from attenscope.viz.ui.addresses import shared
from attenscope.viz.ui.addresses.shared import PIN

DecodeMethod = Literal["greedy", "sample", "beam", "given"]
DECODE_METHODS: tuple[DecodeMethod, ...] = get_args(DecodeMethod)
TokenIds = tuple[int, ...]


def format_token_ids(ids: Iterable[int]) -> str:
    """Token ids as they stand in the address: ``12.44.7``."""
    return ".".join(map(str, ids))


def parse_token_ids(text: str) -> TokenIds:
    """The token ids that :func:`format_token_ids` wrote. Raises ValueError for anything else."""
    if not _is_token_ids(text):
        raise ValueError(f"These are no token ids: {text[:40]}")
    return tuple(map(int, text.split(".")))


def parse_id_sequences(text: str) -> tuple[TokenIds, ...]:
    """``12.44~7``: several sequences of token ids; what is none is left out."""
    return tuple(parse_token_ids(part) for part in text.split("~") if _is_token_ids(part))


def format_id_sequences(sequences: Iterable[TokenIds]) -> str:
    return "~".join(map(format_token_ids, sequences))


def _is_token_ids(text: str) -> bool:
    return all(part.isascii() and part.isdigit() and len(part) < 8 for part in text.split("."))


DECODE_METHOD = choice_parameter("method", DECODE_METHODS)
DECODE_TEMPERATURE = number_parameter("temperature", 1.0, 0.0, 5.0, views=("sample",))
DECODE_TOP_K = number_parameter("top-k", 0, 0, 1000, views=("sample",))
DECODE_TOP_P = number_parameter("top-p", 1.0, 0.01, 1.0, views=("sample",))
DECODE_SEED = number_parameter("seed", 0, 0, 999_999, views=("sample",))
DECODE_BEAM_WIDTH = number_parameter("width", 4, 1, 10, views=("beam",))
DECODE_LENGTH_PENALTY = number_parameter("penalty", 1.0, 0.0, 3.0, views=("beam",))
DECODE_STOP_EARLY = boolean_parameter("early", views=("beam",))
DECODE_BEGIN_WITH = text_parameter("begin", views=("greedy", "sample", "beam"))
DECODE_NEVER_WRITE = text_parameter("never", views=("greedy", "sample", "beam"))

DECODE_BRANCH: Parameter[TokenIds] = Parameter("branch", (), parse_token_ids, write=format_token_ids, longest=10_000)
"""The token ids that the translation is forced to begin with."""
DECODE_FORBIDDEN: Parameter[tuple[TokenIds, ...]] = Parameter(
    "without", (), parse_id_sequences, write=format_id_sequences
)
"""Sequences of token ids that are never written."""
DECODE_TREE_PATH: Parameter[TokenIds] = Parameter(
    "way", (), parse_token_ids, write=format_token_ids, longest=10_000, views=("beam",)
)
"""The node of the beam tree that the player shows, as the token ids that lead to it."""
DECODE_STEP = number_parameter("step", None, 1, 99_999, slot="decoding step", scrubbed=True)
"""Where the player stands, from 1; None until somebody has chosen a step."""
DECODE_CROSS_HEAD = text_parameter("cross", slot="cross head")
"""The head of cross-attention that the player shows: ``3.1``, ``3.mean`` or ``aligning``."""
DECODE_OWN_HEAD = text_parameter("own", slot="own head")
"""The same for the decoder's self-attention."""

DECODE_BRANCH_PARAMETERS = (DECODE_BRANCH, DECODE_FORBIDDEN, DECODE_TREE_PATH, DECODE_STEP)
"""What belongs to one decoding of one sentence, and is forgotten with it."""
PAGE = AddressPage.build(
    "decode",
    *shared.COMMON_PARAMETERS,
    shared.GIVEN_TRANSLATION,
    shared.CHANGES,
    PIN,
    *collect_module_parameters(globals()),
    view=DECODE_METHOD,
)
