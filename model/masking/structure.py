"""The masks that people mean: a band along the diagonal, a prefix, packed documents. Built, and recognised.

Every family used in practice is a band ``lo <= j - i - shift <= hi`` (full and causal are bands without a lower end),
joined with a prefix that everyone sees and cut into documents. ``shift = K - Q`` puts the newest query at the newest
key, as cached decoding needs (FlashAttention 2.1 and later; ``torch.nn.attention.bias.causal_lower_right``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Structure:
    """One mask without its padding."""

    lo: int | None = None
    """Smallest allowed key offset from the diagonal, ``None`` for no limit; a causal window of W has 1 - W."""
    hi: int | None = None
    """Largest allowed key offset; causal is 0."""
    prefix: int = 0
    """So many first keys are seen by every query."""
    starts: tuple[int, ...] = ()
    """First positions of packed documents, without the first 0."""

    def allowed(self, queries: int, keys: int, shift: int | None = None) -> np.ndarray:
        """(Q, K) bool, True = may attend."""
        offset = _offsets(queries, keys, shift)
        grid = np.ones((queries, keys), bool)
        if self.lo is not None:
            grid &= offset >= self.lo
        if self.hi is not None:
            grid &= offset <= self.hi
        if self.prefix:
            grid[:, : self.prefix] = True
        if self.starts:
            edges = np.asarray(self.starts)
            document = np.searchsorted(edges, np.arange(max(queries, keys)), side="right")
            grid &= document[:queries, None] == document[None, :keys]
        return grid

    @property
    def plausible(self) -> bool:
        """Whether somebody could mean it: a query may see itself."""
        return (self.lo is None or self.lo <= 0) and (self.hi is None or self.hi >= 0)

    @property
    def late(self) -> bool:
        """Causal but for one key ahead: ``tril(1)``."""
        return self.lo is None and self.hi == 1 and not self.prefix

    @property
    def backward(self) -> bool:
        """A query sees itself and what comes after it: ``triu``."""
        return self.lo == 0 and self.hi is None

    @property
    def causal(self) -> bool:
        return self.hi is not None

    def without_causal(self) -> tuple[Structure, ...]:
        """What is left when the causal part is forgotten: unbounded, mirrored, or late by a step or two."""
        free = dataclasses.replace(self, hi=None, prefix=0)
        late = tuple(dataclasses.replace(self, hi=(self.hi or 0) + step) for step in (1, 2))
        mirrored = (dataclasses.replace(free, hi=-self.lo),) if self.lo is not None else ()
        return (free, *mirrored, *late)

    def shifted_ends(self) -> tuple[Structure, ...]:
        """The same window one wider or narrower, at one end or at both."""
        ends = {(lo, hi) for lo in _beside(self.lo) for hi in _beside(self.hi)}
        if self.hi == 0:  # a causal window: its right end is the diagonal, and moving it is another fault
            ends = {(lo, 0) for lo in _beside(self.lo)}
        if self.lo is None:
            ends = set()
        return tuple(dataclasses.replace(self, lo=lo, hi=hi) for lo, hi in ends - {(self.lo, self.hi)})

    def words(self) -> str:
        """In a few words, for people."""
        if self.prefix:
            text = f"a prefix of {self.prefix}, then causal"
        elif self.lo is None:
            text = {None: "every key", 0: "causal"}.get(self.hi, f"causal, {self.hi} ahead")
        elif self.hi == 0:
            text = f"a causal window of {1 - self.lo}"
        else:
            text = f"a window from {self.lo} to {'the end' if self.hi is None else self.hi}"
        return f"{text}, in {len(self.starts) + 1} packed documents" if self.starts else text


FULL, CAUSAL = Structure(), Structure(hi=0)


def _beside(end: int | None) -> tuple[int | None, ...]:
    return (None,) if end is None else (end - 1, end, end + 1)


def _offsets(queries: int, keys: int, shift: int | None = None) -> np.ndarray:
    """(Q, K): how far each key is after its query."""
    shift = keys - queries if shift is None else shift
    return np.arange(keys)[None, :] - np.arange(queries)[:, None] - shift


def recognise(allowed: np.ndarray, look: np.ndarray) -> Structure | None:
    """The simplest structure that agrees with ``allowed`` (Q, K) wherever ``look`` (Q, K) is True, or None."""
    seen = allowed & look
    if not seen.any():
        return None
    for one in _candidates(seen, look):
        if np.array_equal(one.allowed(*allowed.shape) & look, seen):
            return one
    return None


def _candidates(seen: np.ndarray, look: np.ndarray) -> Iterator[Structure]:
    """Simplest first."""
    offset = _offsets(*seen.shape)
    lo, hi = int(offset[seen].min()), int(offset[seen].max())
    ahead = np.flatnonzero((seen & (offset > 0)).any(0))
    bands = [FULL, CAUSAL, Structure(hi=hi), Structure(lo=lo), Structure(lo, 0), Structure(lo, hi)]
    yield from bands
    if ahead.size:
        yield Structure(hi=0, prefix=int(ahead[-1]) + 1)
    starts = _documents(seen)
    if starts:
        for band in bands:
            yield dataclasses.replace(band, starts=starts)


def _documents(seen: np.ndarray) -> tuple[int, ...]:
    """Positions across which nothing looks, in either direction; padded positions open no document."""
    queries, keys = seen.shape
    if queries != keys:
        return ()
    used = np.flatnonzero(seen.any(0) & seen.any(1))
    cuts = (t for t in used[1:] if not seen[t:, :t].any() and not seen[:t, t:].any())
    return tuple(int(t) for t in cuts)


def parse(name: str) -> Structure:
    """``causal``, ``full``, ``padding``, ``window:W``, ``prefix:N``, ``packed:2,3,4``, joined by ``+``.

    ``padding``, ``encoder`` and ``cross`` mean every real key; ``decoder`` is causal. ``window:W`` keeps keys nearer
    than W positions, so that ``causal+window:4`` is four keys wide, the query's own included.
    Raises ValueError for anything else.
    """
    found = FULL
    for part in name.lower().replace(" ", "").split("+"):
        word, _, number = part.partition(":")
        found = _add(found, word, number, name)
    return found


def _add(found: Structure, word: str, number: str, name: str) -> Structure:
    if word in ("full", "padding", "encoder", "cross") and not number:
        return found
    if word in ("causal", "decoder") and not number:
        return dataclasses.replace(found, hi=0)
    try:
        sizes = [int(size) for size in number.split(",")]
    except ValueError:
        sizes = []
    if sizes and min(sizes) > 0 and max(sizes) < 10**6:
        if word == "window" and len(sizes) == 1:
            return dataclasses.replace(found, lo=1 - sizes[0], hi=0 if found.hi == 0 else sizes[0] - 1)
        if word == "prefix" and len(sizes) == 1:
            return dataclasses.replace(found, hi=0, prefix=sizes[0])
        if word == "packed":
            return dataclasses.replace(found, starts=tuple(int(end) for end in np.cumsum(sizes)[:-1]))
    raise ValueError(
        f"{name!r} is not a kind of mask: say causal, padding, full, window:W, prefix:N or packed:N,N,..., joined by +."
    )
