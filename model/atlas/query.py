"""Open an atlas, query its tables with DuckDB, search its links, and name and label its heads."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..analysis.heads import ALIGNMENT_READINGS, AlignmentReading, head_name
from ..checkpoint.load import find_checkpoint_folder
from ..language import join_items, join_sentences, say, say_many
from ..text.parts_of_speech import WORD_TAGS
from ..text.words import SPECIAL_TOKENS
from ..trace import KINDS, Head, Kind
from .duckdb_queries import QuestionError, check_regular_expression, run_query
from .files import (
    ATLAS_FOLDER,
    COSTS_TABLE,
    HALVES_TABLE,
    HEADS_TABLE,
    LINKS_TABLE,
    SENTENCES_TABLE,
    TAGS_TABLE,
    AtlasError,
    Manifest,
    check_atlas_complete,
    check_atlas_model,
    read_manifest,
)
from .measure import EVEN_SUFFIX, HAS_SUFFIX, HELD_SUFFIX, MEASURE_EXPLANATIONS, REPEATED_SUFFIX
from .teacher_forced_batches import PLACE_NAMES, PLACES, REPETITION_PLACES, Place

# A question as it is typed: ``pos=NOUN -> pos=DET distance=-1 map=encoder weight>=0.5``.
#
# Left of the arrow stands what is asked of the query, the token that attends, right of it what is asked of the key;
# the rest may stand anywhere.
#
#     word=dog  word~^un   a word, whatever its case, or a regular expression (RE2) that is found in it
#     pos=NOUN             a part of speech, see :data:`model.text.parts_of_speech.WORD_TAGS`
#     distance=-1          the place of the key minus that of the query, in tokens; distance=-3..-1 is any of these
#     weight>=0.5          the least weight of a link
#     map=cross            one of the maps
#     head=2.3             layer and head, from 1; needs a map


MAX_QUESTION_LENGTH = 300
_TERM_PATTERN = re.compile(r"^(word|pos|distance|weight|map|head)(=|~|>=)(.+)$", re.DOTALL)
_TERM_SIGNS = {"word": ("=", "~"), "weight": (">=",)}


@dataclass(frozen=True)
class TokenCondition:
    """What is asked of a token; nothing where all is empty."""

    word: str = ""
    pattern: str = ""
    """A regular expression."""
    tag: str = ""

    @property
    def text(self) -> str:
        """As it is typed."""
        found = [("word=", self.word), ("word~", self.pattern), ("pos=", self.tag)]
        return " ".join(shlex.quote(f"{name}{value}") for name, value in found if value)

    @property
    def words(self) -> str:
        """As a person reads it."""
        parts = [say("the word “{word}”", word=self.word)] if self.word else []
        parts += [say("a word that matches “{pattern}”", pattern=self.pattern)] if self.pattern else []
        parts += [say("a token tagged {tag}", tag=self.tag)] if self.tag else []
        return join_items(parts) or say("any token")


@dataclass(frozen=True)
class Question:
    """What is searched for."""

    query: TokenCondition = TokenCondition()
    key: TokenCondition = TokenCondition()
    distance: tuple[int, int] | None = None
    """The least and the most, signed."""
    weight: float = 0.0
    kind: Kind | None = None
    head: tuple[int, int] | None = None
    """Layer and head, from 0."""

    @property
    def text(self) -> str:
        """As it is typed; :func:`parse_question` reads it back."""
        parts = [self.query.text, "->", self.key.text]
        if self.distance:
            low, high = self.distance
            parts.append(f"distance={low}" if low == high else f"distance={low}..{high}")
        parts += [f"weight>={self.weight:g}"] if self.weight else []
        parts += [f"map={self.kind}"] if self.kind else []
        parts += [f"head={self.head[0] + 1}.{self.head[1] + 1}"] if self.head else []
        return " ".join(part for part in parts if part)

    @property
    def words(self) -> str:
        """As a person reads it."""
        ends = {"where": self._heads_text, "query": self.query.words, "key": self.key.words}
        if not self.distance:
            if not self.weight:
                return say("Links of {where} from {query} to {key}.", **ends)
            return say(
                "Links of {where} with a weight of at least {weight:g} from {query} to {key}.",
                weight=self.weight,
                **ends,
            )
        ends["distance"] = _distance_text(*self.distance)
        if not self.weight:
            return say("Links of {where} from {query} to {key}, {distance}.", **ends)
        return say(
            "Links of {where} with a weight of at least {weight:g} from {query} to {key}, {distance}.",
            weight=self.weight,
            **ends,
        )

    @property
    def _heads_text(self) -> str:
        """The heads that are asked for; the map by the name that is typed."""
        if not self.kind:
            return say("any head of any map")
        if not self.head:
            return say("any head of the {map} map", map=self.kind)
        layer, head = self.head
        return say("head {layer}.{head} of the {map} map", layer=layer + 1, head=head + 1, map=self.kind)


def parse_question(text: str) -> Question:
    """Read a question. Raises QuestionError."""
    if len(text) > MAX_QUESTION_LENGTH:
        raise QuestionError(
            say(
                "A question has at most {most} characters; this one has {count:,}.",
                most=MAX_QUESTION_LENGTH,
                count=len(text),
            )
        )
    try:
        # Backslashes belong to regular expressions, so they are not signs of the shell here.
        lexer = shlex.shlex(text, posix=True)
        lexer.whitespace_split, lexer.escape, lexer.commenters = True, "", ""
        parts = list(lexer)
    except ValueError as error:
        raise QuestionError(say("A quotation mark in “{text}” is not closed.", text=text)) from error
    if parts.count("->") != 1:
        raise QuestionError(say("A question has one arrow, between query and key: pos=NOUN -> pos=DET distance=-1."))
    found, side = Question(), "query"
    for part in parts:
        if part == "->":
            side = "key"
            continue
        found = _add_term(found, side, part)
    if found.head and not found.kind:
        raise QuestionError(say("A head needs its map: add map=encoder, map=decoder or map=cross."))
    return found


def _add_term(question: Question, side: str, part: str) -> Question:
    found = _TERM_PATTERN.match(part)
    if found is None or found[2] not in _TERM_SIGNS.get(found[1], ("=",)):
        raise QuestionError(
            say(
                "“{part}” is not understood: there are word=, word~, pos=, distance=, weight>=, map=, head=.", part=part
            )
        )
    name, sign, value = found.groups()
    if name in ("word", "pos"):
        token: TokenCondition = getattr(question, side)
        field = "tag" if name == "pos" else "word" if sign == "=" else "pattern"
        read = _parse_tag(value) if name == "pos" else value
        more: dict[str, Any] = {side: replace(token, **{field: read})}
        return replace(question, **more)
    if name == "distance":
        return replace(question, distance=_parse_distance(value))
    if name == "weight":
        return replace(question, weight=_parse_weight(value))
    if name == "map":
        return replace(question, kind=_parse_kind(value))
    return replace(question, head=_parse_head(value))


def _parse_tag(value: str) -> str:
    if value.upper() not in WORD_TAGS:
        raise QuestionError(
            say(
                "There is no part of speech “{value}”; there are {tags}.",
                value=value,
                tags=join_items(tag for tag in WORD_TAGS if tag),
            )
        )
    return value.upper()


def _parse_distance(value: str) -> tuple[int, int]:
    found = re.fullmatch(r"([+-]?\d{1,6})(?:\.\.([+-]?\d{1,6}))?", value)
    if found is None:
        raise QuestionError(say("“{value}” is no distance: write -1, or -3..-1 for any of these.", value=value))
    low = int(found[1])
    high = int(found[2]) if found[2] else low
    if high < low:
        raise QuestionError(say("The distances {value} are none: the lower one comes first.", value=value))
    return low, high


def _parse_weight(value: str) -> float:
    if not re.fullmatch(r"[01]?\.?\d{0,6}", value) or value in ("", ".") or not 0 <= float(value) <= 1:
        raise QuestionError(say("“{value}” is no weight: it is a number from 0 to 1.", value=value))
    return float(value)


def _parse_kind(value: str) -> Kind:
    found = next((kind for kind in KINDS if kind == value), None)
    if found is None:
        raise QuestionError(say("There is no map “{value}”; there are {maps}.", value=value, maps=join_items(KINDS)))
    return found


def _parse_head(value: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,3})\.(\d{1,3})", value)
    if found is None or not int(found[1]) or not int(found[2]):
        raise QuestionError(say("“{value}” is no head: write layer and head from 1, as in 2.3.", value=value))
    return int(found[1]) - 1, int(found[2]) - 1


def _distance_text(low: int, high: int) -> str:
    if low != high:
        return say("{low} to {high} tokens away", low=low, high=high)
    if low == 0:
        return say("at the same place")
    if low < 0:
        return say_many("{count} token before", "{count} tokens before", -low)
    return say_many("{count} token after", "{count} tokens after", low)


# Searching: which heads have such links more often than the others of their map, and examples of them.


EXAMPLE_COUNT = 50
_COUNT_QUERY = """
    FROM {{table}}
    SELECT map, layer, head, count(*) AS links, count(*) FILTER (WHERE {key}) AS hits
    WHERE {query} GROUP BY map, layer, head
