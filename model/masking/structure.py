"""The masks in use, without their padding: a band along the diagonal, a prefix, packed documents.

:class:`Structure` builds one, :func:`recognise` finds the one that a mask follows.

Every family used in practice is a band ``lo <= j - i - shift <= hi`` (full and causal are bands without a lower end),
joined with a prefix that everyone sees and cut into documents. ``shift = K - Q`` puts the newest query at the newest
key, as cached decoding needs (FlashAttention 2.1 and later; ``torch.nn.attention.bias.causal_lower_right``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from ..language.say import say, say_many


@dataclass(frozen=True)
class Structure:
    """One mask without its padding."""

    lo: int | None = None
    """Smallest allowed offset of a key from the diagonal, ``None`` for no limit; a causal window of W has 1 - W."""
    hi: int | None = None
    """Largest allowed offset of a key; causal is 0."""
    prefix: int = 0
    """How many first keys every query may attend to."""
    starts: tuple[int, ...] = ()
    """First positions of packed documents, without the first 0."""
    spans: tuple[tuple[int, int], ...] = ()
    """First and one past the last key of each span whose tokens see each other in both directions: image blocks."""
    sinks: int = 0
    """How many first keys stay visible beyond a window (Xiao et al. 2023, attention sinks)."""
    chunk: int = 0
    """The size of chunks outside of which nothing is seen (Llama 4); 0 for none."""

    def allowed(self, queries: int, keys: int, shift: int | None = None) -> np.ndarray:
        """Return (Q, K) bool, True = may attend; ``shift`` is K - Q unless given."""
        offset = _offsets(queries, keys, shift)
        grid = np.ones((queries, keys), bool)
        if self.lo is not None:
            grid &= offset >= self.lo
        if self.hi is not None:
            grid &= offset <= self.hi
        if self.sinks:
            grid[:, : self.sinks] |= True if self.hi is None else offset[:, : self.sinks] <= self.hi
        if self.prefix:
            grid[:, : self.prefix] = True
        for first, end in self.spans:
            past = keys - queries if shift is None else shift
            grid[max(first - past, 0) : max(end - past, 0), first:end] = True
        if self.starts:
            edges = np.asarray(self.starts)
            document = np.searchsorted(edges, np.arange(max(queries, keys)), side="right")
            grid &= document[:queries, None] == document[None, :keys]
        if self.chunk:
            past = keys - queries if shift is None else shift
            grid &= ((np.arange(queries) + past) // self.chunk)[:, None] == np.arange(keys) // self.chunk
        return grid

    @property
    def plausible(self) -> bool:
        """Whether somebody could mean it: a query may see itself."""
        return (self.lo is None or self.lo <= 0) and (self.hi is None or self.hi >= 0)

    @property
    def one_key_ahead(self) -> bool:
        """Whether it is causal but for one key ahead: ``tril(1)``."""
        return self.lo is None and self.hi == 1 and not self.prefix

    @property
    def anti_causal(self) -> bool:
        """Whether a query sees itself and the keys after it: ``triu``."""
        return self.lo == 0 and self.hi is None

    @property
    def causal(self) -> bool:
        """Whether it hides keys after the query, all of them or those beyond a window."""
        return self.hi is not None

    def without_causal(self) -> tuple[Structure, ...]:
        """Return what is left without the causal part: unbounded, mirrored, or one or two keys ahead."""
        free = dataclasses.replace(self, hi=None, prefix=0)
        ahead = tuple(dataclasses.replace(self, hi=(self.hi or 0) + step) for step in (1, 2))
        mirrored = (dataclasses.replace(free, hi=-self.lo),) if self.lo is not None else ()
        return (free, *mirrored, *ahead)

    def shifted_ends(self) -> tuple[Structure, ...]:
        """Return the same window one wider or narrower, at one end or at both."""
        if self.lo is None:
            return ()
        # The right end of a causal window is the diagonal, and moving it is another fault.
        his = (0,) if self.hi == 0 else _neighbours(self.hi)
        ends = product(_neighbours(self.lo), his)
        return tuple(dataclasses.replace(self, lo=lo, hi=hi) for lo, hi in ends if (lo, hi) != (self.lo, self.hi))

    def words(self) -> str:
        """Return a few words for people, such as ``a causal window of 4``."""
        text = self._band_in_words()
        if self.spans:
            text = say_many(
                "{mask}, with {count} span read in both directions",
                "{mask}, with {count} spans read in both directions",
                len(self.spans),
                mask=text,
            )
        if self.sinks:
            first = say("{mask}, beside the first key", mask=text)
            text = (
                say("{mask}, beside the first {count} keys", mask=text, count=self.sinks) if self.sinks > 1 else first
            )
        if self.chunk:
            text = say("{mask}, in chunks of {size}", mask=text, size=self.chunk)
        if self.starts:
            text = say("{mask}, in {count} packed documents", mask=text, count=len(self.starts) + 1)
        return text

    def _band_in_words(self) -> str:
        """The band and the prefix, in a few words."""
        if self.prefix:
            return say("a prefix of {keys}, then causal", keys=self.prefix)
        if self.lo is None:
            if self.hi is None:
                return say("every key")
            if self.hi < 0:
                return say("causal, {count} slots before the end", count=-self.hi)
            return say("causal, {count} ahead", count=self.hi) if self.hi else say("causal")
        if self.hi == 0:
            return say("a causal window of {keys}", keys=1 - self.lo)
        if self.hi is None:
            return say("a window from {first} to the end", first=self.lo)
        return say("a window from {first} to {last}", first=self.lo, last=self.hi)


MOST_SINKS = 4
"""First keys beside a window that are recognised as sinks; more can be said."""
_SHORTEST_SPAN = 3
"""Two tokens that see each other are more likely one cell open by accident."""
FULL, CAUSAL = Structure(), Structure(hi=0)


def _neighbours(end: int | None) -> tuple[int | None, ...]:
    return (None,) if end is None else (end - 1, end, end + 1)


def _offsets(queries: int, keys: int, shift: int | None = None) -> np.ndarray:
    """Return (Q, K): how far each key is after its query."""
    shift = keys - queries if shift is None else shift
    return np.arange(keys)[None, :] - np.arange(queries)[:, None] - shift


def recognise(allowed: np.ndarray, where: np.ndarray) -> Structure | None:
    """Return the simplest structure that agrees with ``allowed`` (Q, K) wherever ``where`` (Q, K) is True, or None."""
    seen = allowed & where
    if not seen.any():
        return None
    for structure in _candidates(seen):
        if np.array_equal(structure.allowed(*allowed.shape) & where, seen):
            return structure
    return None


def _candidates(seen: np.ndarray) -> Iterator[Structure]:
    """Structures that may fit, the simplest first."""
    offset = _offsets(*seen.shape)
    lo, hi = int(offset[seen].min()), int(offset[seen].max())
    ahead = np.flatnonzero((seen & (offset > 0)).any(0))
    bands = [FULL, CAUSAL, Structure(hi=hi), Structure(lo=lo), Structure(lo, 0), Structure(lo, hi)]
    yield from bands
    if ahead.size:
        yield Structure(hi=0, prefix=int(ahead[-1]) + 1)
        if spans := _spans(seen & (offset > 0)):
            yield Structure(hi=0, spans=spans)
    if hi == 0:
        yield from _beside_sinks(seen, offset)
    starts = _documents(seen)
    if starts:
        for band in bands:
            yield dataclasses.replace(band, starts=starts)


def _beside_sinks(seen: np.ndarray, offset: np.ndarray) -> Iterator[Structure]:
    """Windows beside first keys that every query sees, where some rows show keys hidden between the two."""
    for sinks in range(1, MOST_SINKS + 1):
        rest = seen[:, sinks:]
        if not rest.any():
            return
        lo = int(offset[:, sinks:][rest].min())
        apart = seen[:, :sinks].any(1) & (~seen[:, sinks:] & (offset[:, sinks:] < lo)).any(1)
        if lo < 0 and apart.sum() > 1:
            yield Structure(lo, 0, sinks=sinks)


def _spans(later: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Return the spans outside of which no query sees a later key, if most tokens lie outside; ``later`` is (Q, K)."""
    shift, keys = later.shape[1] - later.shape[0], later.shape[1]
    spans: list[tuple[int, int]] = []
    for query in np.flatnonzero(later.any(1)):
        first, end = int(query) + shift, int(np.flatnonzero(later[query])[-1]) + 1
        if spans and first < spans[-1][1]:
            if end != spans[-1][1]:
                return ()
        else:
            spans.append((first, end))
    short = any(end - first < _SHORTEST_SPAN for first, end in spans)
    return () if short or 2 * sum(end - first for first, end in spans) > keys else tuple(spans)


def _documents(seen: np.ndarray) -> tuple[int, ...]:
    """Return positions across which no query attends, in either direction; padding opens no document."""
    queries, keys = seen.shape
    if queries != keys:
        return ()
    used = np.flatnonzero(seen.any(0) & seen.any(1))
    cuts = (t for t in used[1:] if not seen[t:, :t].any() and not seen[:t, t:].any())
    return tuple(int(t) for t in cuts)
