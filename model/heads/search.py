"""A question answered by an atlas: which heads do that more often than the others of their map, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..atlas.folder import LINKS
from ..language.say import say, say_many, sentences
from ..trace import KINDS, Head
from .atlas import Atlas, head_name
from .database import check_pattern, query
from .question import Question, Token

EXAMPLES = 50
PLACE = ["map", "layer", "head"]
_COUNTS = """
    FROM {{table}}
    SELECT map, layer, head, count(*) AS links, count(*) FILTER (WHERE {key}) AS hits
    WHERE {query} GROUP BY map, layer, head
"""
# A hash of the place puts the links into an order that is the same every time and has nothing to do with the weight.
_EXAMPLES = """
    SELECT sentence, map, layer, head, query, key, weight, query_word, key_word FROM {{table}}
    WHERE {query} AND {key} ORDER BY hash(sentence::BIGINT * 1000003 + query * 1009 + key), map, layer, head LIMIT ?
"""


@dataclass(frozen=True, eq=False)
class Found:
    """What a search gives."""

    question: Question
    heads: pd.DataFrame
    """A row a head that has such links, highest lift first: map, layer, head, hits, links, share, lift.

    `links` are those of the head whose query is as asked and that are heavy enough; `hits` those of them whose key is
    as asked too, at that distance; `share` is hits / links, and `lift` that over the share of all heads of the map.
    """
    hits: int
    links: int

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        if not self.links:
            return say("No link begins so.")
        if not self.hits:
            return say("None of {links:,} links that begin so is as asked.", links=self.links)
        counts = say("{hits:,} of the {links:,} links that begin so are as asked.", hits=self.hits, links=self.links)
        return sentences(counts, self._best())

    def _best(self) -> str:
        """Which head does it most."""
        best = self.heads.iloc[0]
        share, lift = float(best["share"]), float(best["lift"])
        if self.question.head:
            return say("The head does it at {share:.0%} of its links that begin so.", share=share)
        if not lift > 1:
            return say("No head does it more often than the heads of its map together.")
        most = say(
            "Head {head} does it most beyond chance: {hits:,} of {links:,} ({share:.0%}), {lift:.1f} times the share "
            "of all heads of its map.",
            head=head_name((best["map"], int(best["layer"]), int(best["head"]))),
            hits=int(best["hits"]),
            links=int(best["links"]),
            share=share,
            lift=lift,
        )
        ties = int(np.isclose(self.heads["lift"], lift).sum()) - 1
        others = say_many("{count} more head does it as much.", "{count} more heads do it as much.", ties)
        return sentences(most, others if ties else "")


def search(atlas: Atlas, question: Question, least: int = 10) -> Found:
    """Count the links that a question asks for, by head; heads with fewer than `least` that begin so have no lift.

    AtlasError, and QuestionError for a regular expression that cannot be read.
    """
    _check(atlas, question)
    # Chance is the share of the whole map, so all of its heads are counted even where one is asked for.
    conditions, parameters = _of_links(question, whole_map=True)
    begins, before = _token("query", question.query)
    ends, after = _key(question)
    sql = _COUNTS.format(key=ends, query=" AND ".join(["true", *conditions, begins]))
    counts = query(atlas.folder, LINKS, sql, [*after, *parameters, *before])
    of_map = counts.groupby("map")[["hits", "links"]].transform("sum")
    counts["share"] = counts["hits"] / counts["links"]
    expected = of_map["hits"] / of_map["links"]
    counts["lift"] = (counts["share"] / expected.where(expected > 0)).where(counts["links"] >= least)
    if question.head:
        layer, head = question.head
        counts = counts[(counts["layer"] == layer) & (counts["head"] == head)]
    shown = counts[counts["hits"] > 0]
    order = shown["map"].map({kind: at for at, kind in enumerate(KINDS)})
    shown = shown.assign(order=order).sort_values(
        ["lift", "hits", "order", "layer", "head"], ascending=[False, False, True, True, True]
    )
    heads = shown.drop(columns="order").reset_index(drop=True)
    return Found(question, heads, int(counts["hits"].sum()), int(counts["links"].sum()))


def examples(atlas: Atlas, question: Question, count: int = EXAMPLES) -> pd.DataFrame:
    """Return links that are as asked, drawn from all of them whatever their weight: a row a link.

    sentence, map, layer, head, query, key, weight, query_word, key_word.
    """
    _check(atlas, question)
    conditions, parameters = _of_links(question)
    begins, before = _token("query", question.query)
    ends, after = _key(question)
    sql = _EXAMPLES.format(query=" AND ".join(["true", *conditions, begins]), key=ends)
    return query(atlas.folder, LINKS, sql, [*parameters, *before, *after, count])


def _check(atlas: Atlas, question: Question) -> None:
    """Raise AtlasError for a head that the model has not, and QuestionError for a pattern that cannot be read."""
    if question.kind and question.head:
        head: Head = (question.kind, *question.head)
        atlas.row(head)
    for token in (question.query, question.key):
        if token.pattern:
            check_pattern(token.pattern)


def _of_links(question: Question, whole_map: bool = False) -> tuple[list[str], list[Any]]:
    """The conditions on a link whatever its key, and their parameters."""
    conditions: list[tuple[str, list[Any]]] = []
    if question.weight:
        conditions.append(("weight >= ? - 1e-6", [question.weight]))
    if question.kind:
        conditions.append(("map = ?", [question.kind]))
    if question.head and not whole_map:
        conditions.append(("layer = ? AND head = ?", list(question.head)))
    return [text for text, _ in conditions], [value for _, values in conditions for value in values]


def _key(question: Question) -> tuple[str, list[Any]]:
    text, parameters = _token("key", question.key)
    if question.distance:
        return f"{text} AND distance BETWEEN ? AND ?", [*parameters, *question.distance]
    return text, parameters


def _token(end: str, asked: Token) -> tuple[str, list[Any]]:
    """The condition on a token; `end` is ``query`` or ``key``, of our own and never a visitor's text."""
    conditions, parameters = ["true"], []
    for column, test, value in (
        (f"{end}_word", "lower({}) = lower(?)", asked.word),
        (f"{end}_word", "regexp_matches({}, ?)", asked.pattern),
        (f"{end}_tag", "{} = ?", asked.tag),
    ):
        if value:
            conditions.append(test.format(column))
            parameters.append(value)
    return " AND ".join(conditions), parameters
