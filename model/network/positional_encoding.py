"""Where a token stands: the sinusoidal table of section 3.5, the same with a zero row for PAD, or a learned table."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .config import TransformerConfig
from .hooks import HookPoint


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

    def forward(self, keep: Tensor, offset: int = 0) -> Tensor:
        """keep (B, T) bool, True = a real token -> encodings (1 or B, T, D) of positions offset .. offset + T - 1."""
        length = keep.shape[1]
        if offset + length > self.max_length:
            raise ValueError(
                f"The text has {offset + length} tokens, but this model has positions for {self.max_length} at most."
            )
        if self.kind == "sinusoidal_pad_row":
            counted = torch.arange(offset + 1, offset + length + 1, device=keep.device)
            return self.rows(self.table)[counted * keep]
        return self.rows(self.table)[offset : offset + length][None]
