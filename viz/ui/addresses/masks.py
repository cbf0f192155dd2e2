"""What the address of the page Masks can say. A mask that was pasted, uploaded or opened stays in the session."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

from model.experiments.mask_trial import NAMES, MaskName
from model.masking.convention_table import CONVENTIONS
from model.masking.padding import PaddingSide
from model.masking.rule import MAX_SIZE
from model.masking.toy_attention import FORMATS, READER_NAMES, READERS, WRITING_NAMES, WRITINGS

from ..url_state.kinds import choice, number, text
from ..url_state.page import Page, parameters_in
from ..url_state.parameter import Parameter
from . import shared

Part = Literal["judge", "try on the model", "backends", "gallery", "convert"]
Source = Literal["paste", "upload", "build", "opened trace"]
SIDES: tuple[PaddingSide, ...] = ("right", "left")
Effect = Literal["attention", "one token", "tests"]
Cell = tuple[int, int, int]
"""Sample, query and key, from 0."""
MOST_CELLS = 200
MASK_LABELS: dict[MaskName, str] = {
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
RATES = (0.0, 0.1, 0.2, 0.5)
JUDGE, TRY, BACKENDS, GALLERY, CONVERT = ((part,) for part in get_args(Part))


def read_cells(text: str) -> frozenset[Cell]:
    """``1.3.5,1.4.5``, counted from 1 -> cells from 0; what is no cell is left out."""
    parts = (part.split(".") for part in text.split(",")[:MOST_CELLS])
    good = (part for part in parts if len(part) == 3 and all(map(_counts, part)))
    return frozenset((int(sample) - 1, int(query) - 1, int(key) - 1) for sample, query, key in good)


def write_cells(cells: Collection[Cell]) -> str:
    return ",".join(".".join(str(part + 1) for part in cell) for cell in sorted(cells)[:MOST_CELLS])


def _counts(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 4 and int(text) > 0


PART = choice("part", get_args(Part))

FROM = choice("from", get_args(Source), views=JUDGE)
RULE = text("rule", "causal and padding")
"""Of the mask that is built; the other parts of the page begin with it."""
QUERIES = number("queries", 6, 1, MAX_SIZE, views=JUDGE)
KEYS = number("keys", None, 1, MAX_SIZE, views=JUDGE)
HEADS = number("n_heads", 1, 1, MAX_SIZE, views=JUDGE)
LENGTHS = text("lengths", views=JUDGE)
PAD_SIDE = choice("pad_side", SIDES, views=JUDGE)
WRITTEN = choice("written", WRITINGS, labels=WRITING_NAMES, views=JUDGE)
READER = choice("reader", READERS, labels=READER_NAMES, views=JUDGE)
FORMAT = choice("mask_format", FORMATS, views=JUDGE)
CELLS: Parameter[frozenset[Cell]] = Parameter("cells", frozenset(), read_cells, write=write_cells, views=JUDGE)
"""The cells of a built mask that were turned over."""
SAMPLE = number("mask_sample", None, 1, 9999, views=JUDGE)
LAYER = number("mask_layer", None, 1, 9999, views=JUDGE)
HEAD = number("mask_head", None, 1, 9999, views=JUDGE)
DEPTH = choice("mask_depth", (1, 2, 3), views=JUDGE)
DROPOUT = choice("mask_dropout", RATES, 0.1, labels={rate: f"{rate:.0%}" for rate in RATES}, views=JUDGE)

MASK = choice("tried_mask", NAMES, labels=MASK_LABELS, views=TRY)
WINDOW = number("tried_width", 3, 1, 99, views=TRY)
WORD = number("tried_word", None, 1, 9999, views=TRY, slot="hidden word")
"""The word that is hidden, from 1."""
TRIED_RULE = text("tried_rule", views=TRY)
PADDING = number("pads", 3, 0, 16, views=TRY)
EFFECT = choice("tried", get_args(Effect), views=TRY)
BACKEND_LAYER = number("backend_layer", None, 1, 9999, views=BACKENDS)
TOKEN = number("poked", None, 1, 9999, views=TRY, slot="exchanged token")
"""The token that is exchanged for another, from 1: those of the source, then those of the target."""

SYMPTOM = text("symptom", longest=200, views=GALLERY)
FAULT = text("fault", longest=60, views=GALLERY)

CONVENTION_LABELS = {name: convention.name for name, convention in CONVENTIONS.items()}
CONVERT_FROM = choice("convert_from", tuple(CONVENTIONS), "torch_attn_mask", CONVENTION_LABELS, views=CONVERT)
CONVERT_TO = choice("convert_to", tuple(CONVENTIONS), "sdpa", CONVENTION_LABELS, views=CONVERT)
CONVERT_RULE = text("convert_rule", views=CONVERT)
CONVERT_LENGTHS = text("convert_lengths", views=CONVERT)
CONVERT_SIDE = choice("convert_side", SIDES, views=CONVERT)
CONVERT_HEADS = number("convert_heads", 1, 1, 4, views=CONVERT)

PAGE = Page.of("masks", *shared.COMMON, *shared.CHOSEN_HEAD, *parameters_in(globals()), view=PART)
