"""The devices that a command may name."""

from __future__ import annotations

import torch


class DeviceError(ValueError):
    """A device that is not there; the message names those that are."""


def available_devices() -> tuple[str, ...]:
    """What ``--device`` may be on this machine."""
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    numbered = [f"cuda:{number}" for number in range(cards)]
    apple = ["mps"] if torch.backends.mps.is_available() else []
    return ("cpu", *(["cuda"] if cards else []), *numbered, *apple)


def chosen_device(name: str | None = None) -> torch.device:
    """The device of that name; without one the GPU when there is one. Raises DeviceError."""
    there = available_devices()
    if name is None:
        return torch.device("cuda" if "cuda" in there else "cpu")
    if name not in there:
        raise DeviceError(f"There is no device {name!r} here; --device may be: {', '.join(there)}.")
    return torch.device(name)
