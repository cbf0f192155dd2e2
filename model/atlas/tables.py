"""The tables of one part of an atlas: what was measured of its sentences, ready to be written as Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, product
from typing import Any

import numpy as np
import pyarrow as pa

from ..text.tags import TAGS
from ..trace import KINDS, Kind
from .forward import Run, Sentence
from .links import STEPS, Links, TagMass, links_of, tag_mass
from .measures import Measured, Sums

Tables = dict[str, pa.Table]
LINKS, SENTENCES, TAG_MASS, COSTS, SUMS = "links", "sentences", "tags", "costs", "sums"


class PartTables:
    """Batch after batch becomes the tables of a part."""

    def __init__(self, least_weight: float = 0.0) -> None:
        """Links below `least_weight` are left out."""
        self._least_weight = least_weight
        self._links: dict[Kind, list[Links]] = {kind: [] for kind in KINDS}
        self._sums: dict[tuple[Kind, str], Sums] = {}
        self._tags: dict[Kind, TagMass] = {}
        self._costs: list[dict[str, np.ndarray]] = []
        self._sentences: list[tuple[Sentence, float]] = []

    def add(self, found: Run, measured: Measured) -> None:
        """Add a batch."""
        for kind, links in links_of(found, self._least_weight).items():
            self._links[kind].append(links)
            mass = tag_mass(found, kind)
            before = self._tags.get(kind)
            self._tags[kind] = mass if before is None else TagMass(*(a + b for a, b in zip(before, mass, strict=True)))
            for name, sums in measured.sums[kind].items():
                so_far = self._sums.get((kind, name))
                self._sums[kind, name] = (
                    sums if so_far is None else Sums(*(a + b for a, b in zip(so_far, sums, strict=True)))
                )
        lines = np.array([one.line for one in found.batch.sentences])
        self._costs += [_cost_columns(kind, lines, one) for kind, one in measured.costs.items()]
        self._sentences += zip(found.batch.sentences, found.log_probs.double().sum(-1).tolist(), strict=True)

    def tables(self) -> Tables:
        """Return the tables by name, their rows in the order of the lines."""
        self._sentences.sort(key=lambda one: one[0].line)
        return {
            LINKS: link_table([one for one, _ in self._sentences], self._links),
            SENTENCES: sentence_table(self._sentences),
            TAG_MASS: tag_table(self._tags),
            COSTS: _cost_table(self._costs),
            SUMS: _sum_table(self._sums),
        }


def link_table(sentences: Sequence[Sentence], links: dict[Kind, list[Links]]) -> pa.Table:
    """A row a link; what is said of query and key is dictionary-encoded."""
    tables = [_links_of_map(kind, sentences, found) for kind, found in links.items() if sentences]
    if not tables:
        return LINK_SCHEMA.empty_table()
    joined = pa.concat_tables(tables).combine_chunks()
    # All that heads look at from one token stands together, by the key: columns of long runs, which Parquet packs well.
    by = ("head", "layer", "key", "query", "kind", "sentence")
    order = np.lexsort([joined[name].to_numpy() for name in by])
    return joined.take(pa.array(order)).drop_columns("kind").unify_dictionaries()


def _links_of_map(kind: Kind, sentences: Sequence[Sentence], found: Sequence[Links]) -> pa.Table:
    joined = Links(*(np.concatenate(column) for column in zip(*found, strict=True)))
    sides = [sentence.sides(kind) for sentence in sentences]
    lines = np.array([sentence.line for sentence in sentences])
    row = np.searchsorted(lines, joined.sentence)
    columns: dict[str, Any] = {
        "sentence": joined.sentence.astype(np.int32),
        "kind": np.full(len(row), KINDS.index(kind), dtype=np.int8),
        "map": _coded(np.zeros(len(row), dtype=np.int32), [kind]),
        "layer": joined.layer.astype(np.int16),
        "head": joined.head.astype(np.int16),
        "query": joined.query.astype(np.int32),
        "key": joined.key.astype(np.int32),
        "weight": (joined.weight / STEPS).astype(np.float32),
        "distance": (joined.key - joined.query).astype(np.int32),
    }
    for end, numbers in enumerate((joined.query, joined.key)):
        own = [pair[end] for pair in sides]
        starts = np.cumsum([0, *(len(side.pieces) for side in own[:-1])])
        name = ("query", "key")[end]
        for what in ("pieces", "words", "tags"):
            text = list(chain.from_iterable(getattr(side, what) for side in own))
            distinct, codes = np.unique(np.array(text, dtype=object), return_inverse=True)
            singular = {"pieces": "piece", "words": "word", "tags": "tag"}[what]
            columns[f"{name}_{singular}"] = _coded(codes[starts[row] + numbers].astype(np.int32), distinct.tolist())
    return pa.table(columns)


def sentence_table(sentences: Iterable[tuple[Sentence, float]]) -> pa.Table:
    """A row a sentence: both sides as text, as pieces, and the word and part of speech of every piece."""
    found = list(sentences)
    columns: dict[str, Any] = {
        "sentence": pa.array([one.line for one, _ in found], pa.int32()),
        "source": pa.array([one.source for one, _ in found], pa.string()),
        "target": pa.array([one.target for one, _ in found], pa.string()),
        "log_prob": pa.array([value for _, value in found], pa.float32()),
    }
    for name in ("source", "target"):
        sides = [getattr(one, f"{name}_side") for one, _ in found]
        columns[f"{name}_pieces"] = pa.array([list(side.pieces) for side in sides], pa.list_(pa.string()))
        columns[f"{name}_words"] = pa.array([side.word_numbers.tolist() for side in sides], pa.list_(pa.int16()))
        columns[f"{name}_tags"] = pa.array([list(side.tags) for side in sides], pa.list_(pa.string()))
    return pa.table(columns)


def tag_table(found: dict[Kind, TagMass]) -> pa.Table:
    """A row a map x layer x head x part of speech of the query x of the key, for each that a query has.

    Keys of every part of speech: another part of the atlas may have the pair, and its rows are those of all parts.
    """
    columns: dict[str, list[Any]] = {name: [] for name in TAG_SCHEMA.names}
    for kind, one in found.items():
        for query, key in product(np.flatnonzero(one.rows), range(len(TAGS))):
            for layer, head in np.ndindex(one.mass.shape[:2]):
                values = (one.mass[layer, head, query, key], one.even[query, key], one.rows[query])
                row = (kind, layer, head, TAGS[query], TAGS[key], *values)
                for name, value in zip(columns, row, strict=True):
                    columns[name].append(value)
    return pa.table(columns, schema=TAG_SCHEMA)


def _cost_columns(kind: Kind, lines: np.ndarray, costs: np.ndarray) -> dict[str, np.ndarray]:
    """costs (B, L, H, T), NaN at padding -> a row a sentence and head: the sum, and the token that costs most."""
    sentences, layers, heads = (axis.ravel() for axis in np.indices(costs.shape[:3]))
    tokens = np.broadcast_to((~np.isnan(costs)).sum(-1), costs.shape[:3])
    return {
        "sentence": lines[sentences],
        "kind": np.full(len(layers), KINDS.index(kind)),
        "layer": layers,
        "head": heads,
        "cost": np.nansum(costs, -1, dtype=np.float64).ravel(),
        "tokens": tokens.ravel(),
        "token": np.nanargmax(costs, -1).ravel(),
        "token_cost": np.nanmax(costs, -1).ravel(),
    }


def _cost_table(found: Sequence[dict[str, np.ndarray]]) -> pa.Table:
    if not found:
        return COST_SCHEMA.empty_table()
    joined = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
    order = np.lexsort([joined[name] for name in ("head", "layer", "kind", "sentence")])
    sorted_columns = {name: column[order] for name, column in joined.items()}
    sorted_columns["map"] = _coded(sorted_columns.pop("kind").astype(np.int32), list(KINDS)).cast(pa.string())
    return pa.table({name: sorted_columns[name] for name in COST_SCHEMA.names}).cast(COST_SCHEMA)


def _sum_table(sums: dict[tuple[Kind, str], Sums]) -> pa.Table:
    """A row a half x map x layer x head x measure."""
    columns: dict[str, list[Any]] = {name: [] for name in SUM_SCHEMA.names}
    for (kind, name), one in sums.items():
        for half, layer, head in np.ndindex(one.total.shape):
            values = one.total[half, layer, head], one.rows[half, layer, head]
            for column, value in zip(columns, (half, kind, layer, head, name, *values), strict=True):
                columns[column].append(value)
    return pa.table(columns, schema=SUM_SCHEMA)


def _coded(codes: np.ndarray, names: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(names, pa.string()))


_PLACE = [("map", pa.string()), ("layer", pa.int16()), ("head", pa.int16())]
_WORDS = [(f"{end}_{what}", pa.dictionary(pa.int32(), pa.string())) for end in ("query", "key") for what in
          ("piece", "word", "tag")]  # fmt: skip
LINK_SCHEMA = pa.schema(
    [("sentence", pa.int32()), ("map", pa.dictionary(pa.int32(), pa.string())), *_PLACE[1:], ("query", pa.int32()),
     ("key", pa.int32()), ("weight", pa.float32()), ("distance", pa.int32()), *_WORDS]
)  # fmt: skip
TAG_SCHEMA = pa.schema(
    [*_PLACE, ("query_tag", pa.string()), ("key_tag", pa.string()), ("mass", pa.float64()), ("even", pa.float64()),
     ("rows", pa.float64())]
)  # fmt: skip
COST_SCHEMA = pa.schema(
    [("sentence", pa.int32()), *_PLACE, ("cost", pa.float32()), ("tokens", pa.int16()), ("token", pa.int16()),
     ("token_cost", pa.float32())]
)  # fmt: skip
SUM_SCHEMA = pa.schema(
    [("half", pa.int8()), *_PLACE, ("measure", pa.string()), ("total", pa.float64()), ("rows", pa.int64())]
)
