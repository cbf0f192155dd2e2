"""The command `attenscope` in an environment that has nothing of this project but its wheel."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import serving, visit
from tests.test_install import PAGES, SCRIPT, copied, environment, install, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
OPENED = "my.safetensors · an opened trace"


def test_the_command_judges_opens_a_trace_and_serves_every_page(tmp_path: Path, chromium: Browser) -> None:
    python, _ = environment(tmp_path)
    project = copied(tmp_path)
    install(python, project.with_name("project[app]"), "--no-index")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    run(python, SCRIPT, folder)
    pages = ("decode", "why", "heads", "positions", "training", "masks", "talk")
    assert run(python, PAGES, folder, *(f"{page}.py" for page in pages)) == "everyday-en-de everyday-zh-en"
    command = str(Path(python).with_name("attenscope"))

    def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([command, *arguments], cwd=folder, capture_output=True, text=True, check=False)

    judged = ask("diagnose", "my.safetensors")
    assert (judged.returncode, judged.stderr) == (0, "")
    assert judged.stdout.startswith("my.safetensors: no contradiction")
    refused = ask("open", "script.py")
    assert refused.returncode == 2
    assert "script.py cannot be opened" in refused.stderr
    with (
        serving(folder, command=(command, "open", "my.safetensors", "--no-browser")) as url,
        visit(chromium, url) as page,
    ):
        page.goto(url)
        expect(page.get_by_text(OPENED)).to_be_visible()
        page.get_by_role("button", name="Back to the model").click()
        expect(page.get_by_text(OPENED)).to_be_hidden()
        page.reload()
        expect(page.get_by_text(OPENED)).to_be_visible()
    with serving(folder, command=(command, "app", "--no-browser")) as url, visit(chromium, url) as page:
        page.goto(url)
        expect(page.locator(".st-key-head-picture")).to_be_visible()
