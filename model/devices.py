"""On what a computation runs: the device, and how many cores."""

from __future__ import annotations

import os
import threading

import torch

from .language import join_items, say

OutOfMemory = torch.OutOfMemoryError
"""What torch raises where a GPU has no memory left."""
_gpu_is_full = threading.Event()


class DeviceError(ValueError):
    """A device that is not there; the message names those that are."""


def available_devices() -> tuple[str, ...]:
    """Return what ``--device`` may be on this machine."""
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    numbered = [f"cuda:{number}" for number in range(cards)]
    apple = ["mps"] if torch.backends.mps.is_available() else []
    return ("cpu", *(["cuda"] if cards else []), *numbered, *apple)


def choose_device(name: str | None = None) -> torch.device:
    """Return the device of that name; without one the GPU when there is one with memory left. Raises DeviceError."""
    there = available_devices()
    if name is None:
        return torch.device("cuda" if "cuda" in there and not _gpu_is_full.is_set() else "cpu")
    if name not in there:
        raise DeviceError(
            say("There is no device {name!r} here; --device may be: {there}.", name=name, there=join_items(there))
        )
    return torch.device(name)


def switch_process_to_cpu() -> None:
    """Let the whole process choose the CPU from now on, where no device is named: the GPU had no memory left."""
    _gpu_is_full.set()


def has_switched_to_cpu() -> bool:
    """Return whether the process computes on the CPU only because the GPU had no memory left."""
    return _gpu_is_full.is_set()


def limit_to_one_thread() -> None:
    """Let every computation of torch and of numpy use one core, unless OMP_NUM_THREADS says otherwise.

    A sentence through a model of this size gives several threads nothing to share but the waiting for each other:
    beside another busy process, two threads took more than thirty times as long as one. A page's numbers are no
    different: the second thread takes the core on which the browser draws.
    """
    from threadpoolctl import threadpool_limits  # which an installed attenscope does not bring

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
        threadpool_limits(1, user_api="blas")
