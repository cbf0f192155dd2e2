"""What the address of the page Masks can say.

A mask that was pasted, uploaded or opened stays in the session. What is meant by it, and of which attention it is, is
in the address: a scene of a talk needs both.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

from attenscope.experiments.mask_trial import MASK_NAMES, MaskName
from attenscope.masks.conventions import CONVENTIONS
from attenscope.masks.rule import MAX_MASK_SIZE
from attenscope.masks.softmax import PaddingSide
from attenscope.masks.toy_attention import (
    MASK_READER_NAMES,
    MASK_READERS,
    NUMBER_FORMATS,
    TOY_WRITING_NAMES,
    TOY_WRITINGS,
)
from attenscope.trace import KINDS, Kind
from attenscope.viz.ui.address import (
    AddressPage,
    Parameter,
    choice_parameter,
    collect_module_parameters,
    number_parameter,
    text_parameter,
)
from attenscope.viz.ui.addresses import shared

MasksPart = Literal["judge", "try on the model", "backends", "gallery", "convert", "from a configuration"]
MaskSource = Literal["paste", "upload", "build", "opened trace"]
PADDING_SIDES: tuple[PaddingSide, ...] = ("right", "left")
TrialEffect = Literal["attention", "one token", "tests"]
MaskCell = tuple[int, int, int]
"""Sample, query and key, from 0."""
MAX_MASK_CELLS = 200
TRIAL_MASK_LABELS: dict[MaskName, str] = {
    "no mask": "No mask at all",
    "no padding mask": "Padding not masked",
    "no causal mask": "No causal mask",
    "inverted": "Upside down",
    "causal": "Causal, where none belongs",
    "own place blocked": "Own position blocked",
    "window": "A window",
    "one word hidden": "One word hidden",
    "added, not filled": "0/1 added to the scores",
    "rule": "A rule",
}
DROPOUT_RATES = (0.0, 0.1, 0.2, 0.5)
JUDGE_VIEWS, TRIAL_VIEWS, BACKENDS_VIEWS, GALLERY_VIEWS, CONVERT_VIEWS, ARCHITECTURE_VIEWS = (
    (part,) for part in get_args(MasksPart)
)


def parse_mask_cells(text: str) -> frozenset[MaskCell]:
    """``1.3.5,1.4.5``, counted from 1 -> cells from 0; what is no cell is left out."""
    parts = (part.split(".") for part in text.split(",")[:MAX_MASK_CELLS])
    good = (part for part in parts if len(part) == 3 and all(map(_is_positive_number, part)))
    return frozenset((int(sample) - 1, int(query) - 1, int(key) - 1) for sample, query, key in good)


def format_mask_cells(cells: Collection[MaskCell]) -> str:
    return ",".join(".".join(str(part + 1) for part in cell) for cell in sorted(cells)[:MAX_MASK_CELLS])


def _is_positive_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 4 and int(text) > 0


def _read_kind(text: str) -> Kind:
    if text not in KINDS:
        raise ValueError(f"attention is one of {', '.join(KINDS)}.")
    return text


FIRST_PARTS: tuple[MasksPart, ...] = ("judge", "try on the model", "gallery")
"""The parts that stand beside each other; the others are folded."""
MASKS_PART = choice_parameter("part", get_args(MasksPart))

MASKS_SOURCE = choice_parameter("from", get_args(MaskSource), views=JUDGE_VIEWS)
MASKS_MEANT: Parameter[str | None] = Parameter("meant", None, str, views=JUDGE_VIEWS)
"""What a mask that was brought is meant to be, as :func:`model.masks.rule.parse_meaning` reads it; None: not said.

