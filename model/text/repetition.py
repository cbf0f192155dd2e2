"""Has a decoder fallen into a loop? A known fault of likelihood-maximising decoding (Holtzman et al. 2020)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

LEAST = 3
"""How often something must be said in a row before it counts as a loop."""


@dataclass(frozen=True)
class Repetition:
    """`length` tokens from `start`, said `times` times in a row."""

    start: int
    length: int
    times: int


def repetition(tokens: Sequence[Hashable]) -> Repetition | None:
    """The longest stretch of a sequence that repeats itself LEAST times or more, if there is one."""
    found: Repetition | None = None
    for length in range(1, len(tokens) // LEAST + 1):
        same = 0  # positions in a row that equal the one `length` before
        for at in range(length, len(tokens)):
            same = same + 1 if tokens[at] == tokens[at - length] else 0
            times = same // length + 1
            if times >= LEAST and (found is None or length * times > found.length * found.times):
                found = Repetition(at - same - length + 1, length, times)
    return found
