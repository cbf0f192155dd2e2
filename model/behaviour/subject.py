"""A model as the behaviour tests see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor, nn

Side = Literal["left", "right"]
SIDES: tuple[Side, ...] = ("left", "right")
Run = Callable[[Tensor, Tensor], Tensor]
"""(B, T, D) embeddings and (B, T) bool, True = a real token, to outputs (B, T, ...)."""


@dataclass(frozen=True, eq=False)
class Subject:
    """One sequence of embeddings in, one sequence of outputs out, and all that is meant by them."""

    run: Run
    embeddings: Tensor
    """(B, T, D), at least two samples."""
    keep: Tensor
    """(B, T) bool, True = a real token; padded at the right where there is a cache, the first sample without."""
    causal: bool
    """Whether the model is meant to hide the future."""
    output_keep: Tensor | None = None
    """(B, T') bool where the outputs are of another sequence (cross-attention), else None."""
    layers: int | None = None
    """Attention layers between input and output, which bound what reaches an output; None takes any number."""
    allowed: Tensor | None = None
    """(T, T) bool, True = may attend in one layer, where it is neither full nor causal (a window)."""
    padding_sides: tuple[Side, ...] | None = None
    """Where padding may change nothing. None for the sides at which ``keep`` has some, else the right: padding at the
    left does change absolute positions, and the rows of a causal mask that it leaves without keys may be NaN."""
    others: Mapping[str, Run] = field(default_factory=dict)
    """Other ways to the same outputs, by name, in English: with capture, another kernel."""
    cached: Run | None = None
    """The same outputs, one position at a time with a key/value cache."""
    unpositioned: Run | None = None
    """The model without its position encoding."""
    ids: Tensor | None = None
    """(B, T) token ids, where the model may read more from them than their embeddings."""
    run_ids: Run | None = None
    """(B, T) ids and (B, T) bool, True = a real token, to the same outputs."""
    module: nn.Module | None = None
    """What runs, for :mod:`.first_module` to name the part of it that lets a forbidden input in."""

    @property
    def outputs_real(self) -> Tensor:
        """(B, T') bool: outputs that count."""
        return self.keep if self.output_keep is None else self.output_keep

    @property
    def sides(self) -> tuple[Side, ...]:
        """The ends at which a sentence is padded to see whether the amount of padding matters."""
        return self.padding_sides or padded_sides(self.keep) or ("right",)


def padded_sides(keep: Tensor) -> tuple[Side, ...]:
    """Return the ends at which any sample of (B, T) has padding."""
    return tuple(side for side, end in zip(SIDES, (0, -1), strict=True) if not bool(keep[:, end].all()))
