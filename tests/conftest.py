"""A tiny tokenizer and models for every test: one with random weights, one that has learned a toy language."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import settings

from attenscope.checkpoint.load import save_checkpoint
from attenscope.checkpoint.recipe import RECIPE_FILE, Recipe
from attenscope.devices import available_devices
from attenscope.gallery.exhibits import EXHIBITS, ExhibitSide, run_exhibit
from attenscope.network.transformer import Transformer
from attenscope.text.tokenizer import Tokenizer
from attenscope.translate import Translator
from tests import toy

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The tests run side by side (make test); threads of one that wait for those of another are many times slower than one.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"

# Command lines speak English, whatever the language of this machine.
os.environ["LC_ALL"] = "C.UTF-8"
os.environ.pop("LANGUAGE", None)

# The same examples in every run, and no deadline: a shared machine is slow at times.
settings.register_profile("steady", deadline=None, derandomize=True, max_examples=40, database=None)
settings.load_profile("steady")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--gpu", default="cuda", metavar="NAME", help="the device of the tests marked gpu (default cuda)")


def pytest_report_header(config: pytest.Config) -> str:
    """One line for all tests that need a GPU, where there is none."""
    name = config.getoption("--gpu")
    return f"gpu: {name}" if name in available_devices() else f"gpu: skipped, for there is no device {name!r} here"


@pytest.hookimpl(tryfirst=True)  # Before pytest chooses by marks.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for one in items:
        if "server" in getattr(one, "fixturenames", ()) and not one.get_closest_marker("journey"):
            one.add_marker(pytest.mark.sweep)
        if "chromium" in getattr(one, "fixturenames", ()):
            one.add_marker(
                pytest.mark.flaky(reruns=1)
            )  # Listed as RERUN: of a thousand steps a busy machine drops one.
    if config.getoption("--gpu") in available_devices():
        return
    skipped = [one for one in items if one.get_closest_marker("gpu")]
    config.hook.pytest_deselected(items=skipped)
    items[:] = [one for one in items if one not in skipped]


@pytest.fixture(scope="session")
def tiny_tokenizer() -> Tokenizer:
    return toy.tokenizer()


@pytest.fixture(scope="session")
def tiny_model() -> Transformer:
    """Random weights: two layers, two heads, 64 wide, in eval mode. Shared; do not change it."""
    return toy.random_model()


@pytest.fixture(scope="session")
def toy_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a checkpoint that translates the sentences of tests/toy.py without a mistake."""
    folder = tmp_path_factory.mktemp("checkpoints") / "toy-en-de"
    save_checkpoint(toy.checkpoint(toy.learned_model()), folder, torch.float32)
    Recipe("toy-en-de", "en", "de", seed=0).save(folder / RECIPE_FILE)
    return folder


@pytest.fixture(scope="session")
def exhibit() -> Callable[[str], tuple[ExhibitSide, ExhibitSide]]:
    """The broken and the fixed side of an entry of the gallery, by its name; each entry is run once."""
    return cache(lambda name: run_exhibit(EXHIBITS[name]))


@pytest.fixture(scope="session")
def toy_translator(toy_checkpoint: Path) -> Translator:
    return Translator.load(toy_checkpoint, "cpu")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The one browser of a process, for the tests of pages and for walks over them."""
    from tests.browser.conftest import open_chromium  # only here: it needs Playwright, which few tests do

    with open_chromium() as browser:
        yield browser
