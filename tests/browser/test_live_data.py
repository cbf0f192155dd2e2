"""What the live file makes of a run for the app's components, held against what Python makes of the same run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from attenscope.analysis.heads import rank_heads_by_alignment
from attenscope.analysis.telling_word import pick_telling_word, weigh_words
from attenscope.checkpoint.load import list_checkpoints
from attenscope.experiments.ablation import head_effects, read_word_facts
from attenscope.text.words import group_tokens_into_words, join_word
from attenscope.trace import AttentionMap
from attenscope.translate import Translator
from attenscope.viz.engine.pack_checkpoint import encode_palette
from attenscope.viz.figures.figure_style import DARK, Look
from attenscope.viz.figures.heatmap import make_head_grid
from attenscope.viz.figures.text_alternatives import describe_pinned_row, describe_strongest_head_link
from attenscope.viz.web.charts import beam_tree_data
from attenscope.viz.web.maps import LinkOptions
from attenscope.viz.web.maps import encode_attention_links as links
from attenscope.viz.web.maps import encode_heads_overview as overview
from attenscope.viz.web.maps import encode_heatmap as heatmap
from attenscope.viz.web.players import PlayerStart
from attenscope.viz.web.players import encode_decode_player as player
from attenscope.viz.web.text_components import encode_shaded_text as text
from attenscope.viz.web.text_components import token_line_data, word_card_data
from tests import toy
from tests.browser.engine_page import EnginePage
from tests.browser.modules import import_names
from tests.browser.test_engine import toy_checkpoint
from tests.viz.web.test_packing import unpack

TEXT = "the small dog sees a cat. <b> 中文字幕很长很长的词 \u202e"
NAMES = {
    "attention_map": ("bestAligning", "mapOf"),
    "decoding_views": ("playerData", "tokensData", "treeData"),
    "head_views": ("headInWords", "heatmapData", "linksData", "overviewData", "textData"),
    "telling": ("tellingWord",),
    "word_view": ("mergedWords", "wordData"),
}
"""What is tried of each module of viz/export/live."""
CALL = """([text, options, name, kind, rest]) => {
  const run = window.running.translate(text, options);
  const found = window[name](kind ? window.mapOf(run, kind) : run, ...rest);
  return found instanceof Uint8Array ? Array.from(found) : found;
}"""
CARDS = """([text, explained]) => {
  const run = window.running.translate(text, {});
  const cards = (one) => run.ids.map((_, position) => window.wordData(one, position, ""));
  return { explained: cards({ ...run, explained }), waiting: cards(run) };
}"""
PINNED = (2, 1)
LOOK = Look(DARK)


class Views:
    """The modules beside the engine in one page."""

    def __init__(self, page: Page, folder: Path, **fields: object) -> None:
        self.page, self.translator = page, Translator(toy_checkpoint(**fields))
        EnginePage(page, folder, self.translator.checkpoint)
        for module, names in NAMES.items():
            import_names(page, f"export/live/{module}.js", *names)
        self.palette = json.loads(json.dumps(encode_palette(LOOK)))

    def __call__(self, name: str, kind: str | None, *rest: Any) -> Any:
        return self.page.evaluate(CALL, [TEXT, {}, name, kind, list(rest)])


@pytest.fixture
def views(disk: Page, tmp_path: Path) -> Views:
    return Views(disk, tmp_path)


def equal(own: list[int], expected: bytes, width: int = 1) -> None:
    """The same header, and the same numbers but for the last digit of a weight at a border between two."""
    (header, body), (other, rest) = unpack(bytes(own)), unpack(expected)
    assert rounded(header) == rounded(other)
    numbers, theirs = (np.frombuffer(one, f"<u{width}").astype(int) for one in (body, rest))
    assert np.abs(numbers - theirs).max() <= 1


def rounded(value: Any) -> Any:
    """Numbers to four digits after the point: both sides compute in float32, in another order."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_heads_by_every_view(views: Views, kind: Any) -> None:
    attention = views.translator.translate(TEXT).trace.maps[kind]
    place, pins = {"layer": 1, "head": 2}, list(PINNED)
    alt = describe_pinned_row(attention, 1, 2, PINNED[0], "predicted")
    equal(views("overviewData", kind, place, views.palette), overview(attention, 1, 2, LOOK))
    grid = make_head_grid(attention, 1, 2, "predicted")
    special = tuple(
        [at for at, token in enumerate(tokens) if token in ("<s>", "</s>")]
        for tokens in (attention.rows("predicted"), attention.key_tokens)
    )
    names: dict[str, Any] = {"model": "toy", "follows": attention_name(kind), "special": special, "pins": True}
    expected = heatmap(grid, LOOK, alt, pinned=PINNED, **names)
    equal(views("heatmapData", kind, place, views.palette, pins, "toy"), expected, 2)
    lines = links(attention, LinkOptions(1, 2, (0, 3)), LOOK, "predicted", PINNED, alt)
    equal(views("linksData", kind, place, views.palette, pins, [0, 3]), lines)
    shaded = text(attention, 1, 2, LOOK, "predicted", PINNED, alt)
    equal(views("textData", kind, place, views.palette, pins), shaded)
    assert views("headInWords", kind, place, None) == describe_strongest_head_link(attention, 1, 2, "predicted")


