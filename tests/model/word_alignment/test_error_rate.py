"""The error rate against the paper's equations worked by hand, links read off attention, and the gold that ships."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attenscope.analysis.heads import ALIGNMENT_READINGS
from attenscope.checkpoint.load import CHECKPOINTS_FOLDER, find_checkpoint_folder, read_checkpoint_config
from attenscope.cli.heads import describe_alignment
from attenscope.text.words import split_words
from attenscope.translate import Translator
from attenscope.viz.figures.heatmap import ROW_LABEL_NAMES
from attenscope.word_alignment.gold import (
    GOLD_FOLDER,
    LINKS_FILE,
    GoldError,
    GoldPair,
    LinkCounts,
    PairLinks,
    combine_annotation_passes,
    compare_annotation_passes,
    count_links,
    find_bundled_gold_folder,
    read_annotation_passes,
    read_gold,
)
from attenscope.word_alignment.measure import (
    ALIGNMENT_FILE,
    AlignmentError,
    derive_links_from_attention,
    make_diagonal_links,
    match_pieces_to_words,
    measure_alignment,
    read_alignment_rates,
)
from tests import toy

GOLD = GOLD_FOLDER / "en-de"


def pair_of(source: str, target: str, links: str = "") -> GoldPair:
    words = [tuple(word.strip() for word in split_words(side)) for side in (source, target)]
    return GoldPair(source, target, words[0], words[1], PairLinks.read(links))


def test_a_hand_worked_example() -> None:
    """A = {00, 11, 21}, S = {00, 12}, P = S and {11}: AER = 1 - (1 + 2) / (3 + 2)."""
    links, sure, possible = (np.zeros((3, 3), dtype=bool) for _ in range(3))
    links[[0, 1, 2], [0, 1, 1]] = True
    sure[[0, 1], [0, 2]] = True
    possible[[0, 1, 1], [0, 2, 1]] = True
    one = count_links(links[None], sure, possible)
    assert [int(count[0]) for count in one] == [1, 2, 3]
    counts = LinkCounts.from_pairs([one], np.array([2]))
    assert counts.aer()[0] == pytest.approx(1 - 3 / 5)
    assert counts.precision()[0] == pytest.approx(2 / 3)
    assert counts.recall()[0] == pytest.approx(1 / 2)
    assert [end[0] for end in counts.compute_bootstrap_interval()] == pytest.approx([0.4, 0.4])


def test_rates_equal_sets_of_links_counted_one_by_one() -> None:
    random = np.random.default_rng(0)
    columns, sures, expected = [], [], [0, 0]
    for _ in range(40):
        found, possible = random.random((2, 5, 6)) < 0.3
        sure = possible & (random.random((5, 6)) < 0.5)
        sets = [set(zip(*np.nonzero(one), strict=True)) for one in (found, sure, possible)]
        expected[0] += len(sets[0] & sets[1]) + len(sets[0] & sets[2])
        expected[1] += len(sets[0]) + len(sets[1])
        columns.append(count_links(found[None], sure, possible))
        sures.append(len(sets[1]))
    counts = LinkCounts.from_pairs(columns, np.array(sures))
    assert counts.aer()[0] == pytest.approx(1 - expected[0] / expected[1])
    low, high = counts.compute_bootstrap_interval()
    assert low[0] < counts.aer()[0] < high[0]


def test_a_choice_on_one_half_is_measured_on_the_other() -> None:
    """Alignment 0 is right in even pairs alone, 1 in odd ones: whichever is chosen, it is wrong on the other half."""
    right = np.array([[1, 0], [0, 1]] * 4)
    counts = LinkCounts(right, right, np.ones((8, 2), dtype=int), np.ones(8, dtype=int))
    assert counts.compute_held_out_error_rate() == 1.0
    assert counts.aer().tolist() == [0.5, 0.5]


def test_one_pair_has_no_other_half_to_choose_on(toy_translator: Translator, tmp_path: Path) -> None:
    for name, text in (("source.txt", "the dog sees a cat."), ("target.txt", "der Hund sieht ein Katze.")):
        (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
    (tmp_path / LINKS_FILE).write_text("0-0 1-1 2-2\n", encoding="utf-8")
    found = measure_alignment(toy_translator, read_gold(tmp_path))
    assert found.pairs == 1
    assert math.isnan(found.held_out)
    *_, diagonal, held_out = describe_alignment(found).splitlines()
    assert diagonal.endswith("%")
    assert held_out.split() == ["best", "head,", "held", "out", "–"]


def test_pieces_are_joined_to_the_words_that_they_are_of(toy_translator: Translator) -> None:
    tokenizer = toy_translator.tokenizer
    for text in ("the old dog sees a cat.", "Tom can't  see 漢字, ok…"):
        words = [word.strip() for word in split_words(text) if word.strip()]
        found = match_pieces_to_words(tokenizer, text, words)
        assert found.shape == (len(tokenizer.encode(text).ids) - 1, len(words))
        assert found.any(0).all()
        spelled = text.encode()
        for (start, end), row in zip(tokenizer.spans(text), found, strict=True):
            piece = spelled[start:end].decode(errors="ignore").strip()
            assert all(piece in words[at] or words[at] in piece for at in np.flatnonzero(row))
    with pytest.raises(GoldError, match="“zebra” is not in"):
        match_pieces_to_words(tokenizer, "the dog", ["zebra"])


def test_links_of_both_readings_are_the_strongest_keys(toy_translator: Translator) -> None:
    pair = pair_of("the old dog sees a cat.", "der alte Hund sieht ein Katze.")
    translation = toy_translator.force(pair.source, pair.target)
    cross = translation.trace.maps["cross"]
    layers, heads = cross.weights.shape[:2]
    found = derive_links_from_attention(translation, pair, toy_translator.tokenizer)
    assert found.shape == (2, layers * (heads + 1) + 1, len(pair.source_words), len(pair.target_words))
    sources, targets = (
        match_pieces_to_words(toy_translator.tokenizer, text, words)
        for text, words in ((pair.source, pair.source_words), (pair.target, pair.target_words))
    )
    for place, (layer, head) in ((0, (0, 0)), (heads + 2, (1, 1))):
        for reading, shift in zip(ALIGNMENT_READINGS, (0, 1), strict=True):
            expected = np.zeros(found.shape[2:], dtype=bool)
            for piece in range(len(targets)):
                key = int(cross.weights[layer, head, piece + shift, :-1].argmax())
                expected |= sources[key][:, None] & targets[piece]
            assert (found[ALIGNMENT_READINGS.index(reading), place] == expected).all()
    assert make_diagonal_links(pair).sum() == len(pair.target_words)


def test_the_gold_is_made_of_its_passes_by_the_rule_and_its_text_says_how_far_they_agree() -> None:
    passes, gold = read_annotation_passes(GOLD), read_gold(GOLD)
    assert [pair.links for pair in gold.pairs] == [
        combine_annotation_passes(*both) for both in zip(*passes, strict=True)
    ]
    assert len(gold.pairs) == 150
    agreed = compare_annotation_passes(*passes)
    said = " ".join((GOLD / "README.md").read_text(encoding="utf-8").split())
    sure = sum(len(pair.links.sure) for pair in gold.pairs)
    only_possible = sum(len(pair.links.possible) for pair in gold.pairs) - sure
    for expected in (
        f"the passes share {agreed.any:.1%}",
        f"of the sure ones {agreed.sure:.1%}; in {agreed.identical} of {agreed.pairs} pairs",
        f"{sure:,} sure links and {only_possible:,} that are only possible",
    ):
        assert expected in said
    one, other = PairLinks.read("0-0 1?1"), PairLinks.read("0-0 1-1 2?2")
    assert compare_annotation_passes([one], [other]).any == pytest.approx(4 / 5)
    assert compare_annotation_passes([one], [other]).sure == pytest.approx(2 / 3)
    assert combine_annotation_passes(one, other).text == "0-0 1?1 2?2"


def test_bad_gold_is_refused_with_its_line(tmp_path: Path) -> None:
    for name, text in (("source.txt", "a dog\na cat\n"), ("target.txt", "ein Hund\neine Katze\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(GoldError, match=r"no file .*links\.txt"):
        read_gold(tmp_path)
    for links, said in (
        ("0-0\n", r"source\.txt 2, target\.txt 2, links\.txt 1"),
        ("0-0\n0-0 x\n", r"line 2: “x” is no link"),
        ("0-0\n0-2\n", r"line 2: the link 0-2 leads out of a pair of 2 and 2 words"),
    ):
        (tmp_path / LINKS_FILE).write_text(links, encoding="utf-8")
        with pytest.raises(GoldError, match=said):
            read_gold(tmp_path)


def test_a_model_is_measured_kept_and_read_back(toy_translator: Translator, tmp_path: Path) -> None:
    pairs = toy.sentences(12, seed=3)
    for name, side in (("source.txt", 0), ("target.txt", 1)):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    words = [len(split_words(pair[0])) for pair in pairs]
    (tmp_path / LINKS_FILE).write_text("".join(" ".join(f"{at}-{at}" for at in range(one)) + "\n" for one in words))
    found = measure_alignment(toy_translator, read_gold(tmp_path))
    assert found.pairs == 12
    assert found.diagonal == 0.0  # of a language pair in which every word stays at its place
    assert found.best("head").aer == min(one.aer for one in found.rates if one.part == "head")
    assert all(one.low <= one.aer <= one.high for one in found.rates)
    found.write(tmp_path)
    name, own = toy_translator.name, toy_translator.checkpoint.hash
    assert read_alignment_rates(tmp_path, name, own) == found
    with pytest.raises(AlignmentError, match="the model here is other with 000"):
        read_alignment_rates(tmp_path, "other", "000")
    (tmp_path / ALIGNMENT_FILE).write_text(json.dumps({"format": "attenscope-alignment-1", "rates": 3}))
    with pytest.raises(AlignmentError, match="is damaged"):
        read_alignment_rates(tmp_path, name, own)
    with pytest.raises(AlignmentError, match="python -m model align"):
        read_alignment_rates(tmp_path / "nowhere", name, own)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in CHECKPOINTS_FOLDER.glob(f"*/{ALIGNMENT_FILE}")))
def test_released_rates_are_of_the_released_model_and_gold(name: str) -> None:
    folder = find_checkpoint_folder(name)
    weights = read_checkpoint_config(folder)["sha256"]["model.safetensors"][:12]
    found = read_alignment_rates(folder, name, weights)
    assert found.gold_sha256 == read_gold(GOLD).sha256
    assert found.pairs + found.left_out == 150
    assert len({(one.part, one.layer, one.head, one.reading) for one in found.rates}) == len(found.rates)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in CHECKPOINTS_FOLDER.glob(f"*/{ALIGNMENT_FILE}")))
def test_the_documents_have_the_rates(name: str) -> None:
    folder = find_checkpoint_folder(name)
    found = read_alignment_rates(folder, name, read_checkpoint_config(folder)["sha256"]["model.safetensors"][:12])
    head, layer, every = (found.best(part) for part in ("head", "layer", "all"))
    read = f"{head.layer + 1}.{head.head + 1}, {ROW_LABEL_NAMES[head.reading]}"
    row = f"| `{name}` | {read} | {head.aer:.1%} | {layer.aer:.1%} | {every.aer:.1%} |"
    text = (CHECKPOINTS_FOLDER.parent / "docs" / "head-measures.md").read_text(encoding="utf-8")
    assert row in text, row
    assert f"alone gives {found.diagonal:.1%}." in text


def test_every_released_model_of_the_golds_languages_has_rates() -> None:
    for path in CHECKPOINTS_FOLDER.glob("*/config.json"):
        card = json.loads(path.read_text(encoding="utf-8"))["card"]
        if find_bundled_gold_folder(card.get("source_language", ""), card.get("target_language", "")):
            assert (path.parent / ALIGNMENT_FILE).is_file(), path.parent.name
    assert find_bundled_gold_folder("en", "xx") is None


def test_a_possible_link_may_be_written_p() -> None:
    assert PairLinks.read("1p2") == PairLinks.read("1?2") == replace(PairLinks.read("1-2"), sure=frozenset())
    assert re.fullmatch(r"1\?2", PairLinks.read("1p2").text)
