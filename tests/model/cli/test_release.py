"""`python -m model release` on a toy checkpoint with new weights: what was measured of the old is measured again."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from attenscope.__main__ import main
from attenscope.checkpoint.load import load_checkpoint, save_checkpoint
from attenscope.cli import release_measurements
from tests import toy


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_text(tmp_path_factory.mktemp("data") / "toy", count=40, dev=12)


@pytest.fixture(scope="module")
def as_before(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    """A checkpoint of which everything was measured, in which other weights lie now; tests change copies of it."""
    place = tmp_path_factory.mktemp("before") / "small"
    save_checkpoint(toy.checkpoint(toy.random_model(seed=1)), place)
    (place / "README.md").write_text("# Small\n")
    source, target = str(data / "dev.en"), str(data / "dev.de")
    own = ["--checkpoint", str(place), "--device", "cpu"]
    for beam in ("1", "2"):
        score = ["--source", source, "--reference", target, "--beam", beam, "--keep", "Toy dev"]
        assert main(["evaluate", *own, *score]) == 0
    text = ["--source", source, "--target", target]
    assert main(["atlas", *own, *text, "--sentences", "6", "--part", "3", "--output", str(place / "atlas")]) == 0
    assert main(["prune", *own, *text, "--sentences", "3", "--skip", "2", "--points", "3", "--orders", "2"]) == 0
    for name in ("attribution", "familiarity"):
        assert main([name, *own, "--data", str(data), "--set", "Toy dev", "--sentences", "4"]) == 0
    save_checkpoint(toy.checkpoint(toy.random_model(seed=2)), place)
    return place


@pytest.fixture
def folder(as_before: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(as_before, tmp_path / "small"))


@pytest.fixture(scope="module")
def measured_again(as_before: Path, data: Path) -> Path:
    """The same checkpoint once everything was measured with the weights that lie in it."""
    place = Path(shutil.copytree(as_before, as_before.parents[1] / "again" / "small"))
    assert measured(place, data) == 0
    return place


def kept(folder: Path) -> dict[str, Any]:
    names = ("atlas/atlas.json", "pruning.json", "attribution.json", "familiarity.json")
    return {name: json.loads((folder / name).read_text()) for name in names}


def hashes(folder: Path) -> set[str]:
    return {one.get("plan", one)["model_hash"] for one in kept(folder).values()}


def measured(folder: Path, data: Path, *more: str) -> int:
    parts = ["scores", "atlas", "prune", "align", "attribution", "familiarity", "timeline", "int8"]
    return main(["release", str(folder), "--data", str(data), "--device", "cpu", "--only", *parts, *more])


@pytest.mark.sweep
def test_everything_is_measured_again_as_it_was(as_before: Path, measured_again: Path) -> None:
    now = load_checkpoint(as_before).hash
    before, scores = kept(as_before), json.loads((as_before / "scores.json").read_text())["scores"]
    assert now not in hashes(as_before)
    after, again = kept(measured_again), json.loads((measured_again / "scores.json").read_text())["scores"]
    assert hashes(measured_again) == {now}
    assert {**before["atlas/atlas.json"]["plan"], "model_hash": now} == after["atlas/atlas.json"]["plan"]
    for name, fields in (
        ("pruning.json", ("source", "first_line", "sentences", "left")),
        ("attribution.json", ("set", "sentences")),
        ("familiarity.json", ("set", "sentences")),
    ):
        assert [before[name][field] for field in fields] == [after[name][field] for field in fields]
    assert len(before["pruning.json"]["random"]) == len(after["pruning.json"]["random"])
    assert [(one["set"], one["beam"]) for one in again] == [(one["set"], one["beam"]) for one in scores]
    assert [one["chrf"] for one in again] != [one["chrf"] for one in scores]
    found = json.loads((measured_again / "int8.json").read_text())
    assert (found["model_hash"], found["source"], found["sentences"]) == (now, "toy/dev.en", 12)
    assert not (measured_again / "atlas.new").exists()


def test_an_atlas_begun_of_yet_other_weights_is_begun_again(folder: Path, data: Path) -> None:
    (folder / "atlas.new").mkdir()
    begun = json.loads((folder / "atlas" / "atlas.json").read_text())
    begun["plan"]["model_hash"] = "a" * 12
    (folder / "atlas.new" / "atlas.json").write_text(json.dumps({**begun, "complete": False}))
    assert main(["release", str(folder), "--data", str(data), "--only", "atlas", "--device", "cpu"]) == 0
    assert kept(folder)["atlas/atlas.json"]["plan"]["model_hash"] == load_checkpoint(folder).hash


def test_what_is_of_these_weights_is_left(measured_again: Path, data: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(measured_again, tmp_path / "small"))
    names = ("atlas/atlas.json", "pruning.json", "attribution.json", "familiarity.json", "int8.json")
    before = {name: (place / name).stat().st_mtime_ns for name in names}
    assert measured(place, data) == 0
    assert {name: (place / name).stat().st_mtime_ns for name in names} == before


def test_a_score_whose_text_is_not_given_stays_and_is_named(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "scores.json").read_text()
    other = toy.write_text(tmp_path / "other", count=40)
    assert main(["release", str(folder), "--data", str(other), "--only", "scores"]) == 0
    assert "No folder of --data is the text of Toy dev: its score stays." in capsys.readouterr().out
    assert (folder / "scores.json").read_text() == before


@pytest.mark.parametrize(("failed", "code"), [([], 0), (["tests/a.py::test_one - assert 1 == 2"], 1)])
def test_what_no_longer_holds_is_named(
    folder: Path,
    data: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    failed: list[str],
    code: int,
) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        assert all(Path(one).exists() for one in command if "tests/" in one)
        out = "".join(f"FAILED {one}\n" for one in failed)
        return subprocess.CompletedProcess(command, int(bool(failed)), stdout=out, stderr="")

    monkeypatch.setattr(release_measurements.subprocess, "run", run)
    assert main(["release", str(folder), "--data", str(data), "--only", "claims"]) == code
    said = capsys.readouterr().out
    assert ("All that is said of released models holds." in said) == (not failed)
    assert all(one in said for one in failed)