It stays for the next mask: whoever mends one brings it again and again."""
MASKS_ATTENTION: Parameter[Kind | None] = Parameter("attention", None, _read_kind, views=JUDGE_VIEWS)
"""Of which attention a mask that was brought is; None: not said."""
MASKS_RULE = text_parameter("rule", "causal and padding")
"""The rule of the mask that is built; the other parts of the page begin with it."""
MASKS_QUERY_COUNT = number_parameter("queries", 6, 1, MAX_MASK_SIZE, views=JUDGE_VIEWS)
MASKS_KEY_COUNT = number_parameter("keys", None, 1, MAX_MASK_SIZE, views=JUDGE_VIEWS)
MASKS_HEAD_COUNT = number_parameter("n_heads", 1, 1, MAX_MASK_SIZE, views=JUDGE_VIEWS)
MASKS_LENGTHS = text_parameter("lengths", views=JUDGE_VIEWS)
MASKS_PADDING_SIDE = choice_parameter("pad_side", PADDING_SIDES, views=JUDGE_VIEWS)
MASKS_WRITING = choice_parameter("written", TOY_WRITINGS, labels=TOY_WRITING_NAMES, views=JUDGE_VIEWS)
MASKS_READER = choice_parameter("reader", MASK_READERS, labels=MASK_READER_NAMES, views=JUDGE_VIEWS)
MASKS_FORMAT = choice_parameter("mask_format", NUMBER_FORMATS, views=JUDGE_VIEWS)
MASKS_CHANGED_CELLS: Parameter[frozenset[MaskCell]] = Parameter(
    "cells", frozenset(), parse_mask_cells, write=format_mask_cells, views=JUDGE_VIEWS
)
"""The cells of a built mask that were turned over."""
MASKS_SAMPLE = number_parameter("mask_sample", None, 1, 9999, views=JUDGE_VIEWS)
MASKS_LAYER = number_parameter("mask_layer", None, 1, 9999, views=JUDGE_VIEWS)
MASKS_HEAD = number_parameter("mask_head", None, 1, 9999, views=JUDGE_VIEWS)
MASKS_DEPTH = choice_parameter("mask_depth", (1, 2, 3), views=JUDGE_VIEWS)
MASKS_DROPOUT = choice_parameter(
    "mask_dropout", DROPOUT_RATES, 0.1, labels={rate: f"{rate:.0%}" for rate in DROPOUT_RATES}, views=JUDGE_VIEWS
)

MASKS_TRIAL_MASK = choice_parameter("tried_mask", MASK_NAMES, labels=TRIAL_MASK_LABELS, views=TRIAL_VIEWS)
MASKS_TRIAL_WINDOW = number_parameter("tried_width", 3, 1, 99, views=TRIAL_VIEWS)
MASKS_HIDDEN_WORD = number_parameter("tried_word", None, 1, 9999, views=TRIAL_VIEWS, slot="hidden word")
"""The word that is hidden, from 1."""
MASKS_TRIAL_RULE = text_parameter("tried_rule", views=TRIAL_VIEWS)
MASKS_TRIAL_PADDING = number_parameter("pads", 3, 0, 16, views=TRIAL_VIEWS)
MASKS_TRIAL_EFFECT = choice_parameter("tried", get_args(TrialEffect), views=TRIAL_VIEWS)
MASKS_EXCHANGED_TOKEN = number_parameter("poked", None, 1, 9999, views=TRIAL_VIEWS, slot="exchanged token")
"""The token that is exchanged for another, from 1: those of the source, then those of the target."""

MASKS_SYMPTOM = text_parameter("symptom", longest=200, views=GALLERY_VIEWS)
MASKS_FAULT = text_parameter("fault", longest=60, views=GALLERY_VIEWS)

CONVENTION_LABELS = {name: convention.name for name, convention in CONVENTIONS.items()}
MASKS_CONVERT_FROM = choice_parameter(
    "convert_from", tuple(CONVENTIONS), "torch_attn_mask", CONVENTION_LABELS, views=CONVERT_VIEWS
)
MASKS_CONVERT_TO = choice_parameter("convert_to", tuple(CONVENTIONS), "sdpa", CONVENTION_LABELS, views=CONVERT_VIEWS)
MASKS_CONVERT_RULE = text_parameter("convert_rule", views=CONVERT_VIEWS)
MASKS_CONVERT_LENGTHS = text_parameter("convert_lengths", views=CONVERT_VIEWS)
MASKS_CONVERT_SIDE = choice_parameter("convert_side", PADDING_SIDES, views=CONVERT_VIEWS)
MASKS_ARCHITECTURE_TEXT = text_parameter("architecture_text", views=ARCHITECTURE_VIEWS)
MASKS_CONVERT_HEADS = number_parameter("convert_heads", 1, 1, 4, views=CONVERT_VIEWS)

PAGE = AddressPage.build(
    "masks", *shared.COMMON_PARAMETERS, *shared.HEAD_PARAMETERS, *collect_module_parameters(globals()), view=MASKS_PART
)
