"""What is saved of Decode as a table."""

from __future__ import annotations

import math

from model.translate import Translator
from viz.decode.saving import numbers
from viz.figures.labels import readable


def test_the_table_gives_each_candidate_and_its_probability_a_column(toy_translator: Translator) -> None:
    result = toy_translator.translate("the old dog sees a cat.")
    table = numbers(result)
    assert list(table.index) == list(range(1, len(result.steps) + 1))
    assert list(table["probability"]) == [math.exp(step.log_prob) for step in result.steps]
    for at, step in enumerate(result.steps, start=1):
        assert step.candidates
        for place, one in enumerate(step.candidates, start=1):
            assert table.loc[at, f"candidate {place}"] == readable(one.token)
            assert table.loc[at, f"probability {place}"] == math.exp(one.log_prob)