"""
# A hash of the place puts the links into an order that is the same every time and has nothing to do with the weight.
_EXAMPLE_QUERY = """
    SELECT sentence, map, layer, head, query, key, weight, query_word, key_word FROM {{table}}
    WHERE {query} AND {key} ORDER BY hash(sentence::BIGINT * 1000003 + query * 1009 + key), map, layer, head LIMIT ?
"""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The answer to a question."""

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
        return join_sentences(counts, self._best_head_sentence())

    def _best_head_sentence(self) -> str:
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
        return join_sentences(most, others if ties else "")


def search_atlas(atlas: Atlas, question: Question, least: int = 10) -> SearchResult:
    """Count the links that a question asks for, by head; heads with fewer than `least` that begin so have no lift.

    Raises AtlasError, and QuestionError for a regular expression that cannot be read.
    """
    _check_question(atlas, question)
    # Chance is the share of the whole map, so all of its heads are counted even where one is asked for.
    conditions, parameters = _build_link_sql_conditions(question, whole_map=True)
    begins, before = _build_token_sql_condition("query", question.query)
    ends, after = _build_key_sql_condition(question)
    sql = _COUNT_QUERY.format(key=ends, query=" AND ".join(["true", *conditions, begins]))
    counts = run_query(atlas.folder, LINKS_TABLE, sql, [*after, *parameters, *before])
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
    return SearchResult(question, heads, int(counts["hits"].sum()), int(counts["links"].sum()))


