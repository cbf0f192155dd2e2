"""The documents and the README as text: their size, their lines, their links, and that nothing stands there twice."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from markdown.extensions.toc import slugify

from attenscope.__main__ import COMMANDS
from publish.command_line import USE, build_measure_page, build_use_page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
TEXTS = {page.name: page.read_text(encoding="utf-8") for page in PAGES} | {
    "command-line.md": build_use_page(),
    "command-line-measure.md": build_measure_page(),
    "contributing.md": (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
    "changelog.md": re.sub(
        "^## Unreleased\n.*?(?=^## )", "", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.DOTALL | re.M
    ),
}
"""Every page of the site, those that are made from the sources too; of the changes those that are released."""
LINED = {name: text for name, text in TEXTS.items() if not name.startswith("command-line")} | {
    name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "SECURITY.md")
}
LINK = re.compile(r"(?<!`)!?\[[^]]*\]\(([^)\s]+)\)")
RELEASES = "../../releases/latest/download/"
"""What GitHub puts beside the files of a repository, seen from its front page."""


def prose(text: str) -> str:
    """The text without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as the site and GitHub make them."""
    titles = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {slugify(re.sub(r"[`*]", "", title), "-") for title in titles}


def list_pages(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    return [name for one in (entry.values() if isinstance(entry, dict) else entry) for name in list_pages(one)]


def test_the_readme_is_one_screen_of_text() -> None:
    assert len((ROOT / "README.md").read_bytes()) <= 8_000


def test_a_page_can_be_read_at_one_go() -> None:
    assert {name: size for name, text in TEXTS.items() if (size := len(text.encode())) > 12_000} == {}


def test_the_changelog_is_short() -> None:
    assert len(TEXTS["changelog.md"].encode()) <= 6_000


def test_lines_are_short_but_for_rows_of_tables() -> None:
    lines = [(name, line) for name, text in LINED.items() for line in text.splitlines()]
    assert [(name, line) for name, line in lines if len(line) > 120 and not line.startswith(("|", "!["))] == []


def test_every_page_stands_in_the_table_of_contents_once() -> None:
    settings = re.sub(r"!ENV", "", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert Counter(list_pages(yaml.safe_load(settings)["nav"])) == Counter(list(TEXTS))


def test_links_and_their_anchors_are_there() -> None:
    paths = [ROOT / "README.md", ROOT / "SECURITY.md", *PAGES]
    links = [(path, link) for path in paths for link in LINK.findall(prose(path.read_text(encoding="utf-8")))]
    for path, link in links:
        if link.startswith(("http://", "https://", RELEASES)):
            continue
        name, _, anchor = link.partition("#")
        if path.parent == DOCS and name in TEXTS:
            text = TEXTS[name]
        else:
            target = path.parent / name if name else path
            assert target.is_file(), f"{path.name}: {link}"
            text = target.read_text(encoding="utf-8") if target.suffix == ".md" else ""
        assert not anchor or anchor in anchors(text), f"{path.name}: {link}"


def test_no_sentence_stands_on_two_pages() -> None:
    found: Counter[str] = Counter()
    for path in PAGES:
        text = " ".join(line for line in prose(path.read_text(encoding="utf-8")).splitlines() if line[:1] not in "|#<!")
        found.update({one.strip() for one in re.split(r"(?<=[.:!?]) ", text) if len(one) > 60})
    assert [one for one, times in found.items() if times > 1] == []


def test_each_command_stands_on_one_page() -> None:
    assert set(USE) < set(COMMANDS)
    both = TEXTS["command-line.md"] + TEXTS["command-line-measure.md"]
    assert [name for name in COMMANDS if both.count(f"## python -m model {name}\n") != 1] == []
