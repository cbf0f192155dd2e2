"""The parts of an atlas put together: tables one after the other, sums added up, costs resampled."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..language.say import say
from ..trace import KINDS
from .corpus import Skipped
from .folder import COSTS, HALVES, HEADS, LINKS, PARTS, SENTENCES, SINGLE, TAG_MASS, AtlasError, Manifest
from .measures import COST, EVEN, EXPLAINED, HAS, HELD
from .places import PLACES

ROWS_A_FILE = 4_000_000
"""Links of a file, more or less: parts are kept whole."""
ROWS_A_GROUP = 250_000
"""Rows that a query can skip or share among threads."""
RESAMPLES, GROUPS, SEED = 1000, 20_000, 0
"""Of the bootstrap: beyond so many sentences, groups of them are drawn instead of single ones."""
LEVEL = 0.95
DIGITS = 3
"""Of what a sentence costs, in nats: more are noise that packs badly."""
PLACE = ["map", "layer", "head"]


def finish(folder: Path, manifest: Manifest, parts: Sequence[Path]) -> Manifest:
    """Write the tables of a whole atlas and its manifest, and take the parts away. AtlasError names a damaged part."""
    reports = [json.loads(_checked(part / "report.json").read_text(encoding="utf-8")) for part in parts]
    shutil.rmtree(folder / LINKS, ignore_errors=True)
    (folder / LINKS).mkdir()
    for number, group in enumerate(_groups(parts, [report["links"] for report in reports])):
        _join(group, LINKS, folder / LINKS / f"{number:04}.parquet")
    for name in (SENTENCES, COSTS):
        _join(parts, name, folder / f"{name}.parquet")
    sums = _summed(parts, "sums", ["half", *PLACE, "measure"])
    tags = _summed(parts, TAG_MASS, [*PLACE, "query_tag", "key_tag"])
    costs = bootstrap(parts) if manifest.plan.costs else pd.DataFrame(columns=[*PLACE, "cost_low", "cost_high"])
    tables = {
        HEADS: heads_table(sums.drop(columns="half"), []).merge(costs, "left", PLACE),
        HALVES: heads_table(sums, ["half"]),
        TAG_MASS: tags[tags["even"] > 0],  # the pairs that may attend
    }
    for name, table in tables.items():
        _write(pa.Table.from_pandas(table, preserve_index=False), folder / f"{name}.parquet")
    skipped = Skipped()
    for report in reports:
        skipped.merge(Skipped(**report["skipped"]))
    names = [f"{name}.parquet" for name in SINGLE]
    names += [f"{LINKS}/{one.name}" for one in sorted((folder / LINKS).iterdir())]
    found = dataclasses.replace(
        manifest,
        complete=True,
        **{name: sum(report[name] for report in reports) for name in ("sentences", "links", "tokens", "seconds")},
        skipped=skipped.counts,
        skipped_lines=skipped.lines,
        files={name: (folder / name).stat().st_size for name in names},
    )
    found.write(folder)
    shutil.rmtree(folder / PARTS)
    return found


def heads_table(sums: pd.DataFrame, more: list[str]) -> pd.DataFrame:
    """A row a head (and whatever `more` tells apart), a column a measure: means over the rows that count."""
    by = [*more, *PLACE]
    added = sums.groupby([*by, "measure"], sort=False)[["total", "rows"]].sum()
    means = (added["total"] / added["rows"].where(added["rows"] > 0)).unstack("measure")
    rows = added["rows"].unstack("measure")
    for place in PLACES:
        means[f"{place}{HAS}"] = rows[place] / rows["top"] if place in rows else 0.0
    places = [f"{place}{end}" for end in (HELD, EVEN, HAS) for place in PLACES]
    columns = [name for name in (*EXPLAINED, *places) if name in means]
    found = means[columns].reset_index()
    order = found["map"].map({kind: at for at, kind in enumerate(KINDS)})
    found = found.assign(order=order).sort_values([*more, "order", "layer", "head"], kind="stable")
    return found.drop(columns="order").reset_index(drop=True)


def bootstrap(parts: Sequence[Path]) -> pd.DataFrame:
    """The interval of each head's cost: sentences drawn with replacement, 1,000 times (Efron 1979), percentiles.

    The cost is a mean over tokens, so each draw is a ratio of sums over its sentences. -> PLACE, cost_low, cost_high.
    """
    totals = []
    for part in parts:
        costs = pd.read_parquet(_checked(part / f"{COSTS}.parquet"))
        costs["group"] = costs["sentence"] % GROUPS
        totals.append(costs.groupby(["group", *PLACE], sort=False)[[COST, "tokens"]].sum().astype("float64"))
    joined = pd.concat(totals).groupby(level=["group", *PLACE], sort=False).sum()
    cost, tokens = (joined[name].unstack("group").fillna(0.0) for name in (COST, "tokens"))
    random = np.random.default_rng(SEED)
    count = cost.shape[1]
    draws = np.stack(
        [np.bincount(random.integers(count, size=count), minlength=count) for _ in range(RESAMPLES)], 1
    ).astype(np.float64)
    means = (cost.to_numpy() @ draws) / (tokens.to_numpy()[:1] @ draws)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    return cost.index.to_frame(index=False).assign(cost_low=low, cost_high=high)


def _summed(parts: Sequence[Path], name: str, by: list[str]) -> pd.DataFrame:
    """A table of sums, those of all parts added in their order."""
    found: pd.DataFrame | None = None
    for part in parts:
        own = pd.read_parquet(_checked(part / f"{name}.parquet"))
        both = own if found is None else pd.concat([found, own])
        found = both.groupby(by, sort=False, as_index=False).sum()
    assert found is not None
    return found


def _join(parts: Sequence[Path], name: str, path: Path) -> None:
    """Write the same table of several parts as one file."""
    tables = [pq.read_table(_checked(part / f"{name}.parquet")) for part in parts]
    joined = pa.concat_tables(tables).unify_dictionaries()
    for column in (COST, "token_cost") if name == COSTS else ():
        place = joined.schema.get_field_index(column)
        joined = joined.set_column(place, column, pc.round(joined[column], DIGITS).cast(pa.float32()))
    _write(joined, path)


def _write(table: pa.Table, path: Path) -> None:
    plain = [one.name for one in table.schema if pa.types.is_dictionary(one.type)]
    # Strings stay dictionary-encoded in the file whatever they are called in memory.
    for name in plain:
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table[name].cast(pa.string()))
    pq.write_table(table, path, compression="zstd", compression_level=9, row_group_size=ROWS_A_GROUP)


def _groups(parts: Sequence[Path], links: Sequence[int]) -> Iterator[list[Path]]:
    """Parts on end with about so many links together as a file is to have."""
    group: list[Path] = []
    count = 0
    for part, number in zip(parts, links, strict=True):
        if group and count + number > ROWS_A_FILE:
            yield group
            group, count = [], 0
        group.append(part)
        count += number
    if group:
        yield group


def _checked(path: Path) -> Path:
    """The path of a readable file of a part. AtlasError names one that is damaged."""
    try:
        if path.suffix == ".parquet":
            pq.read_metadata(path)
        elif not path.is_file():
            raise FileNotFoundError(path)
    except (OSError, pa.ArrowException) as error:
        raise AtlasError(
            say(
                "{path} is damaged ({error}): remove the folder {folder}, and the same command makes this part again.",
                path=path,
                error=type(error).__name__,
                folder=path.parent,
            )
        ) from error
    return path