def sample_example_links(atlas: Atlas, question: Question, count: int = EXAMPLE_COUNT) -> pd.DataFrame:
    """Return links that are as asked, drawn from all of them whatever their weight: a row a link.

    sentence, map, layer, head, query, key, weight, query_word, key_word.
    """
    _check_question(atlas, question)
    conditions, parameters = _build_link_sql_conditions(question)
    begins, before = _build_token_sql_condition("query", question.query)
    ends, after = _build_key_sql_condition(question)
    sql = _EXAMPLE_QUERY.format(query=" AND ".join(["true", *conditions, begins]), key=ends)
    return run_query(atlas.folder, LINKS_TABLE, sql, [*parameters, *before, *after, count])


def _check_question(atlas: Atlas, question: Question) -> None:
    """Raise AtlasError for a head that the model has not, and QuestionError for a pattern that cannot be read."""
    if question.kind and question.head:
        head: Head = (question.kind, *question.head)
        atlas.row(head)
    for token in (question.query, question.key):
        if token.pattern:
            check_regular_expression(token.pattern)


def _build_link_sql_conditions(question: Question, whole_map: bool = False) -> tuple[list[str], list[Any]]:
    """The conditions on a link whatever its key, and their parameters."""
    conditions: list[tuple[str, list[Any]]] = []
    if question.weight:
        conditions.append(("weight >= ? - 1e-6", [question.weight]))
    if question.kind:
        conditions.append(("map = ?", [question.kind]))
    if question.head and not whole_map:
        conditions.append(("layer = ? AND head = ?", list(question.head)))
    return [text for text, _ in conditions], [value for _, values in conditions for value in values]


