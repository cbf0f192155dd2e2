"""A batch as the ways to compute are given it: ids, which of them are real, and the same of a decoder."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...capture.foreign.kinds import DECODER

OUTPUT = "output"
"""The name of what stands after the last layer: logits, or the last hidden state."""


@dataclass(frozen=True, eq=False)
class Batch:
    """What a model is given."""

    ids: Tensor
    """(B, T) token ids."""
    keep: Tensor
    """(B, T) bool, True = a real token."""
    target: Batch | None = None
    """What the decoder of an encoder-decoder model is given; None for a model of one sequence."""

    def samples(self) -> list[Tensor]:
        """Return the real token ids of each sample."""
        return [row[kept] for row, kept in zip(self.ids, self.keep, strict=True)]

    def repeated(self, times: int) -> Batch:
        """Return every sample so many times, one batch after the other."""
        target = None if self.target is None else self.target.repeated(times)
        return Batch(self.ids.repeat(times, 1), self.keep.repeat(times, 1), target)

    def alone(self, sample: int) -> Batch:
        """Return one sample without its padding."""
        ids = self.samples()[sample][None]
        target = None if self.target is None else self.target.alone(sample)
        return Batch(ids, torch.ones_like(ids, dtype=torch.bool), target)

    @property
    def arguments(self) -> dict[str, Tensor]:
        """The arguments of a Hugging Face model."""
        given = {"input_ids": self.ids, "attention_mask": self.keep.long()}
        if self.target is None:
            return given
        return given | {"decoder_input_ids": self.target.ids, "decoder_attention_mask": self.target.keep.long()}

    def keep_at(self, path: str) -> Tensor:
        """Return which positions count of the outputs of a layer, by its path."""
        decoded = path == OUTPUT or DECODER.search(path)
        return self.target.keep if self.target is not None and decoded else self.keep
