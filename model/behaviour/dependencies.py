"""Which output depends on which input, by gradients, and which may, by the mask."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .subject import Subject


def probe(like: Tensor) -> Tensor:
    """Return finite noise of the size of the embeddings `like`, the same at every call."""
    generator = torch.Generator().manual_seed(0)
    size = float(like.detach().float().std()) or 1.0
    return (3 * size * torch.randn(like.shape, generator=generator, device="cpu")).to(like)


def dependencies(subject: Subject) -> Tensor | None:
    """Return the size of the gradient of output i by input j, (B, T, T); None when no gradient can be taken.

    Each output is first projected on noise: a plain sum has no gradient through a layer norm.
    """
    x = subject.embeddings.detach().clone().requires_grad_()
    with torch.enable_grad():
        outputs = subject.run(x, subject.keep)
        if not outputs.requires_grad:
            return None
        scalars = (outputs * probe(outputs)).flatten(2).sum((0, 2))
        try:
            gradients = [torch.autograd.grad(scalars[i], x, retain_graph=True)[0] for i in range(len(scalars))]
        except RuntimeError:  # a model that changes its own state in place, as RWKV does, or without a way to x
            return None
    return torch.stack(gradients, 1).abs().amax(-1)


def reachable(subject: Subject) -> Tensor:
    """Return which inputs may reach each output, (B, T, T) bool: windows add up over the layers."""
    length = subject.keep.shape[1]
    device = subject.keep.device
    everything = torch.ones(length, length, dtype=torch.bool, device=device)
    allowed = everything if subject.allowed is None else subject.allowed.to(device)
    step = (allowed.tril() if subject.causal else allowed) & subject.keep[:, None, :]
    reached = reach(step.cpu().numpy(), subject.layers or length)
    return torch.from_numpy(reached).to(device)


def reach(allowed: np.ndarray, layers: int) -> np.ndarray:
    """Return what is reached through so many layers of one mask (..., T, T) with a residual stream: (I + A)^layers."""
    step = (allowed | np.eye(allowed.shape[-1], dtype=bool)).astype(np.float32)
    reached = step
    for _ in range(layers - 1):
        reached = ((reached @ step) > 0).astype(np.float32)
    return reached > 0