def _build_key_sql_condition(question: Question) -> tuple[str, list[Any]]:
    text, parameters = _build_token_sql_condition("key", question.key)
    if question.distance:
        return f"{text} AND distance BETWEEN ? AND ?", [*parameters, *question.distance]
    return text, parameters


def _build_token_sql_condition(end: str, asked: TokenCondition) -> tuple[str, list[Any]]:
    """The condition on a token; `end` is ``query`` or ``key``, never a visitor's text."""
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


# Rows of a head from the top, the middle and the bottom tenth of its weights, and the sentences it costs most.


WEIGHT_TENTHS = {"top": 10, "middle": 5, "bottom": 1}
"""The tenths of the rows of a head that are shown, by the weight of the heaviest key."""
ROWS_PER_TENTH = 17
FEWEST_TAG_ROWS = 20
"""Rows of a part of speech below which no lift is given."""
_ROWS_QUERY = """
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
_REPETITION_QUERY = """
    FROM {table} JOIN (
        FROM read_parquet(?) SELECT sentence, list_concat(source_pieces, target_pieces) AS pieces
    ) USING (sentence)
    SELECT sentence, query WHERE map = ? AND layer = ? AND head = ? AND weight > 0.5 AND key < query
        AND NOT list_contains(?, query_piece) AND pieces[key + ?] = query_piece
    ORDER BY hash(sentence::BIGINT * 1000003 + query) LIMIT ?
"""
_ALIGNED_QUERY = """
    WITH links AS (
        FROM {table} WHERE map = 'cross'
    ), texts AS (
        FROM read_parquet(?) SELECT sentence, source_pieces, target_pieces
    ), of_all_heads AS (
        FROM links JOIN texts USING (sentence) SELECT sentence, query, key, sum(weight) AS weight
        WHERE NOT list_contains(?, source_pieces[key + 1]) GROUP BY ALL
    ), matches AS (
        FROM of_all_heads SELECT sentence, query AS token, arg_max(key, weight) AS key GROUP BY ALL
        HAVING max(weight) > sum(weight) / 2
    ), own AS (
        FROM links SELECT sentence, query, query - ? AS token, arg_max(key, weight) AS key
        WHERE layer = ? AND head = ? GROUP BY ALL HAVING max(weight) > 0.5
    ), words AS (
        FROM own JOIN matches USING (sentence, token, key) JOIN texts USING (sentence)
        SELECT sentence, query, target_pieces[token + 1] AS word, source_pieces[key + 1] AS match,
            coalesce(target_pieces[token + 2], '') AS rest
    )
    FROM words SELECT sentence, query
    WHERE regexp_matches(word, '^ \\p{{L}}{{4,}}$') AND NOT regexp_matches(rest, '^\\p{{L}}')
        AND lower(word) != lower(match)
    ORDER BY hash(sentence::BIGINT * 1000003 + query) LIMIT ?
"""
_LINKS_QUERY = """
    FROM {table} SELECT sentence, query, key, weight
    WHERE map = ? AND layer = ? AND head = ? AND list_contains(?, sentence)
"""
_SENTENCES_QUERY = """
    FROM {table} SELECT sentence, source, target, source_pieces, target_pieces WHERE list_contains(?, sentence)