def attention_name(kind: str) -> str:
    return {"encoder": "Encoder self-attention", "decoder": "Decoder self-attention", "cross": "Cross-attention"}[kind]


@pytest.mark.sweep
def test_the_translation_and_its_steps(views: Views) -> None:
    result = views.translator.translate(TEXT)
    cross = result.trace.cross
    assert cross is not None
    best = rank_heads_by_alignment(cross, readings=("predicted",))[0]
    found = views("bestAligning", "cross")
    assert (found["layer"], found["head"]) == (best.layer, best.head)
    assert rounded(views("tokensData", None, 1)) == rounded(token_line_data(result.steps, 1))
    start = PlayerStart(3, "aligning", "2.mean", (best.layer, best.head))
    given = {"id": "7", "step": 3, "aligning": found}
    equal(views("playerData", None, given, views.palette), player(result, start, LOOK, "7"))


@pytest.mark.sweep
def test_the_telling_word_is_that_of_the_page(views: Views) -> None:
    cross = views.translator.translate(TEXT).trace.cross
    assert cross is not None
    for off in ((), ((0, 0), (1, 2)), tuple(np.ndindex(*cross.weights.shape[:2]))):
        words, expected = weigh_words(cross), pick_telling_word(cross, frozenset(off))
        found = views("tellingWord", "cross", [["cross", *place] for place in off])
        if expected is None:
            assert found is None
            continue
        assert words is not None
        assert found == {
            "kind": expected.kind,
            "place": {"layer": expected.layer, "head": expected.head},
            "row": None if expected.row is None else words.rows[expected.row].start,
            "key": None if expected.key is None else words.keys[expected.key].start,
        }


RANDOM_MAPS = """([rows, columns, layers, heads, all]) => all.map((data) => {
  const [queries, keys] = [rows.length, columns.length];
  const flat = Float32Array.from(data);
  const start = (layer, head, query) => ((layer * heads + head) * queries + query) * keys;
  const row = (...place) => flat.subarray(start(...place)).subarray(0, keys);
  return window.tellingWord({ kind: "cross", layers, heads, queries, keys, rows, columns, row });
})"""


@pytest.mark.sweep
def test_the_telling_word_of_random_weights_is_that_of_the_page(views: Views) -> None:
    """Of words, a name in pieces and punctuation, so that every kind is met."""
    chance = np.random.default_rng(1)
    rows = (" Der", " Hund", " von", " An", "na", " sieht", " heute", ",", " es", ".", "</s>")
    columns = (" The", " dog", " of", " An", "na", " sees", " today", ".", "</s>")
    shape = (2, 3, len(rows), len(columns))
    diagonal = np.eye(len(rows), len(columns), dtype=np.float64)
    weights = [
        (own := chance.dirichlet(np.full(shape[-1], 0.2), shape[:-1]) + share * diagonal) / own.sum(-1, keepdims=True)
        for share in np.repeat((0.0, 0.5, 2.0), 40)
    ]
    maps = [
        AttentionMap("cross", one.astype(np.float32), ("<s>", *rows[:-1]), columns, np.ones(shape[2:], bool), rows)
        for one in weights
    ]
    data = [one.weights.ravel().tolist() for one in maps]
    found = views.page.evaluate(RANDOM_MAPS, [rows, columns, *shape[:2], data])
    kinds = set()
    for cross, own in zip(maps, found, strict=True):
        words, expected = weigh_words(cross), pick_telling_word(cross)
        assert words is not None
        assert expected is not None
        kinds.add(expected.kind)
        assert own["kind"] == expected.kind
        assert own["place"] == {"layer": expected.layer, "head": expected.head}
        assert own["row"] == (None if expected.row is None else words.rows[expected.row].start)
    assert {"copied", "back"} <= kinds


