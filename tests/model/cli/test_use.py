"""What the commands that use a checkpoint write, and what they refuse before they begin."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest
import torch

from attenscope import devices, translate
from attenscope.__main__ import main
from attenscope.cli import translate_and_evaluate
from attenscope.devices import DeviceError, choose_device
from attenscope.evaluation.quality import QUOTES_SECTION
from attenscope.translate import Translator
from tests import toy


@pytest.fixture
def copied(toy_checkpoint: Path, tmp_path: Path) -> Path:
    """A checkpoint of its own folder, outside of checkpoints/ and named as one that is there."""
    return Path(shutil.copytree(toy_checkpoint, tmp_path / "everyday-en-de"))


def test_quality_is_written_beside_the_checkpoint_that_was_given(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = tmp_path / "checkpoints"
    (released / copied.name).mkdir(parents=True)
    (released / "sentences.en").write_text(f"{toy.sentences(1)[0][0]}\n", encoding="utf-8")
    monkeypatch.setattr(translate_and_evaluate, "CHECKPOINTS_FOLDER", released)
    english, german = toy.sentences(2)[1]
    rows = f"| sentence | what it writes | remark |\n|---|---|---|\n| {english} |  | right |"
    table = QUOTES_SECTION.replace_section(QUOTES_SECTION.empty, rows)
    (copied / "README.md").write_text(f"# Toy\n\n{table}", encoding="utf-8")
    assert main(["quality", "--checkpoint", str(copied), "--device", "cpu"]) == 0
    assert f"| {english} | {german} | right |" in (copied / "README.md").read_text(encoding="utf-8")
    assert f"--checkpoint {copied}`" in (copied / "sentences.md").read_text(encoding="utf-8")
    assert not list((released / copied.name).iterdir())


@pytest.mark.parametrize("command", ["quality", "trace", "evaluate"])
def test_what_cannot_be_written_is_told_before_anything_is_loaded(
    command: str, copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(translate.Translator, "load", lambda *_: pytest.fail("loaded"))
    out = tmp_path / "none" / "out"
    (copied / "sentences.md").mkdir()
    more = {
        "quality": [],
        "trace": ["a", "--output", out],
        "evaluate": ["--source", "a", "--reference", "b", "--output", out],
    }[command]
    assert main([command, "--checkpoint", str(copied), *map(str, more)]) == 2
    assert ("is a folder" if command == "quality" else "There is no folder") in capsys.readouterr().err


def test_a_link_to_a_file_that_is_not_there_yet_stays_one(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    translate_and_evaluate.check_writable(link)
    assert link.is_symlink()
    assert not target.exists()
    target.write_text("before")
    translate_and_evaluate.check_writable(link)
    assert (link.is_symlink(), target.read_text()) == (True, "before")


@pytest.mark.parametrize("name", ["cuda", "gpu", "cuda:3", "meta", ""])
def test_a_device_that_is_not_there_is_one_sentence(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["trace", "a", "--output", "unused.safetensors", "--device", name]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"python -m model trace: There is no device {name!r} here; --device may be: cpu")
    assert error.count("\n") == 1
    assert not Path("unused.safetensors").exists()


def test_devices_are_numbered_where_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert devices.available_devices() == ("cpu", "cuda", "cuda:0", "cuda:1")
    assert choose_device() == torch.device("cuda")
    assert choose_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(DeviceError, match="--device may be: cpu, cuda, cuda:0, cuda:1"):
        choose_device("cuda:2")


def test_a_translation_can_be_the_hypothesis_closest_to_a_reference(
    toy_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """References that are hypotheses themselves, the last of its beam each, are found in it."""
    english = [pair[0] for pair in toy.sentences(5)]
    found = Translator.load(toy_checkpoint, "cpu").hypotheses_batch(english, 3)
    last = [hypotheses[-1] for hypotheses in found]
    assert last != [hypotheses[0] for hypotheses in found]
    (tmp_path / "references").write_text("\n".join([*last, ""]) + "\n", encoding="utf-8")
    arguments = ["translate", "--checkpoint", str(toy_checkpoint), "--device", "cpu", "--beam", "3", "--closest-to"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([*english, ""]) + "\n"))
    assert main([*arguments, str(tmp_path / "references")]) == 0
    assert capsys.readouterr().out.split("\n") == [*last, "", ""]
    monkeypatch.setattr("sys.stdin", io.StringIO(english[0]))
    assert main([*arguments, str(tmp_path / "references")]) == 2
    assert "has 6 lines and the text 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", ["trace dog --output a.safetensors", "translate", "why dog --word 1"], ids=lambda text: text.split()[0]
)
def test_a_sentence_of_the_command_line_takes_one_core(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside one busy process several threads took ten times as long."""
    told: list[str] = []

    def stopped() -> None:
        told.append("one thread")
        raise ValueError("stop here")

    for module in ("translate_and_evaluate", "why"):
        monkeypatch.setattr(f"attenscope.cli.{module}.limit_to_one_thread", stopped)
    assert main(command.split()) == 2
    assert told == ["one thread"]
