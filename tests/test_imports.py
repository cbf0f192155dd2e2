"""Who imports whom, and how large the parts are, read from the sources of `model/` and `viz/`.

A room is a folder. Imports inside functions and under TYPE_CHECKING count as well.
"""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from collections import Counter
from fnmatch import fnmatch
from graphlib import TopologicalSorter

import pytest

from .sources import ROOT, Import, files, imports, is_package, room, tree

LEVELS = (
    "model.trace model.devices model.masking",
    "model.network model.diagnosis model.untrusted_trace",
    "model.text model.decoding model.capture.foreign model.diagnosis.readers",
    "model.capture model.checkpoint",
    "model.interventions model.analysis model.behaviour model.training model.translate",
    "model.testing model.faults model.positions model.experiments model.evaluation model.user_model",
    "model.cli",
    "model.__main__",
    "viz.figures",
    "viz.components",
    "viz.components.presenter viz.components.save",
    "viz.components.*",
    "viz.ui",
    "viz.traces viz.talk viz.__main__",
    "viz.export",
    "viz.explore viz.decode viz.positions viz.training viz.masks",
    "viz.explore.views viz.masks.gallery viz.masks.judge viz.masks.trial",
    "viz.explore.live viz.explore.trace",
    "viz.pages",
    "app",
)
"""The rooms, lowest level first: a room imports only rooms of lower levels."""
PAGES = ("viz.explore", "viz.decode", "viz.positions", "viz.training", "viz.masks")
"""Rooms of one page each: none imports another."""
NEVER = {
    "model": {"viz", "streamlit", "plotly", "bench", "tests"},
    "viz": {"torch", "bench", "tests"},
    "viz.figures": {"model", "streamlit", "torch"},
}
"""What the files of a part do without when they run; a figure may name types of the model."""
FOUNDATIONS = ("model.trace", "model.network.config", "model.network.masks")
WITHOUT_TORCH = ("trace", "untrusted_trace", "masking.rule", "masking.conventions", "diagnosis.readers.files")
BESIDE_THE_ROOMS, IN_A_ROOM = 8, 12
"""Modules at the most, `__init__` apart."""
MEDIAN_FILE, LONGEST_FUNCTION = 120, 60
"""Lines, which none reaches."""

STILL_UPWARD = {
    "viz.components.presenter -> viz.talk.scenes",
    "viz.masks.saving -> viz.masks.trial.texts",
    "viz.masks.trial.page -> viz.decode.compare",
    "viz.positions.experiments -> viz.decode.compare",
    "viz.positions.versions -> viz.decode.compare",
    "viz.ui.theme -> viz.talk.session",
}
STILL_CIRCULAR = {"viz.explore.choices -> viz.explore.scene"}
STILL_LARGE = {"model.diagnosis", "viz.figures", "viz.masks.judge"}


def inside() -> list[Import]:
    """The imports of the project's own files."""
    return [one for one in imports() if one.target in files()]


def level(room: str) -> int:
    """The line of a room in LEVELS; one that names it goes before a pattern."""
    named = [at for at, line in enumerate(LEVELS) if room in line.split()]
    matching = [at for at, line in enumerate(LEVELS) if any(fnmatch(room, name) for name in line.split())]
    assert matching, f"{room} stands on no level"
    return (named or matching)[0]


def page(file: str) -> str:
    """The page that a file belongs to, if it belongs to one."""
    own = (name for name in PAGES if f"{file}.".startswith(f"{name}."))
    return file if room(file) == "viz.pages" else next(own, "")


def is_upward(one: Import) -> bool:
    """Into a room that is on no lower level."""
    here, there = room(one.file), room(one.target)
    return here != there and level(there) >= level(here)


def is_across(one: Import) -> bool:
    """From one page into another; a file of viz/pages/ stands above the rooms of its page."""
    here, there = page(one.file), page(one.target)
    return (
        bool(here and there) and here != there and (room(one.file) == "viz.pages") == (room(one.target) == "viz.pages")
    )


def wrong_imports() -> set[str]:
    return {str(one) for one in inside() if is_upward(one) or is_across(one)}


def large_rooms() -> set[str]:
    sizes = Counter(room(file) for file in files() if not is_package(file))
    return {name for name, size in sizes.items() if size > IN_A_ROOM}


def is_of(file: str, part: str) -> bool:
    return f"{file}.".startswith(f"{part}.")


def test_no_file_imports_itself_by_way_of_others() -> None:
    arrows = {
        file: {one.target for one in inside() if one.file == file and str(one) not in STILL_CIRCULAR}
        for file in files()
    }
    TopologicalSorter(arrows).prepare()


def test_a_room_imports_lower_rooms_and_no_page_another() -> None:
    assert wrong_imports() <= STILL_UPWARD


def test_no_room_is_large() -> None:
    assert large_rooms() <= STILL_LARGE


@pytest.mark.xfail(reason="once it is gone, it leaves the list", strict=True)
@pytest.mark.parametrize("arrow", sorted(STILL_UPWARD | STILL_CIRCULAR))
def test_a_wrong_import_is_gone(arrow: str) -> None:
    assert arrow not in {str(one) for one in inside()}


@pytest.mark.xfail(reason="once it is divided, it leaves the list", strict=True)
@pytest.mark.parametrize("name", sorted(STILL_LARGE))
def test_a_large_room_is_divided(name: str) -> None:
    assert name not in large_rooms()


@pytest.mark.parametrize("part", NEVER)
def test_what_a_part_does_without(part: str) -> None:
    found = [one for one in imports() if one.runs and is_of(one.file, part)]
    assert not {str(one) for one in found if one.target.partition(".")[0] in NEVER[part]}


def test_the_installed_parts_import_themselves_relatively() -> None:
    """model/ is installed as attenscope, viz/figures/ as attenscope.figures: by its name here neither is found."""
    own = [one for one in inside() if one.runs and (is_of(one.file, "model") or is_of(one.file, "viz.figures"))]
    assert not {str(one) for one in own if not one.level}
    assert not {str(one) for one in own if one.level > 1 and is_of(one.file, "viz.figures")}


@pytest.mark.parametrize("file", FOUNDATIONS)
def test_a_foundation_imports_no_other_file(file: str) -> None:
    assert [one for one in inside() if one.file == file] == []


def test_capture_knows_no_transformer() -> None:
    """It works on models that nobody here wrote."""
    assert not [
        one for one in inside() if is_of(one.file, "model.capture") and one.target == "model.network.transformer"
    ]


def test_reading_and_judging_need_no_torch() -> None:
    modules = [f"model.{name}" for name in WITHOUT_TORCH]
    code = f"import importlib, sys; sys.modules['torch'] = None; [importlib.import_module(name) for name in {modules}]"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_only_cache_caches() -> None:
    assert {file for file in files() if "st.cache_" in ast.unparse(tree(file))} == {"viz.ui.cache"}


def test_files_and_functions_are_short() -> None:
    beside = [file for file in files() if is_of(file, "model") and room(file) == file and not is_package(file)]
    assert len(beside) <= BESIDE_THE_ROOMS
    assert (
        statistics.median(len(path.read_text(encoding="utf-8").splitlines()) for path in files().values()) < MEDIAN_FILE
    )
    functions = [
        (f"{file}.{node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for file in files()
        for node in ast.walk(tree(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [one for one in functions if one[1] >= LONGEST_FUNCTION] == []
