"""Questions as they are typed, and their answers against a plain reading of the links."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import threading
import time
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attenscope.__main__ import main
from attenscope.atlas import duckdb_queries
from attenscope.atlas.duckdb_queries import QuestionError, run_query
from attenscope.atlas.files import LINKS_TABLE, AtlasError
from attenscope.atlas.query import (
    Atlas,
    Question,
    TokenCondition,
    find_most_ablation_sensitive_sentences,
    load_attention_rows,
    load_tag_pairs,
    open_atlas,
    parse_question,
    sample_example_links,
    sample_rows_by_decile,
    search_atlas,
)
from attenscope.text.parts_of_speech import WORD_TAGS
from attenscope.trace import KINDS, Head

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=12).filter(str.strip)
TOKENS = st.builds(TokenCondition, st.just("") | TEXT, st.just("") | TEXT, st.sampled_from(WORD_TAGS))
QUESTIONS = st.builds(
    Question,
    TOKENS,
    TOKENS,
    st.none() | st.tuples(st.integers(-9, 0), st.integers(0, 9)),
    st.sampled_from([0.0, 0.25, 0.5]),
    st.sampled_from(KINDS),
    st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
)


@given(QUESTIONS)
def test_a_question_is_read_back_as_it_was_written(question: Question) -> None:
    assert parse_question(question.text) == question


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("pos=NOUN", "one arrow"),
        ("a -> b -> c", "one arrow"),
        ("pos=NOUN -> 'open", "not closed"),
        ("pos=NOWN -> ", "There is no part of speech"),
        ("dog -> cat", "“dog” is not understood"),
        (" -> distance=far", "is no distance"),
        (" -> distance=2..1", "the lower one comes first"),
        (" -> weight>=2", "is no weight"),
        (" -> weight=0.5", "is not understood"),
        (" -> map=self", "There is no map"),
        (" -> head=1.1", "A head needs its map"),
        (" -> map=cross head=0.1", "is no head"),
        (" -> " + "x" * 400, "at most 300 characters"),
    ],
)
def test_what_cannot_be_read_is_said(typed: str, said: str) -> None:
    with pytest.raises(QuestionError, match=re.escape(said)):
        parse_question(typed)


def expected(links: pd.DataFrame, question: Question) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The links that begin as asked, and those of them that end so, by a plain reading."""

    def fits(row: pd.Series, end: str, token: TokenCondition) -> bool:
        word = row[f"{end}_word"]
        same = not token.word or word.lower() == token.word.lower()
        found = not token.pattern or re.search(token.pattern, word)
        return bool(same and found and (not token.tag or row[f"{end}_tag"] == token.tag))

    links = links if question.kind is None else links[links["map"] == question.kind]
    low, high = question.distance or (-99, 99)
    begins = links[pd.Series([fits(row, "query", question.query) for _, row in links.iterrows()], links.index)]
    begins = begins[begins["weight"] >= question.weight - 1e-6]
    ends = begins[pd.Series([fits(row, "key", question.key) for _, row in begins.iterrows()], begins.index, dtype=bool)]
    return begins, ends[ends["distance"].between(low, high)]


@pytest.mark.parametrize(
    "typed",
    [
        "pos=NOUN -> pos=DET distance=-1",
        "word=THE -> word~^c distance=-3..4",
        "word~[aeiou]{1} pos=ADJ -> map=cross",
        " -> pos=PUNCT weight>=0.3 map=decoder",
        '"word=\'; DROP TABLE x; --" -> ',
    ],
)
def test_counts_are_those_of_a_plain_reading(atlas: Atlas, typed: str) -> None:
    question, links = parse_question(typed), pd.read_parquet(atlas.folder / LINKS_TABLE)
    begins, ends = expected(links, question)
    found = search_atlas(atlas, question, least=1)
    assert (found.hits, found.links) == (len(ends), len(begins))
    assert len(sample_example_links(atlas, question, 10_000)) == len(ends)
    for one in found.heads.to_dict("records"):
        of_map = [part[part["map"] == one["map"]] for part in (ends, begins)]
        own = [len(part[(part["layer"] == one["layer"]) & (part["head"] == one["head"])]) for part in of_map]
        assert (one["hits"], one["links"]) == tuple(own)
        assert one["lift"] == pytest.approx((own[0] / own[1]) / (len(of_map[0]) / len(of_map[1])))
    assert found.heads["lift"].is_monotonic_decreasing


def test_one_head_keeps_its_lift_over_the_map(atlas: Atlas) -> None:
    every = search_atlas(atlas, parse_question("pos=NOUN -> pos=DET map=encoder"), least=1).heads
    alone = search_atlas(atlas, parse_question("pos=NOUN -> pos=DET map=encoder head=2.1"), least=1)
    chosen = every[(every["layer"] == 1) & (every["head"] == 0)].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone.heads, chosen)
    with pytest.raises(AtlasError, match=r"has no encoder 9\.1"):
        search_atlas(atlas, parse_question(" -> map=encoder head=9.1"))
    with pytest.raises(QuestionError, match=r"cannot be read: missing"):
        search_atlas(atlas, parse_question("word~un( -> "))


