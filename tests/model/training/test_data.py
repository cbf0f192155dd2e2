"""Batches: within their budget, every pair once an epoch, the same for the same seed, and resumable anywhere."""

from __future__ import annotations

import lzma
from array import array
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attenscope.network.config import BOS_ID, EOS_ID, PAD_ID
from attenscope.training.data import (
    Batches,
    TrainingPhase,
    compute_pair_frequencies,
    differs_from_dev,
    draw_pairs,
    read_pair_table,
    read_pairs,
    read_rewritten_pairs,
)

LENGTHS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=60)


def batches_of(lengths: list[tuple[int, int]], tokens: int = 40, longest: int = 10, seed: int = 1) -> Batches:
    """Pairs of made-up ids, each of two sides closed by </s>; a length of 0 is an empty line."""
    sides = [[[10 + row] * pair[side] + [EOS_ID] for row, pair in enumerate(lengths)] for side in (0, 1)]
    return Batches(sides[0], sides[1], tokens, longest, seed)


@given(LENGTHS.filter(lambda pairs: any(0 < s < 10 and 0 < t < 10 for s, t in pairs)), st.integers(0, 3))
def test_every_pair_once_an_epoch_within_the_budget(lengths: list[tuple[int, int]], epoch: int) -> None:
    batches = batches_of(lengths)
    kept = sum(0 < s < 10 and 0 < t < 10 for s, t in lengths)
    found = batches.epoch(epoch)
    assert sorted(np.concatenate(found).tolist()) == list(range(kept))
    for rows in found:
        longest = int(batches.lengths[rows].max())
        assert len(rows) * longest <= 40
        assert batches.lengths[rows].max() <= 10


def test_a_pair_longer_than_the_budget_is_a_batch_of_its_own() -> None:
    assert sorted(map(len, batches_of([(9, 9), (1, 1), (1, 1)], tokens=5).epoch(0))) == [1, 2]


def test_like_lengths_stand_together() -> None:
    random = np.random.default_rng(0)
    lengths = [(int(n), int(n)) for n in random.integers(1, 50, 500)]
    batches = batches_of(lengths, tokens=500, longest=60)
    real = sum(int(batches.lengths[rows, 0].sum()) for rows in batches.epoch(0))
    width = sum(len(rows) * int(batches.lengths[rows, 0].max()) for rows in batches.epoch(0))
    assert real / width > 0.93


def test_an_epoch_is_a_function_of_seed_and_number() -> None:
    lengths = [(1 + i % 8, 1 + i % 5) for i in range(50)]
    orders = {
        (seed, epoch): [rows.tolist() for rows in batches_of(lengths, seed=seed).epoch(epoch)]
        for seed in (1, 2)
        for epoch in (0, 1)
    }
    assert [rows.tolist() for rows in batches_of(lengths, seed=2).epoch(1)] == orders[2, 1]
    assert len({str(order) for order in orders.values()}) == 4


@given(st.integers(0, 60))
def test_going_on_in_the_middle_gives_the_same_continuation(done: int) -> None:
    lengths = [(1 + i % 8, 1 + i % 5) for i in range(40)]
    whole = list(islice(batches_of(lengths).steps(0), 70))
    rest = list(islice(batches_of(lengths).steps(done), 70 - done))
    assert [(epoch, rows.tolist()) for epoch, rows in rest] == [(epoch, rows.tolist()) for epoch, rows in whole[done:]]
    assert whole[-1][0] >= 3


def test_batch_by_hand() -> None:
    batches = Batches([[5, 6, 7, EOS_ID], [8, EOS_ID]], [[9, EOS_ID], [10, 11, EOS_ID]], 100, 10, 1)
    batch = batches.batch(np.array([0, 1]))
    assert batch.source.tolist() == [[5, 6, 7, EOS_ID], [8, EOS_ID, PAD_ID, PAD_ID]]
    assert batch.target_in.tolist() == [[BOS_ID, 9, PAD_ID], [BOS_ID, 10, 11]]
    assert batch.target_out.tolist() == [[9, EOS_ID, PAD_ID], [10, 11, EOS_ID]]
    assert batch.tokens == 5


def test_nothing_left_to_train_on_is_said() -> None:
    with pytest.raises(ValueError, match="No sentence pair is left to train on"):
        batches_of([(0, 3), (3, 0), (50, 3)])


