"""Who imports whom, read from the sources of `model/` and `viz/`.

A room is a folder. Imports inside functions and under TYPE_CHECKING count as well.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from fnmatch import fnmatch
from graphlib import TopologicalSorter

import pytest

from tests.sources import ROOT, Import, files, imports, room, tree

LEVELS = (
    "model.language",
    "model.atomic_write model.devices model.masking",
    "model.trace",
    "model.pytorch",
    "model.network model.untrusted_trace model.masks.diagnose.inputs",
    "model.masks.diagnose.mistakes",
    "model.text model.decoding model.capture.foreign.calls model.masks.diagnose.readers model.masks.diagnose.rules",
    "model.capture.foreign",
    "model.capture model.checkpoint model.masks.diagnose",
    "model.live",
    "model.interventions model.analysis model.behaviour model.training model.translate model.hugging_face",
    "model.behaviour.backends model.faults model.positions model.user_model",
    "model.testing",
    "model.attribution model.faults.reported",
    "model.attribution.foreign",
    "model.experiments model.evaluation model.atlas",
    "model.heads model.word_alignment",
    "model.cli",
    "model.__main__",
    "viz",
    "viz.streamlit_internals viz.fair_queue viz.figures",
    "viz.queued_cache",
    "viz.figures.* viz.components viz.ui.url_state",
    "viz.components.presenter viz.components.save viz.ui.addresses viz.engine viz.serving",
    "viz.components.*",
    "viz.ui",
    "viz.language",
    "viz.traces",
    "viz.talk viz.tour",
    "viz.__main__",
    "viz.server viz.export viz.page_setup viz.masks.judge.input viz.why.texts",
    "viz.notebook viz.command viz.explore viz.decode viz.why viz.heads viz.positions viz.training viz.masks.*",
    "viz.explore.views viz.why.views viz.heads.views",
    "viz.explore.*",
    "viz.pages",
    "app",
)
"""The rooms, lowest level first: a room imports only rooms of lower levels, so none stands in a circle."""
PAGES = ("viz.explore", "viz.decode", "viz.why", "viz.heads", "viz.positions", "viz.training", "viz.masks")
"""Rooms of one page each: none imports another."""
NEVER = {
    "model": {"viz", "streamlit", "plotly", "bench", "tests"},
    "viz": {"torch", "bench", "tests"},
    "viz.figures": {"model", "streamlit", "torch"},
}
"""What the files of a part do without when they run; a figure may name types of the model."""
FOUNDATIONS = ("model.trace", "model.network.config", "model.network.attention")
BELOW = ("model.atomic_write", "model.language")
"""What foundations may stand on."""
WITHOUT_TORCH = ("trace", "untrusted_trace", "masking.rule", "masking.conventions", "diagnosis.readers.files")


def inside() -> list[Import]:
    """The imports of the project's own files."""
    return [arrow for arrow in imports() if arrow.target in files()]


def level(room: str) -> int:
    """The line of a room in LEVELS; one that names it goes before a pattern."""
    named = [at for at, line in enumerate(LEVELS) if room in line.split()]
    matching = [at for at, line in enumerate(LEVELS) if any(fnmatch(room, name) for name in line.split())]
    assert matching, f"{room} stands on no level"
    return (named or matching)[0]


def is_of(file: str, part: str) -> bool:
    return f"{file}.".startswith(f"{part}.")


def page(file: str) -> str:
    """The page that a file belongs to, if it belongs to one; a file of viz/pages/ is one."""
    return file if room(file) == "viz.pages" else next((name for name in PAGES if is_of(file, name)), "")


def is_upward(arrow: Import) -> bool:
    """Into a room that is on no lower level."""
    here, there = room(arrow.file), room(arrow.target)
    return here != there and level(there) >= level(here)


def is_across(arrow: Import) -> bool:
    """From one page into another; a file of viz/pages/ stands above the rooms of its page."""
    here, there = page(arrow.file), page(arrow.target)
    same_level = (room(arrow.file) == "viz.pages") == (room(arrow.target) == "viz.pages")
    return bool(here and there) and here != there and same_level


def test_no_file_imports_itself_by_way_of_others() -> None:
    arrows: dict[str, set[str]] = {file: set() for file in files()}
    for arrow in inside():
        arrows[arrow.file].add(arrow.target)
    TopologicalSorter(arrows).prepare()


def test_a_room_imports_lower_rooms() -> None:
    assert [str(arrow) for arrow in inside() if is_upward(arrow)] == []


def test_no_page_imports_another() -> None:
    assert [str(arrow) for arrow in inside() if is_across(arrow)] == []


@pytest.mark.parametrize("part", NEVER)
def test_what_a_part_does_without(part: str) -> None:
    own = [arrow for arrow in imports() if arrow.runs and is_of(arrow.file, part)]
    assert [str(arrow) for arrow in own if arrow.target.partition(".")[0] in NEVER[part]] == []


def test_the_installed_parts_import_themselves_relatively() -> None:
    """Installed in editable mode they stand as they are here, and neither is found by its name here."""
    for part in ("model", "viz.figures"):
        own = [arrow for arrow in inside() if arrow.runs and is_of(arrow.file, part)]
        assert [str(arrow) for arrow in own if not (arrow.level and is_of(arrow.target, part))] == []


@pytest.mark.parametrize("file", FOUNDATIONS)
def test_a_foundation_imports_no_other_file(file: str) -> None:
    others = [arrow for arrow in inside() if arrow.file == file and arrow.target not in BELOW]
    assert [str(arrow) for arrow in others] == []


def test_capture_knows_no_transformer() -> None:
    """It works on models that nobody here wrote."""
    own = [arrow for arrow in inside() if is_of(arrow.file, "model.capture")]
    assert [str(arrow) for arrow in own if arrow.target == "model.network.transformer"] == []


def test_reading_and_judging_need_no_torch() -> None:
    modules = [f"model.{name}" for name in WITHOUT_TORCH]
    code = f"import importlib, sys; sys.modules['torch'] = None; [importlib.import_module(name) for name in {modules}]"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_few_modules_cache() -> None:
    """What pages share, what Why and Heads alone compute, and what both do it by."""
    assert {file for file in files() if "st.cache_" in ast.unparse(tree(file))} == {
        "viz.queued_cache",
        "viz.ui.cache",
        "viz.why.cache",
        "viz.heads.cache",
    }
