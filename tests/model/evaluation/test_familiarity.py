"""When a model's own doubt says that a sentence is unlike its text: measured, kept, and read again."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from attenscope.__main__ import main
from attenscope.checkpoint.load import CHECKPOINTS_FOLDER, list_checkpoints, load_checkpoint
from attenscope.evaluation.in_domain_detection import (
    FALSE_ALARMS,
    FAMILIARITY_FILE,
    FamiliarityError,
    describe_familiarity,
    mean_log_prob,
    measure_familiarity,
    read_familiarity,
    replace_familiarity_section,
)
from attenscope.translate import Translator
from tests import toy


@pytest.mark.sweep
def test_as_many_lie_below_the_threshold_as_are_said_to(toy_translator: Translator) -> None:
    pairs = toy.sentences(60, seed=5)
    found = measure_familiarity(toy_translator, pairs, "toy", 20, seed=3)
    chosen = [pairs[at] for at in np.random.default_rng(3).permutation(60)[:20]]
    own, foreign = ([toy_translator.translate(pair[side], capture=False).steps for pair in chosen] for side in (0, 1))
    assert sum(map(found.is_translation_unfamiliar, own)) / 20 == FALSE_ALARMS
    assert found.foreign.caught == pytest.approx(sum(map(found.is_translation_unfamiliar, foreign)) / 20)
    by_hand = [math.log(math.prod(math.exp(step.log_prob) for step in steps)) / len(steps) for steps in own]
    assert [mean_log_prob(steps) for steps in own] == pytest.approx(by_hand)


def test_the_command_keeps_it_beside_the_model_and_in_its_card(
    toy_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(toy_checkpoint, folder)
    (folder / "README.md").write_text("# A card\n", encoding="utf-8")
    data = toy.write_text(tmp_path / "data")
    assert main(["familiarity", "--checkpoint", str(folder), "--data", str(data), "--sentences", "3"]) == 0
    kept = read_familiarity(folder, "mine", Translator.load(folder).checkpoint.hash)
    assert (kept.set, kept.sentences) == ("data dev", 3)
    assert describe_familiarity(kept) in capsys.readouterr().out
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert card.startswith("# A card\n\n## Familiar text\n")
    assert replace_familiarity_section(card, kept) == card


def test_too_little_text_and_a_broken_file_are_said(toy_translator: Translator, tmp_path: Path) -> None:
    with pytest.raises(FamiliarityError, match="little has 1 sentences; 6 are to be measured"):
        measure_familiarity(toy_translator, toy.sentences(1), "little", 6)
    with pytest.raises(FamiliarityError, match="Nobody has measured how probable toy finds its own text"):
        read_familiarity(tmp_path, "toy", "")
    (tmp_path / FAMILIARITY_FILE).write_text('{"shuffled": 3}', encoding="utf-8")
    with pytest.raises(FamiliarityError, match=r"is damaged .* measure again with `python -m model familiarity"):
        read_familiarity(tmp_path, "toy", "")


@pytest.mark.parametrize("name", list_checkpoints())
def test_every_released_model_has_been_measured_as_it_is(name: str) -> None:
    found = read_familiarity(CHECKPOINTS_FOLDER / name, name, load_checkpoint(name).hash)
    assert describe_familiarity(found) in (CHECKPOINTS_FOLDER / name / "README.md").read_text(encoding="utf-8")