"""
_COSTS_QUERY = "FROM {table} SELECT * WHERE map = ? AND layer = ? AND head = ? ORDER BY cost DESC, sentence LIMIT ?"
_TAGS_QUERY = "FROM {table} SELECT query_tag, key_tag, mass, even, rows WHERE map = ? AND layer = ? AND head = ?"


@dataclass(frozen=True, eq=False)
class HeadRow:
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


def sample_rows_by_decile(atlas: Atlas, head: Head, each: int = ROWS_PER_TENTH) -> dict[str, list[HeadRow]]:
    """Return rows of a head by the tenth that they are of, drawn from it in an order that is the same every time."""
    atlas.row(head)
    drawn = run_query(atlas.folder, LINKS_TABLE, _ROWS_QUERY, [*head, each])
    rows = load_attention_rows(
        atlas, [(head, int(one), int(at)) for one, at in zip(drawn["sentence"], drawn["query"], strict=True)]
    )
    tenths = drawn["tenth"].tolist()
    return {
        name: [row for row, of in zip(rows, tenths, strict=True) if of == tenth]
        for name, tenth in WEIGHT_TENTHS.items()
    }


def load_attention_rows(atlas: Atlas, places: list[tuple[Head, int, int]]) -> list[HeadRow]:
    """Return rows by their head, sentence and query, in their sentences."""
    lines = sorted({line for _, line, _ in places})
    texts = run_query(atlas.folder, SENTENCES_TABLE, _SENTENCES_QUERY, [lines]).set_index("sentence")
    links = {
        head: run_query(atlas.folder, LINKS_TABLE, _LINKS_QUERY, [*head, lines]).groupby(["sentence", "query"])
        for head in dict.fromkeys(head for head, _, _ in places)
    }
    found = []
    for head, line, at in places:
        pieces: Any = texts.loc[line, ["source_pieces", "target_pieces"]]
        source, target = map(tuple, pieces)
        queries, keys = _query_and_key_pieces(
            head, source, target, source if atlas.is_one_text else (atlas.manifest.start,)
        )
        own = links[head].get_group((line, at))
        weights = np.zeros(len(keys), dtype=np.float32)
        weights[own["key"].to_numpy()] = own["weight"].to_numpy()
        found.append(HeadRow(line, at, queries, keys, weights))
    return found


def find_repetition_rows(atlas: Atlas, head: Head, place: Place, count: int) -> list[HeadRow]:
    """Return rows of a decoder alone with most of their weight on one token that is ``induction`` or ``duplicate``.

    They are drawn from all such rows, in an order that is the same every time.
    """
    atlas.row(head)
    sentences = str(atlas.folder / f"{SENTENCES_TABLE}.parquet")
    before = 1 if place == "duplicate" else 0  # a list counts from 1: the key's own piece, or the one before it
    given = [sentences, *head, sorted(SPECIAL_TOKENS), before, count]
    drawn = run_query(atlas.folder, LINKS_TABLE, _REPETITION_QUERY, given)
    return load_attention_rows(
        atlas, [(head, int(one), int(at)) for one, at in zip(drawn["sentence"], drawn["query"], strict=True)]
    )


def find_aligned_rows(atlas: Atlas, head: Head, reading: AlignmentReading, count: int) -> list[HeadRow]:
    """Return rows of a cross-attention head in which it is sure of the match of a word.

    The word is whole, no copy, and of four letters or more. More than half of its weight, and more than half of the
    weight of all heads together on text where that word is predicted, are on one source token. They are drawn in an
    order that is the same every time.

    Args:
        reading: The token of a row that is aligned. ``query`` of what is returned is the place of that token: the row
            that a token is fed into is the one behind the row that predicts it.
    """
    atlas.row(head)
    late = ALIGNMENT_READINGS.index(reading)
    sentences = str(atlas.folder / f"{SENTENCES_TABLE}.parquet")
    given = [sentences, sorted(SPECIAL_TOKENS), late, *head[1:], count]
    drawn = run_query(atlas.folder, LINKS_TABLE, _ALIGNED_QUERY, given)
    rows = load_attention_rows(
        atlas, [(head, int(one), int(at)) for one, at in zip(drawn["sentence"], drawn["query"], strict=True)]
    )
    return [replace(row, query=row.query - late) for row in rows]


def find_most_ablation_sensitive_sentences(atlas: Atlas, head: Head, count: int = 8) -> pd.DataFrame:
    """Return the sentences that switching a head off costs most, a row each; empty for an atlas without costs.

    sentence, source, target, cost (nats, of all its tokens), token (that costs most) and token_cost.
    """
    if not atlas.manifest.plan.costs:
        return pd.DataFrame()
    costs = run_query(atlas.folder, COSTS_TABLE, _COSTS_QUERY, [*head, count])
    texts = run_query(atlas.folder, SENTENCES_TABLE, _SENTENCES_QUERY, [costs["sentence"].tolist()]).set_index(
        "sentence"
    )
    found = costs.join(texts, "sentence")
    found["token"] = [pieces[at] for pieces, at in zip(found["target_pieces"], found["token"], strict=True)]
    return found[["sentence", "source", "target", "cost", "token", "token_cost"]]


def load_tag_pairs(atlas: Atlas, head: Head) -> pd.DataFrame:
    """Return the weight from part of speech to part of speech, highest lift first: a row a pair.

    query_tag, key_tag, rows (that begin so), share (of their weight), even (of a head that spreads every row evenly),
    lift (share / even). Pairs of fewer rows than FEWEST_TAG_ROWS, and of words whose part of speech is not known, are
    left out.
    """
    found = run_query(atlas.folder, TAGS_TABLE, _TAGS_QUERY, list(head))
    found = found[(found["rows"] >= FEWEST_TAG_ROWS) & (found["query_tag"] != "") & (found["key_tag"] != "")]
    shares = found.assign(share=found["mass"] / found["rows"], even=found["even"] / found["rows"])
    shares["lift"] = shares["share"] / shares["even"]
    columns = ["query_tag", "key_tag", "rows", "share", "even", "lift"]
    return shares.sort_values(["lift", "rows"], ascending=False)[columns].reset_index(drop=True)


def load_tags(atlas: Atlas) -> frozenset[str]:
    """Return the parts of speech that any token of the corpus has; "" for one that is not known."""
    return frozenset(run_query(atlas.folder, TAGS_TABLE, "FROM {table} SELECT DISTINCT query_tag")["query_tag"])


def _query_and_key_pieces(
    head: Head, source: tuple[str, ...], target: tuple[str, ...], begin: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tokens of a map's rows and columns; the target is fed in behind its beginning."""
    if head[0] == "cross":
        return target, source
    own = source if head[0] == "encoder" else (*begin, *target[:-1])
    return own, own