def test_a_query_reads_its_atlas_alone_and_ends_in_time(
    atlas: Atlas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n", encoding="utf-8")
    with pytest.raises(Exception, match="disabled"):
        run_query(atlas.folder, LINKS_TABLE, f"SELECT * FROM '{tmp_path}/secret.csv', {{table}}")
    endless = "SELECT count(*) FROM {table} a, {table_2} b".replace("{table_2}", "range(1000000000000) ")
    began, others = time.monotonic(), []

    def quick() -> None:
        others.append(len(run_query(atlas.folder, LINKS_TABLE, "FROM {table} SELECT 1 LIMIT 1")))

    beside = threading.Timer(0.2, quick)
    beside.start()
    with pytest.raises(AtlasError, match="took more than"):
        run_query(atlas.folder, LINKS_TABLE, endless, seconds=1)
    beside.join()
    assert time.monotonic() - began < 20
    assert others == [1]
    monkeypatch.setattr(duckdb_queries, "MEMORY_LIMIT", "12MB")
    with pytest.raises(AtlasError, match="too much memory"):
        run_query(atlas.folder, LINKS_TABLE, "SELECT list(a) FROM {table}, range(300) a ORDER BY 1")


def test_a_damaged_file_is_named(atlas: Atlas, tmp_path: Path) -> None:
    shutil.copytree(atlas.folder, tmp_path / "copy")
    links = tmp_path / "copy" / LINKS_TABLE / "0000.parquet"
    data = bytearray(links.read_bytes())
    data[200:-4000] = bytes(len(data[200:-4000]))
    links.write_bytes(data)
    with pytest.raises(AtlasError, match=r"links/0000\.parquet is damaged"):
        search_atlas(
            open_atlas(tmp_path / "copy", "toy", atlas.manifest.plan.model_hash), parse_question("pos=NOUN -> ")
        )


def test_rows_are_of_three_tenths_and_costs_are_the_highest(atlas: Atlas) -> None:
    head: Head = ("cross", 1, 0)
    links = pd.read_parquet(atlas.folder / LINKS_TABLE)
    own = links[(links["map"] == "cross") & (links["layer"] == 1) & (links["head"] == 0)]
    tops = own.groupby(["sentence", "query"])["weight"].max().sort_values()
    found = sample_rows_by_decile(atlas, head, each=5)
    tenth = len(tops) / 10
    for name, low in (("bottom", 0), ("middle", 4), ("top", 9)):
        assert len(found[name]) == 5
        for row in found[name]:
            least, most = tops.iloc[int(low * tenth)], tops.iloc[min(int((low + 1) * tenth) + 1, len(tops) - 1)]
            assert least <= row.weights.max() <= most
            expected_weights = own[(own["sentence"] == row.sentence) & (own["query"] == row.query)]
            assert {at for at, weight in enumerate(row.weights) if weight} == set(expected_weights["key"])
    (row,) = load_attention_rows(atlas, [(head, found["top"][0].sentence, found["top"][0].query)])
    assert row.keys == found["top"][0].keys
    costs = pd.read_parquet(atlas.folder / "costs.parquet")
    mine = costs[(costs["map"] == "cross") & (costs["layer"] == 1) & (costs["head"] == 0)]
    assert find_most_ablation_sensitive_sentences(atlas, head, 3)["cost"].tolist() == mine["cost"].nlargest(3).tolist()
    assert mine["cost"].sum() / mine["tokens"].sum() == pytest.approx(atlas.row(head)["cost"], abs=1e-3)
    assert atlas.row(head)["cost_low"] <= atlas.row(head)["cost"] <= atlas.row(head)["cost_high"]
    shares = load_tag_pairs(atlas, head)
    assert (shares["lift"] * shares["even"]).tolist() == pytest.approx(shares["share"].tolist())
    assert len(atlas.nearest_heads(head)) == 3
    assert head not in dict(atlas.nearest_heads(head))


def test_the_command_line_says_the_same(atlas: Atlas, toy_checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given_atlas = ["heads", "--checkpoint", str(toy_checkpoint), "--atlas", str(atlas.folder)]
    asked = "pos=NOUN -> pos=DET distance=-1"
    assert main([*given_atlas, "--find", asked, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    found = search_atlas(atlas, parse_question(asked))
    assert (answer["hits"], answer["sentence"]) == (found.hits, found.sentence)
    assert main([*given_atlas, "--measures", "--json"]) == 0
    heads = json.loads(capsys.readouterr().out)["heads"]
    assert [one["label"] for one in heads] == [atlas.label(head).text for head in atlas.names]
    assert main([*given_atlas, "--find", asked]) == 0
    assert found.sentence in capsys.readouterr().out
    assert main([*given_atlas, "--find", "dog"]) == 2
    assert main([*given_atlas, "--measures"]) == 0


def test_a_corpus_of_many_lines(atlas: Atlas, tmp_path: Path) -> None:
    """A line's number times the factor of the shuffle is no 32-bit number from the 2,148th on."""
    folder = tmp_path / "late"
    shutil.copytree(atlas.folder, folder)
    for path in [*folder.glob("links/*.parquet"), folder / "sentences.parquet"]:
        table = pd.read_parquet(path)
        table.assign(sentence=table["sentence"] + 50_000).to_parquet(path)
    late = dataclasses.replace(atlas, folder=folder)
    found = sample_rows_by_decile(late, atlas.names[0])
    assert [len(rows) for rows in found.values()] == [
        len(rows) for rows in sample_rows_by_decile(atlas, atlas.names[0]).values()
    ]
    question = parse_question("pos=NOUN -> pos=DET")
    assert len(sample_example_links(late, question)) == len(sample_example_links(atlas, question))
