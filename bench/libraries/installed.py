"""Which of the libraries are installed, and what has to be done before they are imported."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

import torch

_OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def version_of(library: str) -> str | None:
    """Return the installed version of a package; None where there is none."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


@cache
def prepare() -> None:
    """Let torchvision be imported beside a torch without CUDA.

    Its wheel on PyPI is built for CUDA, so its compiled operators do not load there, and its import ends at the first
    that it describes. No case runs them.
    """
    try:
        import_module("torchvision")
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for operator in _OPERATORS:
            library.define(operator)
        _kept.append(library)
    except ImportError:
        return


_kept: list[torch.library.Library] = []
"""Operators are gone with what defined them."""
