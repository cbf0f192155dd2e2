"""history.csv: what is written comes back, and what is no history is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from attenscope.checkpoint.load import CHECKPOINTS_FOLDER
from attenscope.checkpoint.measurements import HISTORY_FILE, HistoryError, HistoryRow, read_history, write_history
from attenscope.checkpoint.recipe import RECIPE_FILE, Recipe

ROWS = (HistoryRow(50, 0, 8.4684, 1.5e-4, 3443.0, 56.0), HistoryRow(100, 0, 7.2, 3e-4, 4673.0, 98.0, 12.5))


def test_rows_come_back(tmp_path: Path) -> None:
    write_history(ROWS, tmp_path / HISTORY_FILE)
    assert read_history(tmp_path) == ROWS
    assert read_history(tmp_path / "elsewhere") == ()


@pytest.mark.parametrize(
    "text", ["step,loss\n1,2\n", "step,epoch,loss,rate,tokens_per_second,seconds,bleu\nx,,,,,,\n", "\0"]
)
def test_what_is_no_history_gets_a_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / HISTORY_FILE).write_text(text + "1\n")
    with pytest.raises(HistoryError, match=r"history\.csv is not a training history: it must have the columns step"):
        read_history(tmp_path)


def test_the_released_history_is_read() -> None:
    rows = read_history(CHECKPOINTS_FOLDER / "everyday-en-de")
    assert rows[-1].step == Recipe.load(CHECKPOINTS_FOLDER / "everyday-en-de" / RECIPE_FILE).steps
    assert rows[-1].bleu is not None
    assert [row.step for row in rows] == sorted(row.step for row in rows)
