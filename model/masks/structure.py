"""The structures of masks without padding (band, prefix, packed documents) and their names."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np

from ..language import join_items, say, say_many
from .index_ranges import find_last_keys, find_runs

# :class:`Structure` builds a mask, :func:`recognise_structure` finds the structure that a mask follows.
#
# Every family used in practice is a band ``lo <= j - i - shift <= hi`` (full and causal are bands without a lower
# end), joined with a prefix that everyone sees and cut into documents. ``shift = K - Q`` puts the newest query at the
# newest key, as cached decoding needs (FlashAttention 2.1 and later; ``torch.nn.attention.bias.causal_lower_right``).


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
    """First and one past the last key of each span whose tokens see each other in both directions, and back no farther
    than a window (Gemma 3 and 4): image blocks."""
    sinks: int = 0
    """How many first keys stay visible beyond a window (Xiao et al. 2023, attention sinks)."""
    chunk: int = 0
    """The size of chunks outside of which nothing is seen (Llama 4); 0 for none."""
    block: int = 0
    """The size of blocks that see themselves whole and all before them (block diffusion); 0 for none."""
    shared: tuple[tuple[int, int], ...] = ()
    """First and one past the last of each run of keys seen beyond windows, chunks and documents: a shared prompt."""
    tree: tuple[int, ...] = ()
    """The parents of the last tokens, a draft tree: from 1 in the tree, 0 for the text before it."""
    origin: int = field(default=0, compare=False)
    """The key from which chunks and blocks count: the first real one, as in transformers. A name leaves it open."""

    def build_mask(
        self, queries: int, keys: int, shift: int | None = None, rows: tuple[int, int] | None = None
    ) -> np.ndarray:
        """Return (Q, K) bool, True = may attend; ``shift`` is K - Q unless given.

        Of all rows, or of those from the first to one before the second of ``rows``.
        """
        past = keys - queries if shift is None else shift
        query, key = np.arange(*(rows or (0, queries))), np.arange(keys)
        places = query[:, None] + past
        grid = self._build_band(places, keys)
        for first, end in self.spans:
            inside = slice(*np.searchsorted(places[:, 0], (first, end)))
            grid[inside, first:end] |= True if self.lo is None else key[first:end] >= places[inside] + self.lo
        if self.starts:
            edges = np.asarray(self.starts)
            document, other = (np.searchsorted(edges, at, side="right") for at in (places[:, 0], key))
            grid &= document[:, None] == other
        if self.chunk:
            grid &= self._number(places, self.chunk) == self._number(key, self.chunk)
        for first, end in self.shared:
            grid[:, first:end] |= True if self.hi is None else key[first:end] <= places + self.hi
        return grid & _build_draft_tree_mask(self.tree, places[:, 0], keys) if self.tree else grid

    def _build_band(self, places: np.ndarray, keys: int) -> np.ndarray:
        """Return (Q, K) bool: the band of queries at ``places`` (Q, 1), or its blocks, its sinks and its prefix."""
        key = np.arange(keys)
        if self.block:
            grid = self._number(key, self.block) <= self._number(places, self.block)
        else:
            grid = np.ones((len(places), keys), bool) if self.hi is None else key <= places + self.hi
        if self.lo is not None:
            grid &= key >= places + self.lo
        if self.sinks:
            grid[:, : self.sinks] |= True if self.hi is None else key[: self.sinks] <= places + self.hi
        if self.prefix:
            grid[:, : self.prefix] = True
        return grid

    def _number(self, positions: np.ndarray, size: int) -> np.ndarray:
        """Return the number of the chunk or block of each position."""
        return (positions - self.origin) // size

    def copy_with_chunk_start(self, first: int) -> Structure:
        """Return the same mask whose chunks and blocks begin with the key ``first``."""
        return dataclasses.replace(self, origin=first) if self.chunk or self.block else self

    @property
    def is_plausible(self) -> bool:
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

    @property
    def forward(self) -> bool:
        """Whether it is causal, and opens no later key to any query."""
        return self.hi == 0 and not (self.spans or self.prefix or self.block)

    def list_noncausal_variants(self) -> tuple[Structure, ...]:
        """Return what is left without the causal part: unbounded, mirrored, or one or two keys ahead."""
        free = dataclasses.replace(self, hi=None, prefix=0, block=0)
        ahead = tuple(dataclasses.replace(self, hi=(self.hi or 0) + step, block=0) for step in (1, 2))
        mirrored = (dataclasses.replace(free, hi=-self.lo),) if self.lo is not None else ()
        return (free, *mirrored, *ahead)

    def list_shifted_windows(self) -> tuple[Structure, ...]:
        """Return the same window one wider or narrower, at one end or at both."""
        if self.lo is None:
            return ()
        # The right end of a causal window is the diagonal, and moving it is another fault.
        his = (0,) if self.hi == 0 else _list_neighbouring_window_ends(self.hi)
        ends = product(_list_neighbouring_window_ends(self.lo), his)
        return tuple(dataclasses.replace(self, lo=lo, hi=hi) for lo, hi in ends if (lo, hi) != (self.lo, self.hi))

    def words(self) -> str:
        """Return a few words for people, such as ``a causal window of 4``."""
        text = self._describe_band()
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
        for begin, end in self.shared:
            text = say("{mask}, with keys {first} to {last} open beyond that", mask=text, first=begin + 1, last=end)
        if self.tree:
            text = say("{mask}, then a draft tree of {count} tokens", mask=text, count=len(self.tree))
        return text

    def _describe_band(self) -> str:
        """Return the band and the prefix, in a few words."""
        if self.block and self.lo is not None:
            return say("a window of {keys}, causal by blocks of {size}", keys=1 - self.lo, size=self.block)
        if self.block:
            return say("causal by blocks of {size}", size=self.block)
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


MAX_SINKS = 4
"""First keys beside a window that are recognised as sinks; more can be said."""
_FEW_ROWS, _CELLS_AT_ONCE = 64, 2**19
"""Rows, and cells of them, that are compared with a structure at once."""
_SMALLEST_TREE = 3
"""Tokens of a draft tree that is recognised; of two, one cell is more likely closed by accident."""
_SHORTEST_DOCUMENT = 2
"""A document of one token beside a shared prompt is more likely a column closed by accident."""
_SHORTEST_SPAN = 3
"""Two tokens that see each other are more likely one cell open by accident."""
FULL, CAUSAL = Structure(), Structure(hi=0)


def _list_neighbouring_window_ends(end: int | None) -> tuple[int | None, ...]:
    return (None,) if end is None else (end - 1, end, end + 1)


def _measure_band(seen: np.ndarray, places: np.ndarray) -> tuple[int, int]:
    """Return how far the first and the last key that is ``seen`` (Q, K) lies after its query, at ``places`` (Q, 1)."""
    rows = np.asarray(seen.any(1))
    first, last = np.argmax(seen, 1), find_last_keys(seen)
    return int((first - places[:, 0])[rows].min()), int((last - places[:, 0])[rows].max())


def _build_draft_tree_mask(parents: tuple[int, ...], positions: np.ndarray, keys: int) -> np.ndarray:
    """Return (Q, K) bool: all before the tree of the last keys, and of the tree each token's ancestors and itself."""
    size = len(parents)
    related = np.eye(size, dtype=bool)
    for token, parent in enumerate(parents):
        if parent:
            related[token] |= related[parent - 1]
    query, key = (at - (keys - size) for at in (positions, np.arange(keys)))
    cells = related[np.ix_(np.clip(query, 0, size - 1), np.clip(key, 0, size - 1))]
    return (key < 0) | ((query >= 0)[:, None] & cells)