# An open atlas.


@dataclass(frozen=True, eq=False)
class Atlas:
    """An open atlas: its manifest and its tables of heads."""

    folder: Path
    manifest: Manifest
    heads: pd.DataFrame
    """A row a head; see :data:`model.atlas.measure.MEASURE_EXPLANATIONS`."""
    halves: pd.DataFrame
    """The same for the sentences of even and of odd numbers, told apart by ``half``."""

    @cached_property
    def names(self) -> tuple[Head, ...]:
        """The heads, in the order of the table."""
        places = zip(self.heads["map"], self.heads["layer"], self.heads["head"], strict=True)
        return tuple((kind, int(layer), int(head)) for kind, layer, head in places)

    @property
    def sizes(self) -> dict[Kind, tuple[int, int]]:
        """How many layers and heads each map of the model has, by kind."""
        own = {kind: self.heads[self.heads["map"] == kind] for kind in KINDS}
        return {kind: (int(of["layer"].max()) + 1, int(of["head"].max()) + 1) for kind, of in own.items() if len(of)}

    @property
    def is_one_text(self) -> bool:
        """Whether it is of a decoder alone: the target goes on where the source, a text's first token, ends."""
        return tuple(self.sizes) == ("decoder",)

    @cached_property
    def _rows(self) -> dict[Head, int]:
        return {head: at for at, head in enumerate(self.names)}

    @cached_property
    def labels(self) -> tuple[HeadLabel, ...]:
        """What the whole corpus says of each head, in the order of the table."""
        rows = self.heads.to_dict("records")
        sequences = self.manifest.repeats.get("sequences", 0)
        return tuple(label_head(row, self.manifest.sentences, sequences) for row in rows)

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """The measures that it holds."""
        return tuple(name for name in MEASURE_EXPLANATIONS if name in self.heads and self.heads[name].notna().any())

    def row(self, head: Head) -> pd.Series:
        """Return the measures of a head. Raises AtlasError for one that the model has not."""
        try:
            return self.heads.iloc[self._rows[head]]
        except KeyError as error:
            raise AtlasError(say("This model has no {head}.", head=head_name(head))) from error

    def label(self, head: Head) -> HeadLabel:
        """Return what the whole corpus says of a head."""
        self.row(head)
        return self.labels[self._rows[head]]

    def nearest_heads(self, head: Head, count: int = 5) -> list[tuple[Head, float]]:
        """The heads of the same map whose measures are nearest, each in units of its standard deviation."""
        own = self.heads[self.heads["map"] == head[0]]
        names = [name for name in self.measures if own[name].notna().all() and own[name].std() > 0]
        scaled = ((own[names] - own[names].mean()) / own[names].std()).to_numpy()
        self.row(head)
        at = [(kind, layer, number) for kind, layer, number in self.names if kind == head[0]].index(head)
        apart = np.sqrt(((scaled - scaled[at]) ** 2).mean(1))
        order = [place for place in np.argsort(apart, kind="stable").tolist() if place != at]
        heads = [one for one in self.names if one[0] == head[0]]
        return [(heads[place], float(apart[place])) for place in order[:count]]