def write(folder: Path, **texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    for language, text in texts.items():
        (folder / f"train.{language}").write_bytes(text.encode())
    return folder


def test_lines_of_both_sides_belong_together(tmp_path: Path) -> None:
    one = write(tmp_path / "one", en="a\nb\n", de="x\ny\n")
    two = write(tmp_path / "two", en="c\u2028c\r\nd", de="z\r\n狗")  # no newline at the end; U+2028 is no line end
    assert read_pairs([one, two], "en", "de", "train") == [("a", "x"), ("b", "y"), ("c\u2028c", "z"), ("d", "狗")]


def test_line_counts_that_differ_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, en="a\nb\nc\n", de="x\n")
    with pytest.raises(ValueError, match="3 en lines, but 1 de lines; line N of one side must translate line N"):
        read_pairs([folder], "en", "de", "train")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no .*train\.de: a data folder holds train\.en and train\.de"):
        read_pairs([write(tmp_path, en="a\n")], "en", "de", "train")


def test_a_mixture_gives_each_pair_what_its_folder_has() -> None:
    assert compute_pair_frequencies({"b": 0.5, "c": 0}, ["a", "b", "c"], [2, 1, 3]).tolist() == [1, 1, 0.5, 0, 0, 0]
    with pytest.raises(ValueError, match=r"mixture names c, d, but the folders of --data are a, b\."):
        compute_pair_frequencies({"d": 1, "a": 1, "c": 2}, ["a", "b"], [1, 1])


def test_a_whole_number_gives_a_pair_so_often_and_a_part_the_chance_of_once_more() -> None:
    random = np.random.default_rng(0)
    assert draw_pairs(np.array([1.0, 0.0, 2.0, 3.0]), random).tolist() == [0, 2, 2, 3, 3, 3]
    counts = np.bincount(draw_pairs(np.repeat([0.33, 1.5], 10_000), random), minlength=20_000)
    assert set(counts[:10_000]) == {0, 1}
    assert set(counts[10_000:]) == {1, 2}
    assert counts[:10_000].mean() == pytest.approx(0.33, abs=0.02)
    assert counts[10_000:].mean() == pytest.approx(1.5, abs=0.02)


def mixed(switch: int) -> Batches:
    """40 pairs: half of the first ten, twice the next ten, all others; then those others alone."""
    lengths = [(1 + i % 8, 1 + i % 5) for i in range(40)]
    sides = [[[10 + row] * pair[side] + [EOS_ID] for row, pair in enumerate(lengths)] for side in (0, 1)]
    phases = [
        TrainingPhase(0, np.repeat([0.5, 2, 1], [10, 10, 20])),
        TrainingPhase(switch, np.repeat([0.0, 1], [20, 20])),
    ]
    return Batches(sides[0], sides[1], 40, 10, 1, phases)


def test_an_epoch_of_a_mixture_draws_its_part_anew() -> None:
    counts = [np.bincount(np.concatenate(mixed(100).epoch(number)), minlength=40) for number in range(2)]
    for one in counts:
        assert 0 < one[:10].sum() < 10
        assert one[10:].tolist() == [2] * 10 + [1] * 20
    assert counts[0].tolist() != counts[1].tolist()
    assert sorted(np.concatenate(mixed(100).epoch(0, phase=1)).tolist()) == list(range(20, 40))


@pytest.mark.parametrize("switch", [0, 1, 7, 15, 25])
def test_a_switch_of_mixtures_breaks_an_epoch_off_and_resumes_exactly(switch: int) -> None:
    whole = [(epoch, rows.tolist()) for epoch, rows in islice(mixed(switch).steps(0), 40)]
    assert all(min(rows) >= 20 for _, rows in whole[switch:])
    if switch > 0:
        assert whole[:switch] == [(epoch, rows.tolist()) for epoch, rows in islice(mixed(99).steps(0), switch)]
        assert whole[switch][0] == whole[switch - 1][0] + 1
    for done in range(35):
        rest = islice(mixed(switch).steps(done), 40 - done)
        assert [(epoch, rows.tolist()) for epoch, rows in rest] == whole[done:]


def test_phases_count_the_pairs_before_any_is_left_out() -> None:
    often = np.array([0.0, 1.0, 1.0])
    batches = Batches([[5, 3], [5] * 20, [6, 3]], [[5, 3]] * 3, 40, 10, 1, [TrainingPhase(0, often)])
    assert [batches.sources[i] for rows in batches.epoch(0) for i in rows] == [[6, 3]]
    with pytest.raises(ValueError, match="the mixture leaves all out"):
        Batches([[5, 3], [5] * 20], [[5, 3]] * 2, 40, 10, 1, [TrainingPhase(0, often[1:]), TrainingPhase(9, often[:2])])


