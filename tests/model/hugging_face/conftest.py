"""The tiny folders, each made and opened once for all tests of this package."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from attenscope.runnable_model import RunnableModel
from attenscope.user_model import load_user_model
from tests import folders


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    base = tmp_path_factory.mktemp("folders")
    return cache(lambda name: folders.FOLDERS[name](base / name))


@pytest.fixture(scope="package")
def opened(folder: Callable[[str], Path]) -> Callable[[str], RunnableModel]:
    @cache
    def load_once(name: str) -> RunnableModel:
        found = load_user_model(f"hf:{folder(name)}")
        assert isinstance(found, RunnableModel)
        return found

    return load_once


@pytest.fixture(scope="package")
def reference(folder: Callable[[str], Path]) -> Callable[[str], Any]:
    """The same folder loaded by transformers alone, with its eager attention."""

    @cache
    def load_alone(name: str) -> Any:
        from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

        kind: Any = AutoModelForCausalLM if name in ("gpt2", "llama") else AutoModelForSeq2SeqLM
        return kind.from_pretrained(folder(name), attn_implementation="eager", local_files_only=True).eval()

    return load_alone