def open_atlas(folder: Path, name: str, model_hash: str) -> Atlas:
    """Open the atlas of a model.

    Raises AtlasError where it is of another, of another version, unfinished or damaged.
    """
    manifest = read_manifest(folder)
    check_atlas_complete(folder, manifest)
    check_atlas_model(manifest, name, model_hash)
    tables = []
    for table in (HEADS_TABLE, HALVES_TABLE):
        path = folder / f"{table}.parquet"
        try:
            tables.append(pd.read_parquet(path))
        # Damage to the notes that pandas keeps in the file raises errors of many kinds.
        except (OSError, ValueError, TypeError, LookupError, pa.ArrowException) as error:
            raise AtlasError(
                say("{path} is damaged: restore the atlas from its source, or build it again.", path=path)
            ) from error
    return Atlas(folder, manifest, *tables)


def released_atlas_folder(checkpoint: str | Path) -> Path:
    """Return the folder in which a checkpoint's own atlas is, or would be."""
    return find_checkpoint_folder(checkpoint) / ATLAS_FOLDER


# Labels of heads: a name for what a head does, given only where the corpus carries it.
#
# A row counts for a place when more than half of its weight lies there. A head is labelled with a place when the share
# of such rows, among those that have the place, is far above what rows spread evenly would give: by Cohen's (1960)
# agreement corrected for chance, (share - even) / (1 - even), of at least one half, also at the lower end of its 95%
# interval. The rows of a sentence are alike, so the interval is as wide as if each sentence were one row. A place that
# few rows have, less than a quarter, names no head, since the label would not speak of most rows. Of several places
# the one of the highest agreement is taken.
#
# Induction and duplicate tokens name a head by what it does on random tokens that are repeated, each sequence of which
# counts as a sentence, and before any other place: where nothing is repeated, as in most rows of a corpus, such heads
# rest elsewhere, often on the first token.


