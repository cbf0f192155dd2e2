"""The workflows and issue templates: read as YAML, and every command, file and target in them is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from attenscope.__main__ import COMMANDS
from publish.release import LIVE_FILE
from tests.docs.test_commands import TARGETS

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def read(path: Path) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def list_steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in read(path)["jobs"].values() for step in job["steps"]]


def test_there_is_one_for_tests_site_and_release() -> None:
    assert [path.stem for path in WORKFLOWS] == ["pages", "release", "test"]
    matrix = read(ROOT / ".github/workflows/test.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13"]
    # YAML reads the word "on" as true.
    assert read(ROOT / ".github/workflows/release.yml")[True] == {"push": {"tags": ["v*"]}}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_command_is_there(path: Path) -> None:
    ran = [step["run"] for step in list_steps(path) if "run" in step]
    assert ran
    for command in ran:
        program, *words = command.split()
        assert program in ("make", "gh"), command
        if program == "make":
            assert set(words) <= set(TARGETS), command
    text = path.read_text(encoding="utf-8")
    assert all((ROOT / name).is_file() for name in re.findall(r"--notes-file (\S+)", text))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_have_versions_and_jobs_have_limits(path: Path) -> None:
    for job in read(path)["jobs"].values():
        assert job["timeout-minutes"] <= 180
    used = [step["uses"] for step in list_steps(path) if "uses" in step]
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", one) for one in used)
    assert read(path)["permissions"]["contents"] in ("read", "write")


def test_the_site_is_published_from_where_make_writes_it() -> None:
    (upload,) = (step for step in list_steps(ROOT / ".github/workflows/pages.yml") if "upload" in step.get("uses", ""))
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert f"site_dir: {upload['with']['path']}\n" in settings
    (build,) = (step for step in list_steps(ROOT / ".github/workflows/pages.yml") if step.get("run") == "make site")
    assert all(f"!ENV [{name}," in settings for name in build["env"])


def test_the_readme_links_a_file_of_the_release() -> None:
    links = re.findall(r"\(\.\./\.\./releases/latest/download/([\w.-]+)\)", (ROOT / "README.md").read_text())
    assert links == [LIVE_FILE]


def test_the_version_is_the_same_everywhere() -> None:
    assert read(ROOT / "CITATION.cff")["version"] == VERSION
    released = re.findall(r"^## (\d[\d.]*) - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == (VERSION, str(read(ROOT / "CITATION.cff")["date-released"]))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_a_template_asks_for_what_is_needed(path: Path) -> None:
    form = read(path)
    if path.stem == "config":
        assert form == {"blank_issues_enabled": True}
        return
    text = path.read_text(encoding="utf-8")
    assert {one["id"] for one in form["body"] if one["validations"]["required"]} >= {"versions"}
    assert all(name in COMMANDS for name in re.findall(r"python -m model (\w+)", text))
    assert path.stem != "mask" or "diagnose FILE --meant MEANING --json" in text
