"""The alignment error rate (Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", 2.3).

With A the links of a model, S the sure links of the gold and P its possible ones (S among them), over a whole corpus:

    AER = 1 - (|A & S| + |A & P|) / (|A| + |S|)     precision = |A & P| / |A|     recall = |A & S| / |S|
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class Counts:
    """Links counted pair by pair, of C alignments at once."""

    in_sure: np.ndarray
    """(N, C) |A & S|"""
    in_possible: np.ndarray
    """(N, C) |A & P|"""
    links: np.ndarray
    """(N, C) |A|"""
    sure: np.ndarray
    """(N,) |S|"""

    @classmethod
    def of(cls, pairs: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], sure: np.ndarray) -> Counts:
        """What :func:`counted` gave for each pair, put together."""
        in_sure, in_possible, links = (np.array(one) for one in zip(*pairs, strict=True))
        return cls(in_sure, in_possible, links, sure)

    def aer(self, pairs: np.ndarray | slice = slice(None)) -> np.ndarray:
        """(C,) the error rate over some of the pairs, over all without `pairs`; NaN where there is no link at all."""
        hits = (self.in_sure[pairs] + self.in_possible[pairs]).sum(0)
        total = self.links[pairs].sum(0) + self.sure[pairs].sum()
        return 1 - np.divide(hits, total, out=np.full(hits.shape, np.nan), where=total > 0)

    def precision(self) -> np.ndarray:
        """(C,) the share of links that are at least possible; NaN where there is none."""
        return _ratio(self.in_possible.sum(0), self.links.sum(0))

    def recall(self) -> np.ndarray:
        """(C,) the share of sure links that are found; NaN where there is none."""
        return _ratio(self.in_sure.sum(0), np.broadcast_to(self.sure.sum(), self.in_sure.shape[1:]))

    def interval(self, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """(C,) and (C,) the ends of the 95% bootstrap interval: pairs drawn again, with replacement."""
        random = np.random.default_rng(seed)
        drawn = [self.aer(random.integers(0, len(self.sure), len(self.sure))) for _ in range(RESAMPLES)]
        low, high = np.quantile(np.array(drawn), (0.025, 0.975), axis=0)
        return low, high

    def held_out(self) -> float:
        """The error rate of the best alignment where it is chosen on one half of the pairs and measured on the other.

        Even and odd pairs are the halves, both ways, so that every pair is measured once.
        """
        hits = total = 0
        for chosen_on in (0, 1):
            best = int(np.nanargmin(self.aer(slice(chosen_on, None, 2))))
            measured = slice(1 - chosen_on, None, 2)
            hits += int((self.in_sure[measured, best] + self.in_possible[measured, best]).sum())
            total += int(self.links[measured, best].sum() + self.sure[measured].sum())
        return 1 - hits / total


def counted(links: np.ndarray, sure: np.ndarray, possible: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """links (C, S, T), sure and possible (S, T), all bool, of one pair -> |A & S|, |A & P| and |A|, (C,) each."""
    found = ((links & sure), (links & possible), links)
    return found[0].sum((1, 2)), found[1].sum((1, 2)), found[2].sum((1, 2))


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
