"""Tensors of a .pt file, through torch.load(weights_only=True) alone: no code of the file is run."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ...language.say import say
from ..inputs.arrays import DiagnosisError
from ..inputs.tensors import from_layers, from_tensor, is_tensor
from .binary import Limits, TooLargeError
from .naming import known_names, unread_note

MAX_EXPANDED = 2**25
"""Most bytes of tensors that share what they store, such as a mask expanded to all heads: a few bytes hold any size."""


def read_torch(path: Path, limits: Limits) -> tuple[dict[str, np.ndarray] | np.ndarray, tuple[str, ...]]:
    """Return the tensor of a file, its list of one tensor (B, H, Q, K) a layer, or its dictionary by known names.

    With it comes a sentence about the names that are not read, or nothing.

    Raises:
        DiagnosisError: for anything but tensors, and for files of torch before 1.6, which are bare pickles.
        ValueError: for more than the limits.
    """
    import torch  # The other formats are read without it.

    if not zipfile.is_zipfile(path):
        raise DiagnosisError(
            say("This .pt file is not of the form that torch writes since 1.6. Save it again, or as .npz.")
        )
    with zipfile.ZipFile(path) as archive:
        limits.check(0, sum(member.file_size for member in archive.infolist()))
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch names the reason in many lines, with advice that nobody should follow here
        raise DiagnosisError(
            say(
                "This .pt file holds more than tensors, or is broken. Only plain tensors are loaded, never code: save "
                "{example}.",
                example="torch.save({'weights': weights}, ...)",
            )
        ) from error
    if isinstance(content, dict):
        found = {name: content[name] for name in known_names(content) if content[name] is not None}
        _check_size(found.values(), limits)
        return {name: _array(name, value) for name, value in found.items()}, unread_note(content)
    _check_size([content], limits)
    return _array(say("the content of this file"), content), ()


def _check_size(values: Iterable[Any], limits: Limits) -> None:
    """Raise ValueError where the arrays are larger than the limits: a view may promise more than is stored."""
    total = expanded = 0
    for value in values:
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if not is_tensor(one):
                continue
            size = one.numel() * one.element_size()
            total += size
            if str(one.layout) == "torch.strided" and size > one.untyped_storage().nbytes():
                expanded += size
            limits.check(one.numel(), 0)
            for found, most, error in ((total, limits.size, TooLargeError), (expanded, MAX_EXPANDED, ValueError)):
                if found > most:
                    raise error(say("its arrays would be larger than {size:.0f} MB", size=most / 2**20))


def _array(name: str, value: Any) -> np.ndarray:
    if is_tensor(value):
        return from_tensor(name, value)
    if isinstance(value, (list, tuple)) and value:
        return from_layers(name, value)
    kind = type(value).__name__
    raise DiagnosisError(say("{name} is of the type {kind}, not a tensor; save a tensor.", name=name, kind=kind))
