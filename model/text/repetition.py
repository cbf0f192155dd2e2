"""Find where a decoder falls into a loop, a known fault of likelihood-maximising decoding (Holtzman et al. 2020)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

LEAST_REPETITIONS = 3
"""How often something must be said in a row before it counts as a loop."""


@dataclass(frozen=True)
class Repetition:
    """`length` tokens from `start`, said `times` times in a row."""

    start: int
    length: int
    times: int


def find_repetition(tokens: Sequence[Hashable]) -> Repetition | None:
    """Return the longest stretch of a sequence that repeats itself LEAST_REPETITIONS times or more, if there is one."""
    found: Repetition | None = None
    for length in range(1, len(tokens) // LEAST_REPETITIONS + 1):
        same = 0  # positions in a row that equal the one `length` before
        for at in range(length, len(tokens)):
            same = same + 1 if tokens[at] == tokens[at - length] else 0
            times = same // length + 1
            if times >= LEAST_REPETITIONS and (found is None or length * times > found.length * found.times):
                found = Repetition(at - same - length + 1, length, times)
    return found
