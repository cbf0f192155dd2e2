"""The straight line from zero token embeddings to those of the text, for a model that nobody here wrote."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .reading import Reading, logits_of, target_of


class ForeignLine:
    """As :class:`model.attribution.gradients.Line` asks for; a forward pass a point, at one row of the output."""

    def __init__(self, reading: Reading, position: int) -> None:
        self.reading, self.position = reading, position
        with torch.no_grad():
            self.target, _ = target_of(reading, position)
        self.pieces = len(self.target.source_ids)

    def values(self, points: Tensor) -> Tensor:
        """Return F at points (N,) of the line: (N,) float64."""
        with torch.no_grad():
            return torch.cat([self._value(self._scaled(float(one))) for one in points]).cpu()

    def slopes(self, points: Tensor) -> Tensor:
        """Return dF/dt at points (N,), split over the pieces: gradient x embedding, (N, S + P) float64."""
        return torch.stack([self._slope(float(one)) for one in points]).cpu()

    def _slope(self, point: float) -> Tensor:
        leaves: dict[int, Tensor] = {}
        inputs: dict[int, Tensor] = {}

        def leaf(side: int) -> Callable[[Tensor], Tensor]:
            def changed(embedded: Tensor) -> Tensor:
                inputs[side] = embedded.detach()
                leaves[side] = (inputs[side] * point).requires_grad_()
                return leaves[side]

            return changed

        with torch.enable_grad():
            value = self._value({side: leaf(side) for side in (0, 1)})
            gradients = torch.autograd.grad(value.sum(), [leaves[0], leaves[1]])
        source, fed = ((one.double() * inputs[side].double()).sum(-1)[0] for side, one in enumerate(gradients))
        return torch.cat([source, fed[: self.position + 1]])

    def _scaled(self, point: float) -> dict[int, Callable[[Tensor], Tensor]]:
        return dict.fromkeys((0, 1), lambda embedded: embedded * point)

    def _value(self, changes: dict[int, Callable[[Tensor], Tensor]]) -> Tensor:
        return self.target.value(logits_of(self.reading, changes, self.position))