LEAST_AGREEMENT = 0.5
"""The least agreement corrected for chance."""
LEAST_PLACE_SHARE = 0.25
"""The least share of a head's rows that have the place."""
UNQUALIFIED_PLACE_SHARE = 0.75
"""Below this share of rows that have it, the label says that it speaks of these alone."""


@dataclass(frozen=True)
class HeadLabel:
    """What a corpus says of a head."""

    place: Place | None
    """None where it says nothing."""
    share: float
    """Of the rows that have the place, those with more than half of their weight on it; 0 without a place."""
    even: float
    """The same of rows spread evenly."""
    has: float
    """The share of the head's rows that have the place."""
    repeated: bool = False
    """Whether the rows are those of random tokens that are repeated."""

    @property
    def agreement(self) -> float:
        """Corrected for chance: 0 where rows spread evenly would do as well."""
        return (self.share - self.even) / (1 - self.even)

    def has_enough_sentences(self, sentences: int) -> bool:
        """Return whether so many sentences are enough for the label, by the lower ends of both intervals."""
        agreement = (_share_confidence_lower_bound(self.share, sentences) - self.even) / (1 - self.even)
        return agreement >= LEAST_AGREEMENT and _share_confidence_lower_bound(self.has, sentences) >= LEAST_PLACE_SHARE

    @property
    def text(self) -> str:
        """What a person reads."""
        if self.place is None:
            return say("mixed")
        said = {"place": say(PLACE_NAMES[self.place]), "share": self.share}
        if self.repeated:
            return say("{place}: {share:.0%} of rows of random tokens repeated", **said)
        if self.has < UNQUALIFIED_PLACE_SHARE:
            return say("{place}: {share:.0%} of rows that have it", **said)
        return say("{place}: {share:.0%} of rows", **said)


def _share_confidence_lower_bound(share: float, sentences: int) -> float:
    """The lower end of the 95% interval of a share."""
    return share - 1.96 * math.sqrt(share * (1 - share) / max(sentences, 1))


MIXED_LABEL = HeadLabel(None, 0.0, 0.0, 0.0)


def label_head(measures: Mapping[Any, Any] | pd.Series[Any], sentences: int, sequences: int = 0) -> HeadLabel:
    """Return the label of a head by a row of an atlas's table.

    It was measured on so many sentences, and on so many sequences of repeated tokens.
    """
    repetition = find_best_repetition_label(measures)
    if repetition.place and repetition.has_enough_sentences(sequences):
        return repetition
    label = find_best_pattern_label(measures)
    return label if label.has_enough_sentences(sentences) else MIXED_LABEL


def find_best_repetition_label(measures: Mapping[Any, Any] | pd.Series[Any]) -> HeadLabel:
    """Return which place of repetition has the higher agreement on repeated tokens; MIXED_LABEL where none is known."""
    found = []
    for place in REPETITION_PLACES:
        name = f"{place}{REPEATED_SUFFIX}"
        share, even = (float(measures.get(f"{name}{end}", float("nan"))) for end in (HELD_SUFFIX, EVEN_SUFFIX))
        if even < 1:
            found.append(HeadLabel(place, share, even, 1.0, repeated=True))
    return max(found, key=lambda label: label.agreement, default=MIXED_LABEL)


def find_best_pattern_label(measures: Mapping[Any, Any] | pd.Series[Any]) -> HeadLabel:
    """Return the place of the highest agreement, however low that is; MIXED_LABEL where none is common enough."""
    found = []
    for place in (one for one in PLACES if one not in REPETITION_PLACES):
        share, even, has = (
            float(measures.get(f"{place}{end}", float("nan"))) for end in (HELD_SUFFIX, EVEN_SUFFIX, HAS_SUFFIX)
        )
        if has >= LEAST_PLACE_SHARE and even < 1:
            found.append(HeadLabel(place, share, even, has))
    return max(found, key=lambda label: label.agreement, default=MIXED_LABEL)
