"""Every reader of a person's text, for the tests that hold the time that it takes."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import NamedTuple

from attenscope.atlas.query import parse_question
from attenscope.interventions.changes import parse_changes
from attenscope.masks.read_text import read_printed_tensors, read_table
from attenscope.masks.rule import MaskSizes, build_mask, build_meaning_mask, parse_sample_lengths, split_layer_meanings
from attenscope.untrusted_trace import clean_text
from attenscope.viz.masks.gallery import search_entries
from attenscope.viz.talk import file
from attenscope.viz.ui.addresses.masks import parse_mask_cells
from attenscope.viz.ui.addresses.page_registry import PAGES
from attenscope.viz.ui.addresses.shared import parse_pins
from attenscope.viz.ui.captions import escape_markdown, escape_message

LONGEST = 2_000_000
"""Characters of a text that is pasted."""


class Reader(NamedTuple):
    """A function that reads a text, and the modules whose patterns see it."""

    read: Callable[[str], object]
    modules: tuple[str, ...]


def _address(text: str) -> object:
    return [one.value_of(text) for page in PAGES.values() for one in page.parameters.values()]


def _table(text: str) -> object:
    try:
        return read_table(text)
    except csv.Error as error:  # a sentence is made of it where files are read
        raise ValueError(str(error)) from error


READERS = {
    "a print": Reader(read_printed_tensors, ("model/masks/read_text.py", "model/masks/read_text.py")),
    "a table": Reader(_table, ("model/masks/read_text.py",)),
    "a meaning": Reader(lambda text: build_meaning_mask(text, 6, 6), ("model/masks/rule.py",)),
    "layers in turn": Reader(split_layer_meanings, ("model/masks/structure.py",)),
    "a rule": Reader(lambda text: build_mask(text, MaskSizes(4, 4, (4,))), ("model/masks/rule.py",)),
    "lengths": Reader(lambda text: parse_sample_lengths(text, 6), ()),
    "a question": Reader(parse_question, ("model/atlas/query.py",)),
    "changes": Reader(parse_changes, ("model/interventions/changes.py",)),
    "a talk": Reader(file.parse_talk, ("viz/talk/file.py",)),
    "a symptom": Reader(search_entries, ()),
    "an address": Reader(_address, ()),
    "cells": Reader(parse_mask_cells, ()),
    "pins": Reader(parse_pins, ()),
    "a text that is shown": Reader(escape_markdown, ()),
    "a message that is shown": Reader(escape_message, ()),
    "a name": Reader(lambda text: clean_text(text, 80), ()),
}

UNITS = (
    *(" ", "\n", "\t", "\r\n", "1", "1 ", "1,", "0.5,", "[", "]", "[]", "[1],", "(", ")", "tensor(", "True,", "nan,"),
    *("inf", "dtype=", ", dtype=a", "mask = ", "a.", "a.b(", "a:", '"', "'", '"a', "\\", "=", "-", "1-", "1e", "#\n"),
    *("a=1\n", "/", "[[scene]]\n", "causal and ", "1 x ", " on odd layers", "span:1-2+", "not ", "cross.1.1:off,"),
    *("\u3000", "é", "■", "⬚ ", "\x1b[0m", "BlockMask(shape="),
)
FRAMES = (
    *(("", ""), ("[[1,0],", "[1,1]]"), ("[[1,0],[1,1]]", "x"), ("Parameter containing:", ""), ("mask", "= [[1]]")),
    *(("a=", "1"), ('title = "', '"'), ("causal", "x"), ("1 x ", "\nb"), ('a = ["', '"]\n')),
)
