"""Every reader of a person's text, for the tests that hold the time that it takes."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import NamedTuple

from model.diagnosis.readers.printed import read_printed
from model.diagnosis.readers.text import read_table
from model.heads.question import read_question
from model.interventions.changes import parse
from model.masking.meaning import in_turn, meaning_mask
from model.masking.rule import Sizes, build_mask, read_lengths
from model.untrusted_trace import clean
from viz.masks.gallery.page import matching
from viz.talk import talk_file
from viz.ui.addresses.masks import read_cells
from viz.ui.addresses.pages import PAGES
from viz.ui.addresses.pins import read_pins
from viz.ui.captions import plain

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
    "a print": Reader(read_printed, ("model/diagnosis/readers/printed.py", "model/diagnosis/readers/prompts.py")),
    "a table": Reader(_table, ("model/diagnosis/readers/text.py",)),
    "a meaning": Reader(lambda text: meaning_mask(text, 6, 6), ("model/masking/meaning.py",)),
    "layers in turn": Reader(in_turn, ("model/masking/structure_names.py",)),
    "a rule": Reader(lambda text: build_mask(text, Sizes(4, 4, (4,))), ("model/masking/rule.py",)),
    "lengths": Reader(lambda text: read_lengths(text, 6), ()),
    "a question": Reader(read_question, ("model/heads/question.py",)),
    "changes": Reader(parse, ("model/interventions/changes.py",)),
    "a talk": Reader(talk_file.read, ("viz/talk/toml.py",)),
    "a symptom": Reader(matching, ()),
    "an address": Reader(_address, ()),
    "cells": Reader(read_cells, ()),
    "pins": Reader(read_pins, ()),
    "a text that is shown": Reader(plain, ()),
    "a name": Reader(lambda text: clean(text, 80), ()),
}

UNITS = (
    *(" ", "\n", "\t", "\r\n", "1", "1 ", "1,", "0.5,", "[", "]", "[]", "[1],", "(", ")", "tensor(", "True,", "nan,"),
    *("inf", "dtype=", ", dtype=a", "mask = ", "a.", "a.b(", "a:", '"', "'", '"a', "\\", "=", "-", "1-", "1e", "#\n"),
    *("a=1\n", "/", "[[scene]]\n", "causal and ", "1 x ", " on odd layers", "span:1-2+", "not ", "cross.1.1:off,"),
    *("\u3000", "é"),
)
FRAMES = (
    *(("", ""), ("[[1,0],", "[1,1]]"), ("[[1,0],[1,1]]", "x"), ("Parameter containing:", ""), ("mask", "= [[1]]")),
    *(("a=", "1"), ('title = "', '"'), ("causal", "x"), ("1 x ", "\nb"), ('a = ["', '"]\n')),
)