def test_a_table_of_pairs_names_the_line_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "written.tsv"
    path.write_text("Wer?\tWho?\n Das Tier \t the animal\n", encoding="utf-8")
    assert read_pair_table(path) == [("Wer?", "Who?"), ("Das Tier", "the animal")]
    for line in ("no tab", "\tno source", "no target\t ", "one\ttwo\tthree", ""):
        path.write_text(f"Wer?\tWho?\n{line}\nUnd?\tAnd?\n", encoding="utf-8")
        with pytest.raises(ValueError, match=r"Line 2 of .*written\.tsv is no pair"):
            read_pair_table(path)


def test_rewritten_lines_take_their_source_from_the_folder_and_stay_the_reference_where_none_stands(
    tmp_path: Path,
) -> None:
    texts = {"a": [("one", "eins"), ("two", "zwei")], "b": [("three", "drei")]}
    table = "b\t1\tDrei!\na\t2\t\n"
    plain, packed = tmp_path / "rewritten.tsv", tmp_path / "rewritten.tsv.xz"
    plain.write_text(table, encoding="utf-8")
    packed.write_bytes(lzma.compress(table.encode()))
    for path in (plain, packed):
        assert read_rewritten_pairs(path, texts) == [("three", "Drei!"), ("two", "zwei")]
    for line in ("a\t3\tdrei", "a\t0\t", "c\t1\t", "a\tone\t", "a\t1", "a\t1\tx\ty", ""):
        plain.write_text(f"a\t1\t\n{line}\nb\t1\t\n", encoding="utf-8")
        with pytest.raises(ValueError, match=r"Line 2 of .*rewritten\.tsv is no rewritten line"):
            read_rewritten_pairs(plain, texts)


@pytest.mark.parametrize(
    ("source", "apart"),
    [
        ("TOM\N{RIGHT SINGLE QUOTATION MARK}s dog - barks?", False),
        ("Tom's old dog barks.", False),
        ("Tom's dog sleeps.", False),
        ("Tom's dog.", False),
        ("Why?", False),
        ("Who?", True),  # two sentences of one word
        ("Tom's old dog barks loudly.", True),
        ("Dog Tom's barks.", True),  # two words changed
        ("Bonjour.", True),
    ],
)
def test_a_source_one_word_from_a_dev_sentence_is_almost_that(source: str, apart: bool) -> None:
    assert differs_from_dev([source], ["Tom's dog barks.", "Why?"]).tolist() == [apart]


WORDS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4).map(tuple)


@given(WORDS, WORDS)
def test_almost_the_same_is_an_edit_distance_in_words_of_one(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    edited = {one[:at] + one[at + 1 :] for at in range(len(one))}
    edited |= {(*one[:at], word, *one[at:]) for at in range(len(one) + 1) for word in "abc"}
    if len(one) > 1:
        edited |= {(*one[:at], word, *one[at + 1 :]) for at in range(len(one)) for word in "abc"}
    almost = other == one or other in edited
    assert differs_from_dev([" ".join(other)], [" ".join(one)]).tolist() == [not almost]


def test_what_a_phase_does_not_use_changes_nothing_in_it() -> None:
    """So that the text of a later phase may still be another when training has begun."""
    lengths = [(1 + i % 8, 1 + i % 5) for i in range(60)]
    sides = [[[10 + row] * pair[side] + [EOS_ID] for row, pair in enumerate(lengths)] for side in (0, 1)]

    def begun(later: int) -> Batches:
        phases = [
            TrainingPhase(0, np.repeat([0.5, 2, 0], [10, 10, later])),
            TrainingPhase(9, np.repeat([0.0, 1], [20, later])),
        ]
        return Batches(sides[0][: 20 + later], sides[1][: 20 + later], 40, 10, 1, phases)

    one, other = begun(20), begun(40)
    assert one.texts()[0] == other.texts()[0]
    assert one.texts()[1] != other.texts()[1]
    for (_, rows), (_, others) in islice(zip(one.steps(0), other.steps(0), strict=True), 9):
        assert rows.tolist() == others.tolist()


def test_the_hash_of_a_text_is_of_its_ids_and_of_where_they_are() -> None:
    """Another id, the same ids cut elsewhere, and sides or pairs in the other order are other texts."""
    pairs = [([5, 6, 3], [7, 3]), ([8, 3], [9, 6, 3])]
    others = [
        [([5, 7, 3], [7, 3]), pairs[1]],
        [([5, 6], [3, 7, 3]), pairs[1]],
        [pairs[0][::-1], pairs[1]],
        pairs[::-1],
    ]
    found = {batches_of_ids(one).texts() for one in [pairs, *others]}
    assert len(found) == 5
    as_arrays = [(array("i", source), array("i", target)) for source, target in pairs]
    assert batches_of_ids(as_arrays).texts() == batches_of_ids(pairs).texts()


def batches_of_ids(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Batches:
    return Batches([source for source, _ in pairs], [target for _, target in pairs], 40, 10, 1)
