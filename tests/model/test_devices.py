"""Nothing assumes that a model is on the CPU: all that is computed with one runs on a device that is elsewhere."""

from __future__ import annotations

import ast
import copy
from pathlib import Path

import pytest
import torch

from attenscope.translate import Translator
from tests import toy
from tests.device_work import WORK, assert_same
from tests.elsewhere import ELSEWHERE, elsewhere

TEXT = "the small dog sees a cat today."
LONG = ("attributed", "measured_heads", "observed", "three_ways", "tried_masks")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.sweep if name in LONG else ()) for name in WORK])
def test_work_is_the_same_elsewhere(toy_translator: Translator, name: str) -> None:
    expected = WORK[name](toy_translator, TEXT)
    model = copy.deepcopy(toy_translator.model)
    with elsewhere(model):
        translator = Translator(toy.checkpoint(model, toy_translator.name))
        assert translator.device == ELSEWHERE
        found = WORK[name](translator, TEXT)
        assert_same(expected, found, 1e-5)


def test_elsewhere_is_no_place_for_the_tensors_of_the_cpu() -> None:
    """Or nothing that stands above would mean anything."""
    with elsewhere() as device:
        there, here = torch.tensor([1.0, 2.0], device=device), torch.tensor([3.0, 4.0])
        assert (there + 2 * there).tolist() == [3.0, 6.0]
        assert (there + here.to(device)).cpu().tolist() == [4.0, 6.0]
        with pytest.raises(RuntimeError, match="same device"):
            there + here
        with pytest.raises(RuntimeError, match="same device"):
            torch.where(there > 1, here, here)
        with pytest.raises((TypeError, RuntimeError)):
            there.numpy()


FACTORIES = {
    *("arange", "as_tensor", "empty", "eye", "full", "linspace", "ones", "rand", "randint", "randn", "randperm"),
    *("tensor", "tril_indices", "triu_indices", "zeros"),
}
ON_THE_CPU = ("model/gallery/", "model/masks/toy_attention.py")
"""Toy programs, which stand on pages as people write them and never meet a model."""


def test_every_tensor_is_made_somewhere_on_purpose() -> None:
    """By reading the code: a factory that names no device makes a tensor that a model on a GPU cannot take."""
    root = Path(__file__).parents[2]
    files = [one.relative_to(root).as_posix() for one in sorted((root / "model").rglob("*.py"))]
    found = [
        f"{file}:{line}"
        for file in files
        if not file.startswith(ON_THE_CPU)
        for line in _without_device(ast.parse((root / file).read_text(encoding="utf-8")))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("torch.zeros(3)", [1]),
        ("torch.zeros(3, device=x.device)", []),
        ("x = 1\ny = f(torch.arange(x))", [2]),
        ("nn.Parameter(torch.ones(3))", []),  # of a module, which is moved as a whole
        ("torch.zeros_like(x)", []),
    ],
)
def test_the_reading_finds_what_it_should(source: str, found: list[int]) -> None:
    assert _without_device(ast.parse(source)) == found


def _without_device(tree: ast.AST) -> list[int]:
    """Lines of calls of torch's factories that do not say on which device, parameters of modules aside."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    in_parameters = {
        id(inner) for call in calls if ast.unparse(call.func) == "nn.Parameter" for inner in ast.walk(call)
    }
    made = [call for call in calls if ast.unparse(call.func).removeprefix("torch.") in FACTORIES]
    said = [call for call in made if any(one.arg == "device" for one in call.keywords)]
    return [call.lineno for call in made if call not in said and id(call) not in in_parameters]
