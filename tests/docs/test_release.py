"""The files of a release: the same bytes each time, with checksums that anybody can check."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from datetime import date
from pathlib import Path

import pytest

from attenscope.viz.export import __main__ as export
from publish import release


def test_an_archive_knows_no_dates_and_one_order(tmp_path: Path) -> None:
    for at, names in enumerate((("b.html", "a/c.js"), ("a/c.js", "b.html"))):
        for name in names:
            file = tmp_path / str(at) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"the same {name}", encoding="utf-8")
            os.utime(file, (at * 10**9, at * 10**9))
        release.write_folder_archive(tmp_path / str(at), tmp_path / f"{at}.zip")
    assert (tmp_path / "0.zip").read_bytes() == (tmp_path / "1.zip").read_bytes()
    assert zipfile.ZipFile(tmp_path / "0.zip").namelist() == ["a/c.js", "b.html"]


def test_checksums_are_of_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "DIST", tmp_path)
    for name in ("b.whl", "a.html"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    for _ in range(2):
        release.write_checksums()
    lines = (tmp_path / release.CHECKSUMS_FILE).read_text(encoding="utf-8").splitlines()
    assert lines == [f"{hashlib.sha256(name.encode()).hexdigest()}  {name}" for name in ("a.html", "b.whl")]


def test_a_file_bears_the_day_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert export._read_build_date() == date(2023, 11, 14)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    assert export._read_build_date() == date.today()


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_release_twice_is_the_same(tmp_path: Path) -> None:
    """In a checkout of its own, so that no file that lies about changes it."""
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tmp_path / "tree"], cwd=release.ROOT, check=True)
    try:
        command = [sys.executable, "-m", "publish.release"]
        runs = [subprocess.run(command, cwd=tmp_path / "tree", capture_output=True, check=True) for _ in range(2)]
        assert runs[0].stdout == runs[1].stdout
        assert len(runs[0].stdout.splitlines()) == len(release.BUILDERS)
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", tmp_path / "tree"], cwd=release.ROOT, check=True)
