"""`python -m model heads`: what an atlas says of a model's heads, and where they do what one asks for."""

from __future__ import annotations

import argparse
import json
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ..checkpoint.files import WEIGHTS, folder_of, read_facts, read_verified, sha256
from ..heads.atlas import Atlas, head_name, open_atlas, released_atlas
from ..heads.question import read_question
from ..heads.search import Found, examples, search
from ..language.say import number, say
from .columns import table
from .use import add_checkpoint

SHOWN = 20
"""Heads and sentences printed without --json."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint(parser)
    parser.add_argument(
        "--atlas", type=Path, metavar="FOLDER", help=say("an atlas of your own (default: the released one)")
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--find", metavar="QUESTION", help=say('such as "pos=NOUN -> pos=DET distance=-1 map=encoder"'))
    what.add_argument("--measures", action="store_true", help=say("every measure of every head, with its label"))
    parser.add_argument("--json", action="store_true", help=say("print one JSON object; layers and heads count from 0"))


def run(arguments: argparse.Namespace) -> int:
    """Print what the page Heads shows."""
    folder = folder_of(arguments.checkpoint)
    model_hash = sha256(read_verified(folder, WEIGHTS, read_facts(folder)))[:12]
    atlas = open_atlas(arguments.atlas or released_atlas(arguments.checkpoint), folder.name, model_hash)
    if arguments.measures:
        print(json.dumps(measures(atlas), ensure_ascii=False) if arguments.json else _table(atlas))
        return 0
    found = search(atlas, read_question(arguments.find))
    shown = examples(atlas, found.question)
    if arguments.json:
        print(json.dumps(_answer(found, shown), ensure_ascii=False))
        return 0
    print(f"{found.question.words}\n{found.sentence}\n")
    heads = [_found(one) for one in found.heads[:SHOWN].to_dict("records")]
    lines = [_example(one) for one in shown[:SHOWN].to_dict("records")]
    print("\n".join(f"  {line}" for line in (*table(heads), *table(lines, texts=3))))
    return 0


def measures(atlas: Atlas) -> dict[str, Any]:
    """Return what the corpus was, and a list of heads with their labels and measures; null where one has none."""
    rows = json.loads(atlas.heads.to_json(orient="records"))
    heads = [row | {"label": atlas.label(head).text} for head, row in zip(atlas.names, rows, strict=True)]
    manifest = atlas.manifest
    plan = {"model": manifest.plan.model, "model_hash": manifest.plan.model_hash, "source": manifest.plan.source}
    return {**plan, "licence": manifest.licence, "sentences": manifest.sentences, "heads": heads}


def _answer(found: Found, shown: pd.DataFrame) -> dict[str, Any]:
    facts = {"question": found.question.text, "words": found.question.words, "sentence": found.sentence}
    heads = json.loads(found.heads.to_json(orient="records"))
    links = json.loads(shown.to_json(orient="records"))
    return {**facts, "hits": found.hits, "links": found.links, "heads": heads, "examples": links}


def _found(one: Mapping[Hashable, Any]) -> list[str]:
    """A head with how often it does what was asked for."""
    hits = say("{hits:,} of {links:,}", hits=one["hits"], links=one["links"])
    return [_name(one), hits, number(one["share"], ".1%"), say("lift {lift:.2f}", lift=one["lift"])]


def _example(one: Mapping[Hashable, Any]) -> list[str]:
    """A link of a sentence."""
    line = say("line {line}", line=one["sentence"] + 1)
    return [line, _name(one), f"{one['query_word']} -> {one['key_word']}", number(one["weight"], ".2f")]


def _name(one: Mapping[Hashable, Any]) -> str:
    return head_name((one["map"], one["layer"], one["head"]))


def _table(atlas: Atlas) -> str:
    shown = [name for name in ("cost", "entropy", "distance", "top") if name in atlas.heads]
    rows = [[say("head"), say("label"), *shown]]
    for head, row in zip(atlas.names, atlas.heads[shown].to_dict("records"), strict=True):
        rows.append([head_name(head), atlas.label(head).text, *(number(row[name], ".4f") for name in shown)])
    return "\n".join(table(rows, texts=2))
