"""Tiny models run fastest on one thread, and several tests compare runs bit by bit."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
