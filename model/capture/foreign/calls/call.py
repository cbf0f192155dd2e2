"""One attention that a module computed, as it was seen from outside."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ....masking.attention_call import AttentionCall
from .axes import Layout
from .fused_weights import Attention


@dataclass(frozen=True, eq=False)
class Call:
    """One attention of one module."""

    path: str
    attention: Attention
    is_cross: bool
    """Whether queries and keys were made of different tensors, where that can be known."""
    fused: bool
    """Whether a fused kernel ran, and the weights were computed beside it."""
    fast_path: bool
    """Whether nn.MultiheadAttention would have taken its fast path had nobody observed it."""
    graph: tuple[Tensor, Layout] | None = None
    """The weights as a part of the graph of gradients, and how they are laid out; of a capture that keeps the graph."""
    kernel_difference: Tensor | None = None
    """Largest absolute difference between the kernel's output and weights times values; 0-dimensional."""
    reordered: bool = False
    """Whether the keys come from samples that had changed places, as in a beam search."""
    in_beam_search: bool = False
    """Whether a method called so made it, with several hypotheses."""
    windows: int = 1
    """How many samples the module makes of an image that the model was given: windows, attended to apart."""
    origin: AttentionCall | None = None
    """Where in the code it was made, and with which masks."""
    run: int = 0
    """Number of the run of the model that made it."""
    forward: int = 0
    """Number of the outermost forward that made it; of several in one run, each is a layer or a step."""

    @property
    def shape(self) -> tuple[int, int]:
        """(Q, K), without the keys that are no tokens."""
        queries, keys = self.attention.weights.shape[2:]
        return queries, keys - len(self.attention.extra_keys)
