"""The files of an atlas on disk: its manifest, its folder layout and its Parquet tables.

atlas.json         what the atlas is made of, with the model's hash; what was left out; the size of every file
heads.parquet      a row a map x layer x head, a column a measure
halves.parquet     the same for the sentences of even and of odd numbers
sentences.parquet  a row a sentence
tags.parquet       the weight between parts of speech, of each head
costs.parquet      a row a sentence and head: what switching the head off costs
links/*.parquet    the heaviest keys of each row of each head
parts/             only while the atlas is built: the same tables, of a part of the lines each
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..atomic_write import write_file
from ..language import say
from ..text.parts_of_speech import WORD_TAGS
from ..text.words import START_TOKEN
from ..trace import KINDS, Kind
from .measure import (
    WEIGHT_STEPS,
    BatchMeasures,
    MapLinks,
    RowSums,
    TagMass,
    compute_tag_mass,
    find_strongest_attention_links,
)
from .teacher_forced_batches import BatchRun, Sentence

ATLAS_FORMAT = "attenscope-atlas-2"
MANIFEST_FILE, PARTS_FOLDER = "atlas.json", "parts"
HEADS_TABLE, HALVES_TABLE, SENTENCES_TABLE, TAGS_TABLE, COSTS_TABLE, LINKS_TABLE = (
    "heads",
    "halves",
    "sentences",
    "tags",
    "costs",
    "links",
)
SINGLE_FILE_TABLES = (HEADS_TABLE, HALVES_TABLE, SENTENCES_TABLE, TAGS_TABLE, COSTS_TABLE)
"""Tables of one file each."""
ATLAS_FOLDER = "atlas"
"""The folder of a released model's atlas, beside its weights."""


class AtlasError(ValueError):
    """An atlas that cannot be used or built; the message says why and what to do."""