def recognise_structure(allowed: np.ndarray, where: np.ndarray) -> Structure | None:
    """Return the simplest structure that agrees with ``allowed`` (Q, K) wherever ``where`` (Q, K) is True, or None."""
    seen = allowed & where
    if not seen.any():
        return None
    return next((one for one in _propose_structures(seen) if _is_structure_consistent(one, seen, where)), None)


def _is_structure_consistent(structure: Structure, seen: np.ndarray, where: np.ndarray) -> bool:
    """Whether a structure allows the cells that are ``seen`` (Q, K) and no other ``where`` (Q, K) is True.

    A part of the rows after the other: most structures are ruled out by a few.
    """
    queries, keys = seen.shape
    size = max(_FEW_ROWS, _CELLS_AT_ONCE // keys)
    for first in range(0, queries, size):
        rows = slice(first, min(first + size, queries))
        built = structure.build_mask(queries, keys, rows=(rows.start, rows.stop))
        if not np.array_equal(built & where[rows], seen[rows]):
            return False
    return True


def _propose_structures(seen: np.ndarray) -> Iterator[Structure]:
    """Yield structures that may fit, the simplest first."""
    queries, keys = seen.shape
    places, key = np.arange(queries)[:, None] + keys - queries, np.arange(keys)
    lo, hi = _measure_band(seen, places)
    later = seen & (key > places) if hi > 0 else np.zeros((1, keys), bool)
    ahead = np.flatnonzero(later.any(0))
    bands = [FULL, CAUSAL, Structure(hi=hi), Structure(lo=lo), Structure(lo, 0), Structure(lo, hi)]
    yield from bands
    if ahead.size:
        yield Structure(hi=0, prefix=int(ahead[-1]) + 1)
        if spans := _find_bidirectional_spans(later):
            yield Structure(hi=0, spans=spans)
        yield from _propose_blocks(seen, lo)
    if hi == 0:
        yield from _propose_sink_windows(seen, places)
    if hi == 0:
        yield from _propose_chunks(seen)
    starts = _find_document_starts(seen)
    if starts:
        for band in bands:
            yield dataclasses.replace(band, starts=starts)
    yield from _propose_shared_keys(seen, places, hi)
    if hi == 0 and (tree := _find_draft_tree(seen)):
        yield Structure(hi=0, tree=tree)


def _propose_blocks(seen: np.ndarray, lo: int) -> Iterator[Structure]:
    """Yield blocks that end where the first query's keys do, alone and with the window that begins at ``lo``."""
    rows = np.flatnonzero(seen.any(1))
    end = int(np.flatnonzero(seen[rows[0]])[-1]) + 1
    for size in (size for size in range(2, end + 1) if end % size == 0 and size < seen.shape[1]):
        yield Structure(hi=0, block=size)
        yield Structure(lo, 0, block=size)
    ends = list(dict.fromkeys((find_last_keys(seen)[rows] + 1).tolist()))
    if len(ends) > 1 and (size := _find_common_spacing(ends[:-1]) or ends[0]) > 1:
        yield Structure(hi=0, block=size, origin=ends[0] % size)


def _propose_shared_keys(seen: np.ndarray, places: np.ndarray, last: int) -> Iterator[Structure]:
    """Yield documents beside a prompt that all of them see, and windows beside keys that all queries see.

    ``last`` is how far keys are seen after their query, which is at ``places`` (Q, 1).
    """
    keys = seen.shape[1]
    rows = places[seen.any(1), 0]
    judged = np.full(keys, len(rows)) if last > 0 else len(rows) - np.searchsorted(rows, np.arange(keys))
    hi = 0 if last <= 0 and places[0, 0] < keys - 1 else None
    is_open = (np.count_nonzero(seen, 0) == judged) & (judged > 2)  # Every query that has keys, and may see this one.
    runs = find_runs(is_open)
    if not runs or is_open.all():
        return
    if runs[0][0] == int(np.argmax(seen.any(0))):
        starts = _find_document_starts(seen & ~(np.arange(seen.shape[1]) < runs[0][1]))
        if starts and min(np.diff([runs[0][1], *starts, seen.shape[1]])) >= _SHORTEST_DOCUMENT:
            yield Structure(hi=hi, starts=starts, shared=(runs[0],))
    rest = seen & ~is_open
    shared = tuple(run for run in runs if run[1] - run[0] > 1)
    few = 2 * sum(end - first for first, end in shared) <= seen.shape[1]
    if hi == 0 and shared and few and rest.any() and (lo := _measure_band(rest, places)[0]) < 0:
        yield Structure(lo, 0, shared=shared)


def _find_draft_tree(seen: np.ndarray) -> tuple[int, ...]:
    """Return the parents of the last tokens, a tree no deeper than half of them: a chain with a hole is none.

    Every token of a tree sees itself: one that sees nothing is rather a document's first, whose row is empty.
    """
    queries, keys = seen.shape
    past = keys - queries
    hidden = ~seen & (np.arange(keys) <= (np.arange(queries) + past)[:, None])
    if not hidden.any():
        return ()
    first = int(np.argmax(hidden.any(0)))
    size = keys - first
    if size < _SMALLEST_TREE or size > queries:
        return ()
    related = seen[-size:, -size:]
    if 2 * related.sum(1).max() > size or not related.diagonal().all():
        return ()
    above = (np.flatnonzero(row[:token]) for token, row in enumerate(related))
    return tuple(int(seen[-1]) + 1 if seen.size else 0 for seen in above)


_MIN_CHUNKS = 3
"""Equal chunks from which they are chunks; two are rather two documents."""


def _propose_chunks(seen: np.ndarray) -> Iterator[Structure]:
    """Yield causal chunks, by where rows begin."""
    firsts = list(dict.fromkeys(np.argmax(seen[np.asarray(seen.any(1))], 1).tolist()))
    square = seen.shape[0] == seen.shape[1]
    if len(firsts) >= (_MIN_CHUNKS if square else 2) and (size := _find_common_spacing(firsts)):
        yield Structure(hi=0, chunk=size, origin=firsts[1] % size)


def _find_common_spacing(places: list[int]) -> int:
    """Return the distance of neighbouring places where all share it, but the first may be shorter; else 0."""
    steps = [b - a for a, b in pairwise(places)]
    if not steps or min(steps) < 1:
        return 0
    size = max(steps)
    return size if all(step == size for step in steps[1:]) else 0


def _propose_sink_windows(seen: np.ndarray, places: np.ndarray) -> Iterator[Structure]:
    """Yield windows beside first keys that every query sees, where some rows show keys hidden between the two."""
    for sinks in range(1, MAX_SINKS + 1):
        rest = seen[:, sinks:]
        if not rest.any():
            return
        lo = _measure_band(rest, places - sinks)[0]
        apart = seen[:, :sinks].any(1) & (~rest & (np.arange(sinks, seen.shape[1]) < places + lo)).any(1)
        if lo < 0 and apart.sum() > 1:
            yield Structure(lo, 0, sinks=sinks)


def _find_bidirectional_spans(later: np.ndarray) -> tuple[tuple[int, int], ...]:
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


def _find_document_starts(seen: np.ndarray) -> tuple[int, ...]:
    """Return positions across which no query attends, in either direction; padding opens no document."""
    queries, keys = seen.shape
    if queries != keys:
        return ()
    rows = np.asarray(seen.any(1))
    first = np.where(rows, np.argmax(seen, 1), keys)
    last = np.where(rows, find_last_keys(seen), -1)
    before, after = np.maximum.accumulate(last), np.minimum.accumulate(first[::-1])[::-1]
    used = np.flatnonzero(seen.any(0) & rows)
    return tuple(int(t) for t in used[1:] if before[t - 1] < t <= after[t])


# Names of structures, the short form of a meaning (:mod:`.rule`): ``causal+window:4``, ``causal and window 4``.
#
# Words are :data:`STRUCTURE_WORDS`, joined by ``+`` or ``and``. Documents that are packed into one row are said by
# their sizes, by cumulative lengths or by position ids that begin anew; a span, by its first and last token, counted
# from 1.


STRUCTURE_WORDS = (
    *("causal", "padding", "full", "window:W", "ahead:N", "sinks:N", "keys:A-B", "prefix:N", "span:A-B", "chunked:N"),
    *("blocks:N", "tree:0,0,1,...", "packed:N,N,...", "cu_seqlens:0,N,...", "position_ids:0,1,0,..."),
)

REPEATABLE_WORDS = ("span", "keys")
"""Words that stand once for each range, from its first to its last token."""
MAX_STRUCTURE_PARTS = 64
"""Words of one structure."""
MAX_TREE = 1024
"""Tokens of a draft tree."""


def parse_structure(name: str) -> Structure:
    """Return the structure that ``name`` stands for.

    ``padding``, ``encoder`` and ``cross`` mean every real key; ``decoder`` is causal. ``window:W`` keeps keys nearer
    than W positions, so that ``causal+window:4`` is four keys wide, the query's own included; ``sinks:N`` keeps the
    first N keys beside it, ``keys:A-B`` those keys also beyond chunks and documents. ``ahead:N`` is causal but for N
    later keys, ``blocks:N`` causal from block to block. ``tree:0,0,1,1`` gives the last tokens their parents.

    Raises:
        ValueError: for a name of another form; the message lists the words.
    """
    structure = FULL
    parts = sorted(_split_structure_name(name), key=_get_part_priority)
    if len(parts) > MAX_STRUCTURE_PARTS:
        raise ValueError(say("A kind of mask has at most {most} parts.", most=MAX_STRUCTURE_PARTS))
    for part in parts:
        word, _, number = part.partition(":")
        structure = _add_part(structure, word, number, name)
    return structure


def _get_part_priority(part: str) -> int:
    """Return the turn of a word: windows depend on a causal part, and the keys ahead widen it, wherever they stand."""
    return -1 if part in ("causal", "decoder") else part.startswith("ahead")


def _split_structure_name(name: str) -> list[str]:
    """Return ``word:sizes`` of each part."""
    joined = re.sub(r"\band\b|&", "+", " ".join(name.lower().split()))
    return re.sub(r"([a-z]) (?=\d)", r"\1:", joined).replace(" ", "").split("+")


def name_structure(structure: Structure, keys: int) -> str:
    """Return the name of a structure of so many keys, which :func:`parse_structure` reads; empty where it has none."""
    band = _name_band(structure)
    sizes = np.diff([0, *structure.starts, keys])
    if not band or (structure.spans and structure.prefix) or (structure.starts and (sizes <= 0).any()):
        return ""
    parts = [
        band,
        *([f"sinks:{structure.sinks}"] if structure.sinks else []),
        *(f"keys:{first + 1}-{end}" for first, end in structure.shared),
        *(f"span:{first + 1}-{end}" for first, end in structure.spans),
        *([f"chunked:{structure.chunk}"] if structure.chunk else []),
        *([f"packed:{','.join(map(str, sizes))}"] if structure.starts else []),
        *([f"tree:{','.join(map(str, structure.tree))}"] if structure.tree else []),
    ]
    return "+".join(parts)


def _name_band(structure: Structure) -> str:
    """Return the name of the band with its prefix or blocks; empty where it has none."""
    lo, hi = structure.lo, structure.hi
    if hi is not None and (hi < 0 or (lo is not None and lo > 0)):
        return ""
    window = "" if lo is None else f"window:{1 - lo}"
    if structure.prefix or structure.block:
        opened = f"prefix:{structure.prefix}" if structure.prefix else f"blocks:{structure.block}"
        both = structure.prefix and (structure.block or lo is not None)
        return "" if both or hi != 0 else "+".join(filter(None, (opened, window and f"causal+{window}")))
    if hi is None:
        return "full" if lo is None else ""
    if hi == 0:
        return f"causal+{window}" if window else "causal"
    return window if lo is not None and hi == -lo else "+".join(filter(None, (window, f"ahead:{hi}")))


def _add_part(structure: Structure, word: str, number: str, name: str) -> Structure:
    if word in ("full", "padding", "encoder", "cross") and not number:
        return structure
    if word in ("causal", "decoder") and not number:
        return dataclasses.replace(structure, hi=0)
    try:
        sizes = [int(size) for size in re.split("-" if word in REPEATABLE_WORDS else ",", number)]
    except ValueError:
        sizes = []
    found = _SIZE_SETTERS[word](structure, sizes) if sizes and word in _SIZE_SETTERS and max(sizes) < 10**6 else None
    if found is None:
        raise ValueError(
            say(
                "{name} is not a kind of mask: say {words}, joined by +.",
                name=repr(name),
                words=join_items(STRUCTURE_WORDS),
            )
        )
    return found


_Setter = Callable[[Structure, list[int]], Structure | None]
"""Adds the sizes of one word to a structure; None for sizes that cannot be."""


def _set_window(structure: Structure, sizes: list[int]) -> Structure | None:
    if len(sizes) != 1 or sizes[0] < 1:
        return None
    return dataclasses.replace(structure, lo=1 - sizes[0], hi=0 if structure.hi == 0 else sizes[0] - 1)


def _make_size_setter(name: str, causal: bool = False) -> _Setter:
    """Return what sets the field ``name`` to one size above 0; ``causal`` closes what comes after a query."""

    def set_size(structure: Structure, sizes: list[int]) -> Structure | None:
        changed: dict[str, Any] = {name: sizes[0]} | ({"hi": 0} if causal else {})
        return dataclasses.replace(structure, **changed) if len(sizes) == 1 and sizes[0] > 0 else None

    return set_size


def _add_shared_keys(structure: Structure, ends: list[int]) -> Structure | None:
    if len(ends) != 2 or not 1 <= ends[0] <= ends[1]:
        return None
    return dataclasses.replace(structure, shared=tuple(sorted({*structure.shared, (ends[0] - 1, ends[1])})))


def _set_tree(structure: Structure, parents: list[int]) -> Structure | None:
    if len(parents) > MAX_TREE or any(not 0 <= parent <= token for token, parent in enumerate(parents)):
        return None
    return dataclasses.replace(structure, hi=0, tree=tuple(parents))


def _add_span(structure: Structure, ends: list[int]) -> Structure | None:
    if len(ends) != 2 or not 1 <= ends[0] < ends[1]:
        return None
    return dataclasses.replace(structure, spans=tuple(sorted({*structure.spans, (ends[0] - 1, ends[1])})))


def _set_documents(structure: Structure, sizes: list[int]) -> Structure | None:
    if min(sizes) < 1:
        return None
    return dataclasses.replace(structure, starts=tuple(int(end) for end in np.cumsum(sizes)[:-1]))


def _set_cumulative_lengths(structure: Structure, ends: list[int]) -> Structure | None:
    """Set the documents between cumulative lengths, 0 first."""
    return _set_documents(structure, [b - a for a, b in pairwise(ends)]) if ends[0] == 0 and len(ends) > 1 else None


def _set_position_ids(structure: Structure, positions: list[int]) -> Structure | None:
    """Set the documents of position ids, each of which counts on or begins anew at 0."""
    if positions[0] != 0 or any(b not in (0, a + 1) for a, b in pairwise(positions)):
        return None
    starts = tuple(at for at, position in enumerate(positions) if position == 0)[1:]
    return dataclasses.replace(structure, starts=starts)


_SIZE_SETTERS: dict[str, _Setter] = {
    "window": _set_window,
    "ahead": _make_size_setter("hi"),
    "keys": _add_shared_keys,
    "tree": _set_tree,
    "sinks": _make_size_setter("sinks"),
    "prefix": _make_size_setter("prefix", causal=True),
    "chunked": _make_size_setter("chunk"),
    "blocks": _make_size_setter("block", causal=True),
    "span": _add_span,
    "packed": _set_documents,
    "cu_seqlens": _set_cumulative_lengths,
    "position_ids": _set_position_ids,
}
"""By word that has sizes: what adds it to a structure."""
