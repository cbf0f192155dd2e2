"""Kinds of folders: each opens and equals transformers, or is refused in a sentence that a person understands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attenscope.runnable_model import Ability, RunnableModel
from attenscope.user_model import load_user_model
from bench.folders.__main__ import TABLE, format_row, judge
from bench.folders.kinds import KINDS, FolderKind
from bench.folders.run import make_folder

pytest.importorskip("transformers")
pytestmark = pytest.mark.timeout(600)  # a busy machine takes a minute to import transformers

SAMPLE = (
    "GPTJForCausalLM",
    "GptOssForCausalLM",
    "NLLB, languages by tokens",
    "several targets",
    "speech",
    "an adapter",
)
INSIDE = re.compile(r"object|attribute|Error|argument|\w+\(\)(?<!merge_and_unload\(\))|<class|NoneType|__")
"""Words of Python, which say nothing to a person."""


def name_kind(kind: FolderKind) -> str:
    return f"{kind.name}-{kind.traits}"


def check_kind(kind: FolderKind) -> None:
    found = judge(kind)
    assert bool(found.said) == bool(kind.refused), found.said
    assert kind.refused in found.said
    assert not INSIDE.search(found.said)
    assert format_row(found) in TABLE.read_text(encoding="utf-8"), "python -m bench.folders renews the table"


@pytest.mark.parametrize("kind", [one for one in KINDS if {one.name, one.traits} & {*SAMPLE}], ids=name_kind)
def test_a_sample_of_the_kinds(kind: FolderKind) -> None:
    check_kind(kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=name_kind)
def test_every_kind_of_folder(kind: FolderKind) -> None:
    check_kind(kind)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "ability"), [("Qwen3NextForCausalLM", "word facts"), ("LongT5ForConditionalGeneration", "attribution")]
)
def test_a_kind_lacks_what_its_attention_does_not_give(name: str, ability: Ability, tmp_path: Path) -> None:
    kind = next(one for one in KINDS if one.name == name)
    live = load_user_model(f"hf:{make_folder(kind, tmp_path / 'FOLDER')}")
    assert isinstance(live, RunnableModel)
    assert not live.can(ability)