@pytest.mark.sweep
def test_the_card_of_every_word(views: Views) -> None:
    result = views.translator.translate(TEXT)
    facts = read_word_facts(views.translator, TEXT, result.target_ids)
    effects = head_effects(views.translator.model, result.source_ids, result.target_ids)
    listed = [
        {"kind": kind, "layer": place[0], "head": place[1], "changes": changes[place].tolist()}
        for kind, changes in effects.changes.items()
        for place in np.ndindex(*changes.shape[:2])
    ]
    explained = {"ranks": facts.lens.ranks.tolist(), "effects": listed}
    cards = views.page.evaluate(CARDS, [TEXT, explained])
    what_is_offered = dict.fromkeys(("why", "open", "chooses"))  # It is the page's, not the word's.
    for step, found in zip(result.steps, cards["explained"], strict=True):
        expected = word_card_data(step, facts, effects.strongest(step.position))
        assert rounded({**found, **what_is_offered}) == rounded({**expected, **what_is_offered})
    assert {one["decided"] for one in cards["waiting"]} == {"Switching off each of 24 heads …"}
    assert not any(one["heads"] for one in cards["waiting"])


WORDS = (
    *("Don't touch the U-Bahn, 3.5 m (or “so”)!", "我昨天在图书馆读了 一本书。", "a... b --c", "", "</s>"),
    "The children's bed; e.g. <b>x</b>",
    "<b>bold</b> 🎉 أين <0x41>",
)


@pytest.mark.sweep
@pytest.mark.skipif("everyday-en-de" not in list_checkpoints(), reason="the checkpoint is not here")
def test_pieces_are_merged_into_the_same_words(views: Views) -> None:
    tokenizers = [Translator.load("everyday-en-de", "cpu").tokenizer, views.translator.tokenizer]
    for tokens in (tokenizer.encode(sentence).tokens for tokenizer in tokenizers for sentence in WORDS):
        found = views.page.evaluate("(tokens) => window.mergedWords(tokens)", list(tokens))
        expected = [
            (join_word(tokens[group.start : group.stop]), group.start) for group in group_tokens_into_words(tokens)
        ]
        assert [(one["text"], one["from"]) for one in found] == expected


@pytest.mark.sweep
def test_a_beam_tree(views: Views) -> None:
    tree = views.translator.search(TEXT, 3)
    ids = tree.best[1].token_ids
    call = "([text, ids]) => window.treeData(window.running.translate(text, { beam: 3 }).tree, ids)"
    found, expected = views.page.evaluate(call, [TEXT, list(ids)]), beam_tree_data(tree, ids)
    last = tree.nodes[-1].position  # the fate of what is left at the length limit is open
    for data in (found, expected):
        data["nodes"] = [node for node in data["nodes"] if node["column"] < last]
    assert found == expected


@pytest.mark.sweep
def test_a_long_map_is_pooled_alike(disk: Page, tmp_path: Path) -> None:
    long = Views(disk, tmp_path, max_length=400)
    sentence = " ".join(word for _ in range(10) for word in toy.WORDS)
    found = long.translator.force(sentence, "der Hund").trace.maps["encoder"]
    assert max(found.mask.shape) > 128
    call = lambda name, kind, *rest: long.page.evaluate(CALL, [sentence, {"target": [5]}, name, kind, list(rest)])  # noqa: E731
    equal(call("overviewData", "encoder", {"layer": 0, "head": 0}, long.palette), overview(found, 0, 0, LOOK))
