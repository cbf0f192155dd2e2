"""Names for the patches of a picture, row by row, and a row of attention as the picture's grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..language import say
from ..trace import AttentionMap, TraceError


class Patches(tuple[str, ...]):
    """The tokens that a model cuts a picture into, as :func:`.capture_attention` takes them.

    Attributes:
        grid: how many patches are above each other and beside each other.
        first: the place of the first patch: the tokens before it stand for no part of the picture.
        image: the picture, (height, width) or (height, width, 3 or 4), 0 to 255 or 0.0 to 1.0; None without one.
    """

    grid: tuple[int, int]
    first: int
    image: np.ndarray | None

    def __new__(
        cls,
        rows: int,
        columns: int,
        image: Any = None,
        *,
        before: Sequence[str] = ("[CLS]",),
        after: Sequence[str] = (),
    ) -> Self:
        """Name `rows` x `columns` patches from 1, as ``3,5``, with the tokens before and after them.

        `image` is anything that numpy reads as an array, such as a picture of Pillow. Raises TraceError for a grid or
        a picture that is none.
        """
        if min(rows, columns) < 1:
            raise TraceError(say("A grid of patches has at least one row and one column."))
        names = [f"{row},{column}" for row in range(1, rows + 1) for column in range(1, columns + 1)]
        made = super().__new__(cls, (*before, *names, *after))
        made.grid, made.first = (rows, columns), len(before)
        made.image = None if image is None else np.asarray(image)
        if made.image is not None and (made.image.ndim not in (2, 3) or made.image.shape[2:] not in ((), (3,), (4,))):
            raise TraceError(
                say("A picture has the axes (height, width, 3); this has {shape}.", shape=made.image.shape)
            )
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        last = self.first + self.grid[0] * self.grid[1]
        return (*self.grid, self.image), {"before": self[: self.first], "after": self[last:]}

    def grid_of(self, attention: AttentionMap, layer: int, head: int, row: int = 0) -> np.ndarray:
        """Return what one query, by its place, gives to each patch: (rows, columns). Raises TraceError.

        Layers, heads and rows count from 0; row 0 is that of ``[CLS]``, where there is one.
        """
        if attention.weights.shape[-1] != len(self):
            raise TraceError(
                say(
                    "The map has {columns} columns, but the grid and the tokens beside it are {count}.",
                    columns=attention.weights.shape[-1],
                    count=len(self),
                )
            )
        last = self.first + self.grid[0] * self.grid[1]
        return attention.weights[layer, head, row, self.first : last].reshape(self.grid)


patches = Patches
"""Under the name that reads well in a call: ``tokens=attenscope.patches(14, 14, image=picture)``."""
