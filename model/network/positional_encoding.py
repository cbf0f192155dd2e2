"""Where a token stands: the sinusoidal table of section 3.5, the same with a zero row for PAD, or a learned table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..language.say import say
from .config import TransformerConfig
from .hooks import HookPoint, hook_outputs


@dataclass(frozen=True, eq=False)
class AddedPositions:
    """What one side of a network, ours or anybody's, adds to its token embeddings: a row for every position."""

    module: nn.Module
    """Its output, (T, D) or (1 or B, T, D), is what is added."""
    rows: Tensor
    """(P, D) the rows of positions 0 to P - 1."""
    formula: Callable[[Tensor], Tensor] | None
    """Positions (N,) float64, whole or not -> their rows (N, D); None where the rows were learned."""
    replaced_by: Callable[[Tensor], AbstractContextManager[None]]
    """Opens a block in which this thread's runs add other rows (P, D) in place of these."""
    factor: float
    """What the output of the token embedding is multiplied by before the rows are added."""
    scale: float
    """That and what the token embedding itself multiplies by: sqrt(D) or 1 (section 3.4)."""
    normalised: bool = False
    """Whether a norm takes the sum before the first layer does."""


def sinusoidal_table(positions: int, d_model: int, base: float = 10000.0) -> Tensor:
    """PE(pos, 2i) = sin(pos / base^(2i/D)), PE(pos, 2i+1) = cos(the same angle): -> (positions, D) float64.

    An odd D leaves the last sine without its cosine. Computed in float64; the caller casts once at the end.
    """
    return sinusoidal_rows(torch.arange(positions, dtype=torch.float64, device="cpu"), d_model, base)


def sinusoidal_rows(positions: Tensor, d_model: int, base: float = 10000.0) -> Tensor:
    """The same for any positions (P,) float64, negative and fractional ones too: -> (P, D) float64."""
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64, device=positions.device) / d_model
    angle = positions[:, None] / base**exponent
    table = positions.new_empty(len(positions), d_model)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table


class PositionalEncoding(nn.Module):
    """Rows of the table for a stretch of positions. A sinusoidal table is never stored in a checkpoint.

    Hook point ``rows``: the whole table before rows are looked up in it, so that a hook which replaces it serves a
    whole sentence and a cached step alike.
    """

    table: Tensor

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.kind = config.positions
        self.max_length = config.max_length
        self.rows = HookPoint()
        if self.kind == "learned":
            self.table = nn.Parameter(torch.randn(config.max_length, config.d_model) * config.d_model**-0.5)
            return
        rows = sinusoidal_table(config.max_length, config.d_model)
        if self.kind == "sinusoidal_pad_row":
            rows = torch.cat([torch.zeros_like(rows[:1]), rows])
        self.register_buffer("table", rows.to(torch.get_default_dtype()), persistent=False)

    @property
    def first(self) -> int:
        """The row of the first real position: 1 where row 0 belongs to PAD."""
        return 1 if self.kind == "sinusoidal_pad_row" else 0

    def added(self, module: nn.Module, scale: float) -> AddedPositions:
        """Return its rows, which `module` passes on, beside token embeddings that have been multiplied by `scale`."""
        rows = self.table.detach()[self.first :]
        width = rows.shape[1]
        formula = None if self.kind == "learned" else lambda positions: sinusoidal_rows(positions, width)
        return AddedPositions(module, rows, formula, self._replaced_by, 1.0, scale)

    def _replaced_by(self, rows: Tensor) -> AbstractContextManager[None]:
        return hook_outputs({self.rows: lambda table: torch.cat([table[: self.first], rows])})

    def forward(self, keep: Tensor, offset: int = 0) -> Tensor:
        """keep (B, T) bool, True = a real token -> encodings (1 or B, T, D) of positions offset .. offset + T - 1."""
        length = keep.shape[1]
        if offset + length > self.max_length:
            raise ValueError(
                say(
                    "The text has {count} tokens, but this model has positions for {most} at most.",
                    count=offset + length,
                    most=self.max_length,
                )
            )
        if self.kind == "sinusoidal_pad_row":
            counted = torch.arange(offset + 1, offset + length + 1, device=keep.device)
            return self.rows(self.table)[counted * keep]
        return self.rows(self.table)[offset : offset + length][None]
