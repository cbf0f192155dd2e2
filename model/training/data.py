"""Parallel text -> length-bucketed batches of token ids, the same ones in the same order for the same seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from ..network.config import PAD_ID
from ..network.token_ids import pad, shift_right

Pair = tuple[str, str]


def read_pairs(folders: Sequence[Path], source: str, target: str, split: str) -> list[Pair]:
    """Line N of `split`.`source` with line N of `split`.`target`, of every folder in turn."""
    pairs: list[Pair] = []
    for folder in folders:
        sides = []
        for language in (source, target):
            path = folder / f"{split}.{language}"
            if not path.is_file():
                raise FileNotFoundError(
                    f"There is no {path}: a data folder holds {split}.{source} and {split}.{target}."
                )
            sides.append(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"))
        if len(sides[0]) != len(sides[1]):
            raise ValueError(
                f"{folder}/{split}: {len(sides[0])} {source} lines, but {len(sides[1])} {target} lines; line N of one "
                "side must translate line N of the other."
            )
        pairs.extend(zip(*sides, strict=True))
    return pairs


def sloppy_copies(pairs: Sequence[Pair], share: float, seed: int) -> list[Pair]:
    """A random share of the pairs with the source as people type it: lower case, no final punctuation."""
    chosen = np.random.default_rng(seed).permutation(len(pairs))[: round(share * len(pairs))]
    return [(pairs[i][0].lower().rstrip(".!?。！？ "), pairs[i][1]) for i in sorted(chosen)]


@dataclass(frozen=True, eq=False)
class Batch:
    """One batch of a training step, padded: ids (B, S), (B, T) and (B, T)."""

    source: Tensor
    target_in: Tensor
    """The target shifted right: <s> first."""
    target_out: Tensor
    """The target with </s> last."""

    @property
    def tokens(self) -> int:
        """Real target tokens, the number the loss is averaged over."""
        return int((self.target_out != PAD_ID).sum())


class Batches:
    """Batches of one epoch after another. Sentences of like length stand together, so little is padding."""

    def __init__(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], tokens: int, longest: int, seed: int
    ) -> None:
        kept = [
            (s, t) for s, t in zip(sources, targets, strict=True) if 1 < len(s) <= longest and 1 < len(t) <= longest
        ]
        if not kept:
            raise ValueError("No sentence pair is left to train on: the files are empty, or every pair is too long.")
        self.sources, self.targets = zip(*kept, strict=True)
        self.tokens, self.seed = tokens, seed
        self.lengths = np.array([(len(s), len(t)) for s, t in kept])

    def epoch(self, number: int) -> list[np.ndarray]:
        """The batches of an epoch as arrays of pair numbers; a function of the seed and the epoch alone."""
        random = np.random.default_rng((self.seed, number))
        shuffled = random.permutation(len(self.lengths))
        longer = self.lengths.max(axis=1)
        order = shuffled[np.lexsort((self.lengths[shuffled, 1], longer[shuffled]))]
        batches, start = [], 0
        for end in range(1, len(order) + 1):
            # Sorted by the longer side: the last pair of a batch is its longest.
            full = end == len(order) or (end + 1 - start) * longer[order[end]] > self.tokens
            if full:
                batches.append(order[start:end])
                start = end
        return [batches[i] for i in random.permutation(len(batches))]

    def batch(self, rows: np.ndarray) -> Batch:
        target_out = pad([self.targets[i] for i in rows])
        target_in = shift_right(target_out).masked_fill(target_out == PAD_ID, PAD_ID)
        return Batch(pad([self.sources[i] for i in rows]), target_in, target_out)

    def steps(self, done: int) -> Iterator[tuple[int, np.ndarray]]:
        """(epoch, pair numbers) of every step after the first `done` ones, without end."""
        epoch = 0
        while True:
            batches = self.epoch(epoch)
            for rows in batches[done:]:
                yield epoch, rows
            done, epoch = max(0, done - len(batches)), epoch + 1
