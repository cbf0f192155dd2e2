"""Sentences of a head: rows from the top, the middle and the bottom tenth of its weights, and those that cost most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..atlas.folder import COSTS, LINKS, SENTENCES, TAG_MASS
from ..trace import Head
from .atlas import Atlas
from .database import query

TENTHS = {"top": 10, "middle": 5, "bottom": 1}
"""The tenths of the rows of a head that are shown, by the weight of the heaviest key."""
EACH = 17
FEWEST = 20
"""Rows of a part of speech below which no lift is given."""
_ROWS = """
    WITH rows AS (
        FROM {table} SELECT sentence, query, max(weight) AS top WHERE map = ? AND layer = ? AND head = ? GROUP BY ALL
    ), parted AS (
        SELECT *, ntile(10) OVER (ORDER BY top, sentence, query) AS tenth FROM rows
    ), drawn AS (
        SELECT *, row_number() OVER (PARTITION BY tenth ORDER BY hash(sentence::BIGINT * 1000003 + query)) AS place
        FROM parted
    )
    SELECT tenth, sentence, query, top FROM drawn WHERE tenth IN (1, 5, 10) AND place <= ?
    ORDER BY tenth DESC, place
"""
_LINKS_OF = """
    FROM {table} SELECT sentence, query, key, weight
    WHERE map = ? AND layer = ? AND head = ? AND list_contains(?, sentence)
"""
_SENTENCES = """
    FROM {table} SELECT sentence, source, target, source_pieces, target_pieces WHERE list_contains(?, sentence)
"""
_COSTS = "FROM {table} SELECT * WHERE map = ? AND layer = ? AND head = ? ORDER BY cost DESC, sentence LIMIT ?"
_TAGS = "FROM {table} SELECT query_tag, key_tag, mass, even, rows WHERE map = ? AND layer = ? AND head = ?"


@dataclass(frozen=True, eq=False)
class ShownRow:
    """One row of a head in its sentence."""

    sentence: int
    """The number of its line, from 0."""
    query: int
    """The place of the token that attends, from 0."""
    queries: tuple[str, ...]
    """The tokens of the side that attends: predicted in cross-attention, else fed in."""
    keys: tuple[str, ...]
    weights: np.ndarray
    """(K,) those of the heaviest keys, 0 elsewhere."""


def rows_of(atlas: Atlas, head: Head, each: int = EACH) -> dict[str, list[ShownRow]]:
    """Return rows of a head by the tenth that they are of, drawn from it in an order that is the same every time."""
    atlas.row(head)
    drawn = query(atlas.folder, LINKS, _ROWS, [*head, each])
    rows = shown_rows(
        atlas, [(head, int(one), int(at)) for one, at in zip(drawn["sentence"], drawn["query"], strict=True)]
    )
    tenths = drawn["tenth"].tolist()
    return {name: [row for row, of in zip(rows, tenths, strict=True) if of == tenth] for name, tenth in TENTHS.items()}


def shown_rows(atlas: Atlas, places: list[tuple[Head, int, int]]) -> list[ShownRow]:
    """Return rows by their head, sentence and query, in their sentences."""
    lines = sorted({line for _, line, _ in places})
    texts = query(atlas.folder, SENTENCES, _SENTENCES, [lines]).set_index("sentence")
    links = {
        head: query(atlas.folder, LINKS, _LINKS_OF, [*head, lines]).groupby(["sentence", "query"])
        for head in dict.fromkeys(head for head, _, _ in places)
    }
    found = []
    for head, line, at in places:
        pieces: Any = texts.loc[line, ["source_pieces", "target_pieces"]]
        source, target = map(tuple, pieces)
        queries, keys = _sides(head, source, target, atlas.manifest.start)
        own = links[head].get_group((line, at))
        weights = np.zeros(len(keys), dtype=np.float32)
        weights[own["key"].to_numpy()] = own["weight"].to_numpy()
        found.append(ShownRow(line, at, queries, keys, weights))
    return found


def costliest(atlas: Atlas, head: Head, count: int = 8) -> pd.DataFrame:
    """Return the sentences that switching a head off costs most, a row each; empty for an atlas without costs.

    sentence, source, target, cost (nats, of all its tokens), token (that costs most) and token_cost.
    """
    if not atlas.manifest.plan.costs:
        return pd.DataFrame()
    costs = query(atlas.folder, COSTS, _COSTS, [*head, count])
    texts = query(atlas.folder, SENTENCES, _SENTENCES, [costs["sentence"].tolist()]).set_index("sentence")
    found = costs.join(texts, "sentence")
    found["token"] = [pieces[at] for pieces, at in zip(found["target_pieces"], found["token"], strict=True)]
    return found[["sentence", "source", "target", "cost", "token", "token_cost"]]


def tag_pairs(atlas: Atlas, head: Head) -> pd.DataFrame:
    """Return the weight from part of speech to part of speech, highest lift first: a row a pair.

    query_tag, key_tag, rows (that begin so), share (of their weight), even (of a head that spreads every row evenly),
    lift (share / even). Pairs of fewer rows than FEWEST, and of words whose part of speech is not known, are left out.
    """
    found = query(atlas.folder, TAG_MASS, _TAGS, list(head))
    found = found[(found["rows"] >= FEWEST) & (found["query_tag"] != "") & (found["key_tag"] != "")]
    shares = found.assign(share=found["mass"] / found["rows"], even=found["even"] / found["rows"])
    shares["lift"] = shares["share"] / shares["even"]
    columns = ["query_tag", "key_tag", "rows", "share", "even", "lift"]
    return shares.sort_values(["lift", "rows"], ascending=False)[columns].reset_index(drop=True)


def _sides(
    head: Head, source: tuple[str, ...], target: tuple[str, ...], start: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if head[0] == "cross":
        return target, source
    own = source if head[0] == "encoder" else (start, *target[:-1])
    return own, own