@dataclass(frozen=True)
class AtlasPlan:
    """What an atlas is made of; a build goes on only with an equal plan."""

    model: str
    model_hash: str
    source: str
    """The name of the corpus, without its folder."""
    target: str
    """The same of the given translations; "" where the model made them."""
    lines: int
    lines_a_part: int
    corpus_sha256: str
    costs: bool
    least_weight: float = 0.0
    """Below which no link is kept."""

    @property
    def part_count(self) -> int:
        """How many parts there are."""
        return -(-self.lines // self.lines_a_part)


@dataclass(frozen=True)
class Manifest:
    """What atlas.json says."""

    plan: AtlasPlan
    complete: bool = False
    sentences: int = 0
    links: int = 0
    tokens: int = 0
    """Of all translations, </s> included."""
    seconds: float = 0.0
    """That the parts took, of all processes together."""
    skipped: dict[str, int] = field(default_factory=dict)
    skipped_lines: dict[str, list[int]] = field(default_factory=dict)
    """The first lines of each reason, from 1."""
    licence: str = ""
    """Of the corpus, with whom to name, in the words of whoever built the atlas."""
    start: str = START_TOKEN
    """The token that a target begins with when it is fed in."""
    repeats: dict[str, int] = field(default_factory=dict)
    """Of a decoder alone the random tokens that were repeated (:class:`.build.Repeats`)."""
    files: dict[str, int] = field(default_factory=dict)
    """The size of every table in bytes, by its path in the folder."""

    def __post_init__(self) -> None:
        """Raise TypeError for a value of another kind than its default: a file may hold anything."""
        default = {one.name: one.default if one.default is not MISSING else {} for one in fields(self)[1:]}
        for name, usual in default.items():
            kinds = (int, float) if isinstance(usual, float) else type(usual)
            if not isinstance(getattr(self, name), kinds):
                raise TypeError(name)
        for name in ("files", "repeats"):
            if not all(isinstance(number, int) for number in getattr(self, name).values()):
                raise TypeError(name)

    def write(self, folder: Path) -> None:
        """Write atlas.json, whole or not at all."""
        facts = {"format": ATLAS_FORMAT, **asdict(self)}
        write_file(folder / MANIFEST_FILE, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Return what atlas.json says. Raises AtlasError."""
    path = folder / MANIFEST_FILE
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        if found.pop("format") != ATLAS_FORMAT:
            raise AtlasError(
                say(
                    "{path} was written by another version of this project ({format} is read here): build the atlas "
                    "again.",
                    path=path,
                    format=ATLAS_FORMAT,
                )
            )
        return Manifest(plan=AtlasPlan(**found.pop("plan")), **found)
    except FileNotFoundError as error:
        raise AtlasError(
            say(
                "There is no atlas in {folder}: make one with `python -m model atlas --source FILE --output {folder}`.",
                folder=folder,
            )
        ) from error
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        if isinstance(error, AtlasError):
            raise
        raise AtlasError(
            say("{path} is damaged ({error}): build the atlas again.", path=path, error=repr(error))
        ) from error


def check_atlas_complete(folder: Path, manifest: Manifest) -> None:
    """Raise AtlasError, naming the file, where a table is missing or is not as long as it was when it was written."""
    if not manifest.complete:
        raise AtlasError(
            say("The atlas in {folder} is not finished: the command that began it goes on with it.", folder=folder)
        )
    for name, size in manifest.files.items():
        path = folder / name
        if not _is_file(path):
            raise AtlasError(say("{path} is missing: restore the atlas from its source, or build it again.", path=path))
        if path.stat().st_size != size:
            raise AtlasError(
                say(
                    "{path} is damaged: it has {found:,} bytes and was written with {written:,}. Restore the atlas "
                    "from its source, or build it again.",
                    path=path,
                    found=path.stat().st_size,
                    written=size,
                )
            )


def _is_file(path: Path) -> bool:
    """Whether there is a file; also where no file could have that name."""
    try:
        return path.is_file()
    except OSError:
        return False


def check_atlas_model(manifest: Manifest, name: str, model_hash: str) -> None:
    """Raise AtlasError for the atlas of another model, or of the same before it was trained further."""
    if manifest.plan.model_hash != model_hash:
        raise AtlasError(
            say(
                "This atlas is of {of} with the hash {of_hash}; the model here is {model} with {hash}. Build an atlas "
                "of this one: `python -m model atlas --checkpoint {model} ...`",
                of=manifest.plan.model,
                of_hash=manifest.plan.model_hash,
                model=name,
                hash=model_hash,
            )
        )


# The tables of one part, ready to be written as Parquet.


TablesByName = dict[str, pa.Table]
PART_SUMS = "sums"
"""The table of sums, which only parts have."""


class PartTables:
    """Collects batches into the tables of a part."""

    def __init__(self, least_weight: float = 0.0) -> None:
        """Links below `least_weight` are left out."""
        self._least_weight = least_weight
        self._links: dict[Kind, list[MapLinks]] = {kind: [] for kind in KINDS}
        self._sums: dict[tuple[Kind, str], RowSums] = {}
        self._tags: dict[Kind, TagMass] = {}
        self._costs: list[dict[str, np.ndarray]] = []
        self._sentences: list[tuple[Sentence, float]] = []

    def add(self, found: BatchRun, measured: BatchMeasures) -> None:
        """Add a batch."""
        for kind, links in find_strongest_attention_links(found, self._least_weight).items():
            self._links[kind].append(links)
            mass = compute_tag_mass(found, kind)
            before = self._tags.get(kind)
            self._tags[kind] = mass if before is None else TagMass(*(a + b for a, b in zip(before, mass, strict=True)))
            self.add_sums(kind, measured.sums[kind])
        lines = np.array([one.line for one in found.batch.sentences])
        self._costs += [_build_cost_columns(kind, lines, one) for kind, one in measured.costs.items()]
        self._sentences += zip(found.batch.sentences, found.log_probs.double().sum(-1).tolist(), strict=True)

    def add_sums(self, kind: Kind, measured: Mapping[str, RowSums]) -> None:
        """Add the sums of measures of a map."""
        for name, sums in measured.items():
            so_far = self._sums.get((kind, name))
            self._sums[kind, name] = (
                sums if so_far is None else RowSums(*(a + b for a, b in zip(so_far, sums, strict=True)))
            )

    def tables(self) -> TablesByName:
        """Return the tables by name, their rows in the order of the lines."""
        self._sentences.sort(key=lambda one: one[0].line)
        return {
            LINKS_TABLE: build_attention_link_table([one for one, _ in self._sentences], self._links),
            SENTENCES_TABLE: build_sentence_table(self._sentences),
            TAGS_TABLE: build_tag_table(self._tags),
            COSTS_TABLE: _build_cost_table(self._costs),
            PART_SUMS: _build_sum_table(self._sums),
        }


def build_attention_link_table(sentences: Sequence[Sentence], links: dict[Kind, list[MapLinks]]) -> pa.Table:
    """Return a row a link; pieces, words and tags are dictionary-encoded."""
    tables = [_build_map_link_table(kind, sentences, found) for kind, found in links.items() if found]
    if not tables:
        return LINK_SCHEMA.empty_table()
    joined = pa.concat_tables(tables).combine_chunks()
    # All that heads look at from one token stands together, by the key: columns of long runs, which Parquet packs well.
    by = ("head", "layer", "key", "query", "kind", "sentence")
    order = np.lexsort([joined[name].to_numpy() for name in by])
    return joined.take(pa.array(order)).drop_columns("kind").unify_dictionaries()


def _build_map_link_table(kind: Kind, sentences: Sequence[Sentence], found: Sequence[MapLinks]) -> pa.Table:
    joined = MapLinks(*(np.concatenate(column) for column in zip(*found, strict=True)))
    sides = [sentence.sides(kind) for sentence in sentences]
    lines = np.array([sentence.line for sentence in sentences])
    row = np.searchsorted(lines, joined.sentence)
    columns: dict[str, Any] = {
        "sentence": joined.sentence.astype(np.int32),
        "kind": np.full(len(row), KINDS.index(kind), dtype=np.int8),
        "map": _encode_dictionary(np.zeros(len(row), dtype=np.int32), [kind]),
        "layer": joined.layer.astype(np.int16),
        "head": joined.head.astype(np.int16),
        "query": joined.query.astype(np.int32),
        "key": joined.key.astype(np.int32),
        "weight": (joined.weight / WEIGHT_STEPS).astype(np.float32),
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
            columns[f"{name}_{singular}"] = _encode_dictionary(
                codes[starts[row] + numbers].astype(np.int32), distinct.tolist()
            )
    return pa.table(columns)


def build_sentence_table(sentences: Iterable[tuple[Sentence, float]]) -> pa.Table:
    """Return a row a sentence: both sides as text, as pieces, and the word and part of speech of every piece."""
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


def build_tag_table(found: dict[Kind, TagMass]) -> pa.Table:
    """Return a row a map x layer x head x part of speech of the query x of the key, for each that a query has.

    Keys have every part of speech: another part of the atlas may have the pair, and its rows are those of all parts.
    """
    columns: dict[str, list[Any]] = {name: [] for name in TAG_SCHEMA.names}
    for kind, one in found.items():
        for query, key in product(np.flatnonzero(one.rows), range(len(WORD_TAGS))):
            for layer, head in np.ndindex(one.mass.shape[:2]):
                values = (one.mass[layer, head, query, key], one.even[query, key], one.rows[query])
                row = (kind, layer, head, WORD_TAGS[query], WORD_TAGS[key], *values)
                for name, value in zip(columns, row, strict=True):
                    columns[name].append(value)
    return pa.table(columns, schema=TAG_SCHEMA)


def _build_cost_columns(kind: Kind, lines: np.ndarray, costs: np.ndarray) -> dict[str, np.ndarray]:
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


def _build_cost_table(found: Sequence[dict[str, np.ndarray]]) -> pa.Table:
    if not found:
        return COST_SCHEMA.empty_table()
    joined = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
    order = np.lexsort([joined[name] for name in ("head", "layer", "kind", "sentence")])
    sorted_columns = {name: column[order] for name, column in joined.items()}
    sorted_columns["map"] = _encode_dictionary(sorted_columns.pop("kind").astype(np.int32), list(KINDS)).cast(
        pa.string()
    )
    return pa.table({name: sorted_columns[name] for name in COST_SCHEMA.names}).cast(COST_SCHEMA)


def _build_sum_table(sums: dict[tuple[Kind, str], RowSums]) -> pa.Table:
    """A row a half x map x layer x head x measure."""
    columns: dict[str, list[Any]] = {name: [] for name in SUM_SCHEMA.names}
    for (kind, name), one in sums.items():
        for half, layer, head in np.ndindex(one.total.shape):
            values = one.total[half, layer, head], one.rows[half, layer, head]
            for column, value in zip(columns, (half, kind, layer, head, name, *values), strict=True):
                columns[column].append(value)
    return pa.table(columns, schema=SUM_SCHEMA)


def _encode_dictionary(codes: np.ndarray, names: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(names, pa.string()))


_HEAD_FIELDS = [("map", pa.string()), ("layer", pa.int16()), ("head", pa.int16())]
_WORD_FIELDS = [
    (f"{end}_{what}", pa.dictionary(pa.int32(), pa.string()))
    for end in ("query", "key")
    for what in ("piece", "word", "tag")
]
LINK_SCHEMA = pa.schema(
    [("sentence", pa.int32()), ("map", pa.dictionary(pa.int32(), pa.string())), *_HEAD_FIELDS[1:],
     ("query", pa.int32()), ("key", pa.int32()), ("weight", pa.float32()), ("distance", pa.int32()), *_WORD_FIELDS]
)  # fmt: skip
TAG_SCHEMA = pa.schema(
    [*_HEAD_FIELDS, ("query_tag", pa.string()), ("key_tag", pa.string()), ("mass", pa.float64()),
     ("even", pa.float64()), ("rows", pa.float64())]
)  # fmt: skip
COST_SCHEMA = pa.schema(
    [("sentence", pa.int32()), *_HEAD_FIELDS, ("cost", pa.float32()), ("tokens", pa.int16()), ("token", pa.int16()),
     ("token_cost", pa.float32())]
)  # fmt: skip
SUM_SCHEMA = pa.schema(
    [("half", pa.int8()), *_HEAD_FIELDS, ("measure", pa.string()), ("total", pa.float64()), ("rows", pa.int64())]
)
