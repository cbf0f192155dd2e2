"""The hook points of an attention that somebody else computes, and what that attention is."""

from __future__ import annotations

from torch import Tensor, nn

from ..network.hooks import HookPoint
from ..trace import Kind


class AttentionPoints(nn.Module):
    """Hook points as those of :class:`~.network.attention.MultiHeadAttention`, put into a foreign attention module.

    They hold no weights and change nothing that no hook changes.
    """

    def __init__(self, kind: Kind, layer: int, heads: int) -> None:
        super().__init__()
        self.kind, self.layer, self.heads = kind, layer, heads
        self.q, self.k, self.v = HookPoint(), HookPoint(), HookPoint()
        self.mask, self.scores, self.masked_scores = HookPoint(), HookPoint(), HookPoint()
        self.weights, self.context = HookPoint(), HookPoint()
        self.output_projection: Tensor | None = None
        """(D, H d), as a linear layer holds it; None where it is not known."""
