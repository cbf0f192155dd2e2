"""The table of ratios, its place in the README, and the fairness of the turns."""

from __future__ import annotations

import platform
import re
from dataclasses import replace

import pytest

from bench.__main__ import BEGIN, END, LONG, NAMES, README, machine, main, replaced, table
from bench.timing import Row, side_by_side

MET = Row("greedy: tokens/s", "1,000", "400", 2.5, "at least 2", True)
MISSED = Row("capture: time", "60 ms", "50 ms", 1.2, "at most 1.05", False)


def test_rows_as_markdown() -> None:
    lines = table([MET, MISSED]).splitlines()
    assert len(lines) == 4
    assert {line.count("|") for line in lines} == {7}
    assert lines[2] == "| greedy: tokens/s | 1,000 | 400 | 2.50 | at least 2 | yes |"
    assert lines[3].endswith("| **no** |")


def test_only_the_lines_of_what_was_measured_are_replaced() -> None:
    empty = f"before\n{BEGIN}{END}after\n"
    both = replaced(empty, "A machine.", [MISSED, MET], NAMES)
    assert both == f"before\n{BEGIN}\nA machine.\n\n{table([MISSED, MET])}\n{END}after\n"
    faster = replace(MET, ours="2,000", ratio=5.0)
    assert replaced(both, "A machine.", [faster], ["greedy"]) == both.replace(
        "1,000 | 400 | 2.50", "2,000 | 400 | 5.00"
    )
    assert replaced(both, "Another.", [MET], NAMES) == replaced(empty, "Another.", [MET], NAMES)


def test_lines_of_two_machines_never_stand_in_one_table() -> None:
    both = replaced(f"{BEGIN}{END}", "A machine.", [MISSED, MET], NAMES)
    with pytest.raises(SystemExit, match="another machine"):
        replaced(both, "Another machine.", [MET], ["greedy"])


def test_a_readme_without_the_marks_is_refused() -> None:
    with pytest.raises(SystemExit, match="no place for the table"):
        replaced("no marks here", "A machine.", [MET], NAMES)


def test_the_readme_has_its_place_and_explains_every_measurement() -> None:
    text = README.read_text(encoding="utf-8")
    assert replaced(text, "A machine.", [MET], NAMES) != text
    assert set(re.findall(r"^- \*\*(\w+)\*\*", text, re.MULTILINE)) == set(NAMES)
    measured = set(re.findall(r"^\| (\w+)[:,]", text, re.MULTILINE))
    # A machine without a GPU has no lines of that, and the table is of the machine that measured all of it.
    assert measured | {"gpu", "foreign", "long_text"} == {*NAMES, *LONG}


def test_the_two_take_turns_and_each_is_first_equally_often() -> None:
    calls: list[str] = []
    side_by_side(lambda: calls.append("ours"), lambda: calls.append("theirs"), repetitions=4, warm_up=1)
    rounds = [calls[i : i + 2] for i in range(0, len(calls), 2)]
    assert all(sorted(one) == ["ours", "theirs"] for one in rounds)
    assert [one[0] for one in rounds[1:]].count("ours") == 2


def test_medians_belong_to_their_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    def ours() -> None: ...
    def theirs() -> None: ...

    times = {ours: iter([1.0, 9.0, 2.0]), theirs: iter([5.0, 5.0, 6.0])}
    monkeypatch.setattr("bench.timing.seconds", lambda function: next(times[function]))
    assert side_by_side(ours, theirs, repetitions=3) == (2.0, 5.0)


def test_the_machine_is_described_without_its_name() -> None:
    assert "torch" in machine()
    assert platform.node() not in machine()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["speed"], "no measurement speed; there are attribution, capture"),
        (["greedy", "--right"], "unrecognized arguments"),
    ],
)
def test_wrong_arguments_get_a_sentence(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err
