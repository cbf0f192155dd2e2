"""CSV is text to a spreadsheet, and reads back as it was."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest

from attenscope.atomic_write import format_csv, replace_lone_surrogates, write_file
from attenscope.viz.export.share_menu import table_csv

TOKENS = [
    *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\\", "\\=1", "a\\b", '"', '="x"', "a,b", "a;=1", " word"),
    *("'", "''", "don't", "--", "\n=1", "\r\n=1", "🙂", "a\tb", '",=1', "x"),
]


def test_no_text_is_a_formula_to_a_spreadsheet() -> None:
    written = format_csv(["token", *TOKENS[:6]], [[token, 1, 2, 3, 4, 5, 6] for token in TOKENS])
    for separator in ",;\t":
        for row in csv.reader(io.StringIO(written, newline=""), delimiter=separator):
            for cell in row if separator == "," else row[:1]:
                assert not cell.startswith(("=", "+", "-", "@", "\t", "\r")), (separator, row)


def test_it_reads_back_as_it_was() -> None:
    numbers = [-1.5e-7 * at for at in range(len(TOKENS))]
    written = format_csv(
        ["token", "=n", "whole"], [[a, b, -at] for at, (a, b) in enumerate(zip(TOKENS, numbers, strict=True))]
    )
    table = pd.read_csv(io.StringIO(written, newline=""), escapechar="\\", keep_default_na=False, lineterminator="\n")
    assert table["token"].tolist() == TOKENS
    assert table["=n"].tolist() == numbers
    assert table["whole"].dtype == np.int64
    read = list(csv.reader(io.StringIO(written, newline=""), escapechar="\\"))
    assert [row[0] for row in read[1:]] == TOKENS


def test_a_table_of_a_view_keeps_its_numbers() -> None:
    index = pd.MultiIndex.from_tuples([("=a", 1), ("b", 2)], names=["token", "layer"])
    table = pd.DataFrame({"weight": np.array([0.1, np.nan], np.float32), "is": [True, False], "no": [None, "-"]}, index)
    assert table_csv(table) == "token,layer,weight,is,no\n\\=a,1,0.1,True,\nb,2,,False,\\-\n"
    assert table_csv(table, index=False).startswith("weight,is,no\n0.1,")


def test_half_a_character_can_be_written(tmp_path: object) -> None:
    path = f"{tmp_path}/a.txt"
    write_file(path, "a\ud800b")
    with open(path, encoding="utf-8") as file:
        assert file.read() == replace_lone_surrogates("a\ud800b") == "a?b"
    assert format_csv(["a\udfff"], []) == "a?\n"


@pytest.mark.parametrize("where", ["title", "text", "fact", "notes"])
def test_a_page_with_half_a_character_can_be_written(where: str) -> None:
    from datetime import date

    from attenscope.viz.export.offline_html import build_view_page
    from attenscope.viz.export.parts import View, Words
    from attenscope.viz.figures.figure_style import LIGHT

    said = {name: "x\ud800" if name == where else "x" for name in ("title", "text", "fact", "notes")}
    view = View(said["title"], [Words(said["text"])], {"sentence": said["fact"]})
    build_view_page(view, LIGHT, date(2025, 1, 1), said["notes"]).encode("utf-8")
