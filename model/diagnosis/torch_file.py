"""Tensors of a .pt file, through torch.load(weights_only=True) alone: no code of the file is run."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .inputs import MAX_CELLS, DiagnosisError

_MAX_TENSORS = 64


def read_torch(path: Path, limit: int) -> dict[str, np.ndarray] | np.ndarray:
    """The tensor of a file, or those of a dictionary by name; at most ``limit`` bytes unpacked.

    Raises ValueError: for anything but tensors, and for files of torch before 1.6, which are bare pickles.
    """
    import torch  # The other formats are read without it.

    if not zipfile.is_zipfile(path):
        raise DiagnosisError("This .pt file is not of the form that torch writes since 1.6. Save it again, or as .npz.")
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > limit:
            raise ValueError(f"unpacked it would be larger than {limit / 2**20:.0f} MB")
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch names the reason in many lines, with advice that nobody should follow here
        raise DiagnosisError(
            "This .pt file holds more than tensors, or is broken. Only plain tensors are loaded, never code: "
            "save torch.save({'weights': weights}, ...)."
        ) from error
    if isinstance(found, dict):
        tensors = {str(name): value for name, value in found.items() if isinstance(value, torch.Tensor)}
        if len(tensors) > _MAX_TENSORS:
            raise ValueError(f"it holds {len(tensors)} tensors; {_MAX_TENSORS} are read")
        return {name: _numpy(name, tensor) for name, tensor in tensors.items()}
    if isinstance(found, torch.Tensor):
        return _numpy("the tensor", found)
    raise DiagnosisError("This .pt file holds no tensor and no dictionary of tensors.")


def _numpy(name: str, tensor: Any) -> np.ndarray:
    """A dense tensor as numpy; bfloat16 is widened. A view may promise more cells than the file holds."""
    if tensor.layout.__str__() != "torch.strided" or tensor.is_quantized or tensor.is_complex():
        raise ValueError(f"{name} is not a plain array of numbers")
    if tensor.numel() > MAX_CELLS:
        raise ValueError(f"{name} has {tensor.numel():,} cells; {MAX_CELLS:,} are read")
    dense = tensor.detach()
    return (dense.float() if str(dense.dtype) == "torch.bfloat16" else dense).numpy()
