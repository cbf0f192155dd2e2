"""Experiments on a running model: what each does, on cached steps too, and that nobody else notices."""

from __future__ import annotations

import threading
from itertools import permutations

import numpy as np
import pytest
import torch

from attenscope.network.abstract_model import Side
from attenscope.network.hooks import hook_outputs, record_outputs
from attenscope.network.layers import DecoderCache, PositionalEncoding, make_sinusoidal_table
from attenscope.positions.analysis import compute_expected_overlap, score_positional_heads
from attenscope.positions.experiments import (
    POSITION_MOVES,
    ExperimentError,
    ExperimentSides,
    PositionExperiment,
    apply_position_experiment,
    compute_log_prob_curve,
    compute_new_positions,
    compute_replacement_position_rows,
    run_experiment,
)
from attenscope.positions.table import read_embedding_parts
from attenscope.translate import Translator
from tests.toy import config, random_model

SENTENCE = "the old dog sees a red house and the cat today."
SOURCE = torch.tensor([[5, 6, 7, 8, 9, 3]])
TARGET = torch.tensor([[2, 11, 12, 13, 14]])
EXPERIMENTS = {
    "remove": PositionExperiment("remove"),
    "shift": PositionExperiment("shift", 5),
    "reverse": PositionExperiment("reverse"),
    "shuffle": PositionExperiment("shuffle", 3),
    "stretch": PositionExperiment("stretch", 1.5),
    "swap": PositionExperiment("swap", pair=(0, 3)),
    "beyond": PositionExperiment("beyond", 1000),
}


def test_every_move_is_tried_here() -> None:
    assert set(EXPERIMENTS) == set(POSITION_MOVES)


@pytest.mark.parametrize(
    ("experiment", "expected"),
    [
        (PositionExperiment("shift", -2), [-2, -1, 0, 1, 2, 3]),
        (PositionExperiment("stretch", 0.5), [0, 0.5, 1, 1.5, 2, 2.5]),
        (PositionExperiment("reverse"), [3, 2, 1, 0, 4, 5]),
        (PositionExperiment("swap", pair=(1, 3)), [0, 3, 2, 1, 4, 5]),
        (PositionExperiment("beyond", 600), [600, 601, 602, 603, 604, 605]),
    ],
)
def test_new_positions_by_hand(experiment: PositionExperiment, expected: list[float]) -> None:
    """A sentence of 4 pieces in 6 slots: what lies behind it keeps its place when the sentence is rearranged."""
    assert compute_new_positions(experiment, 4, 6).tolist() == expected


def test_a_shuffle_is_a_permutation_of_the_sentence_and_the_same_for_a_seed() -> None:
    first = compute_new_positions(PositionExperiment("shuffle", 1), 9, 12)
    assert sorted(first[:9]) == list(range(9))
    assert first[9:].tolist() == [9, 10, 11]
    assert first.tolist() == compute_new_positions(PositionExperiment("shuffle", 1), 9, 12).tolist()
    assert first.tolist() != compute_new_positions(PositionExperiment("shuffle", 2), 9, 12).tolist()


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_pad_row"])
def test_rows_are_those_of_the_new_positions(kind: str) -> None:
    encoding = PositionalEncoding(config(max_length=20, positions=kind))
    added = encoding.make_added_positions(encoding.rows, 1.0)
    rows = compute_replacement_position_rows(added, PositionExperiment("beyond", 30), 4)
    assert rows.shape == added.rows.shape == (20, 64)
    torch.testing.assert_close(rows, make_sinusoidal_table(50, 64)[30:].float())
    assert not compute_replacement_position_rows(added, PositionExperiment("remove"), 4).any()
    torch.testing.assert_close(compute_replacement_position_rows(added, PositionExperiment("shift", 0), 4), added.rows)
    keep = torch.tensor([[True, True, False]])
    with added.replace_rows(rows):
        seen = encoding(keep)[0]
    torch.testing.assert_close(seen[:2], rows[:2])
    torch.testing.assert_close(seen[2], rows[2] if kind == "sinusoidal" else torch.zeros(64))  # PAD's own row stays


def test_learned_rows_lie_between_their_neighbours_and_end_where_the_table_ends() -> None:
    encoding = PositionalEncoding(config(max_length=10, positions="learned"))
    table, added = encoding.table.detach(), encoding.make_added_positions(encoding.rows, 1.0)
    half = compute_replacement_position_rows(added, PositionExperiment("stretch", 0.5), 4)
    torch.testing.assert_close(half[1], (table[0] + table[1]) / 2)
    torch.testing.assert_close(half[2], table[1])
    for experiment in (PositionExperiment("shift", 7), PositionExperiment("shift", -1)):
        with pytest.raises(ExperimentError, match="its table ends at position 9"):
            compute_replacement_position_rows(added, experiment, 4)


def test_a_swap_outside_the_sentence_is_refused() -> None:
    with pytest.raises(ExperimentError, match="positions 1 to 5 can be swapped; 9 is outside"):
        compute_new_positions(PositionExperiment("swap", pair=(2, 8)), 5, 64)


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_pad_row", "learned"])
@pytest.mark.parametrize("move", [move for move in POSITION_MOVES if move != "beyond"])
def test_cached_steps_see_the_same_positions_as_a_full_pass(kind: str, move: str) -> None:
    model, experiment = random_model(positions=kind), EXPERIMENTS[move]
    with torch.inference_mode():
        plain = model(SOURCE, TARGET)
        with apply_position_experiment(model, experiment, SOURCE.shape[1], TARGET.shape[1]):
            whole = model(SOURCE, TARGET)
            memory, cache = model.encode(SOURCE), DecoderCache(model.config.decoder_layers)
            steps = [model.decode(TARGET[:, at : at + 1], memory, None, cache=cache) for at in range(TARGET.shape[1])]
            stepped = model.generator(torch.cat(steps, 1))
        torch.testing.assert_close(stepped, whole, atol=1e-5, rtol=0)
        assert (whole - plain).abs().max() > 1e-3
        assert torch.equal(model(SOURCE, TARGET), plain)
    assert not any(module._forward_hooks for module in model.modules())


def test_removing_the_encoding_makes_the_encoder_blind_to_order() -> None:
    model = random_model()
    turned = SOURCE.flip(1)
    with torch.inference_mode(), apply_position_experiment(model, PositionExperiment("remove"), 6, 5):
        torch.testing.assert_close(model.encode(turned), model.encode(SOURCE).flip(1), atol=1e-5, rtol=0)
    with torch.inference_mode():
        assert (model.encode(turned) - model.encode(SOURCE).flip(1)).abs().max() > 1e-2


def test_each_side_alone() -> None:
    model = random_model()
    with torch.inference_mode():
        memory = model.encode(SOURCE)
        with apply_position_experiment(model, PositionExperiment("shift", 9, sides="target"), 6, 5):
            assert torch.equal(model.encode(SOURCE), memory)
            shifted = model.target_embedding(TARGET)
        assert not torch.equal(shifted, model.target_embedding(TARGET))
        with apply_position_experiment(model, PositionExperiment("shift", 9, sides="source"), 6, 5):
            assert not torch.equal(model.encode(SOURCE), memory)


def test_a_shift_of_nothing_changes_nothing(toy_translator: Translator) -> None:
    before = toy_translator.translate(SENTENCE)
    result = run_experiment(toy_translator, before, PositionExperiment("shift", 0))
    assert result.after.text == before.text
    assert result.log_prob_drop == pytest.approx(0, abs=1e-5)
    for kind, one in result.forced_trace.maps.items():
        np.testing.assert_allclose(one.weights, before.trace.maps[kind].weights, atol=1e-5)
        assert one.query_tokens == before.trace.maps[kind].query_tokens


def test_a_learned_translation_breaks_without_positions(toy_translator: Translator) -> None:
    before = toy_translator.translate(SENTENCE)
    result = run_experiment(toy_translator, before, PositionExperiment("remove"))
    assert result.after.text != before.text
    assert result.log_prob_drop > 0.5
    assert toy_translator.translate(SENTENCE).text == before.text
    curve = compute_log_prob_curve(toy_translator, before, PositionExperiment("shift"), [0, 20])
    assert curve[0] == pytest.approx(before.log_prob / len(before.steps), abs=1e-5)
    assert curve[1] < curve[0]


def test_a_second_visitor_sees_the_untouched_model(toy_translator: Translator) -> None:
    """One thread experiments while another translates, both at work at the same time on the one model."""
    before = toy_translator.translate(SENTENCE)
    inside, seen = threading.Event(), threading.Event()
    changed: list[bool] = []

    def experimenter() -> None:
        lengths = len(before.source_ids), len(before.target_ids)
        with apply_position_experiment(toy_translator.model, PositionExperiment("remove"), *lengths):
            inside.set()
            changed.extend(toy_translator.translate(SENTENCE).text != before.text for _ in range(5))
            seen.wait(60)

    thread = threading.Thread(target=experimenter)
    thread.start()
    assert inside.wait(60)
    for _ in range(5):
        visitor = toy_translator.translate(SENTENCE)
        assert visitor.text == before.text
        assert visitor.log_prob == before.log_prob
        for kind, one in visitor.trace.maps.items():
            assert np.array_equal(one.weights, before.trace.maps[kind].weights)
    seen.set()
    thread.join(60)
    assert changed == [True] * 5


def test_the_parts_of_an_embedding_add_up(toy_translator: Translator) -> None:
    before = toy_translator.translate(SENTENCE)
    sides: dict[Side, tuple[int, ...]] = {"source": before.source_ids, "target": before.target_ids}
    for side, ids in sides.items():
        with record_outputs(toy_translator.model, f"{side}_embedding.stream") as read:
            parts = read_embedding_parts(toy_translator, before, side)
        np.testing.assert_array_equal(parts.total, read[f"{side}_embedding.stream"][0].numpy())
        assert parts.tokens.shape == (len(ids), 64) == parts.encoding.shape
        assert len(parts.pieces) == len(ids)
        np.testing.assert_allclose(parts.tokens + parts.encoding, parts.total, atol=1e-6)
        np.testing.assert_allclose(parts.encoding, make_sinusoidal_table(len(ids), 64), atol=1e-6)
        assert parts.scale == 8
        assert ((parts.share > 0) & (parts.share < 1)).all()


class Planted:
    """Replaces two heads of the first encoder layer: head 1 looks at the previous piece, head 2 at one word."""

    def __init__(self, translator: Translator, word: int) -> None:
        self.weights = translator.model.get_submodule("encoder.layers.0.self_attention.weights")
        self.ids = translator.model.source_embedding
        self.word = word

    def functions(self) -> dict:
        seen: dict[str, torch.Tensor] = {}

        def weights(output: torch.Tensor) -> torch.Tensor:
            size = output.shape[-1]
            planted = output.clone()
            planted[:, 0] = torch.eye(size).roll(-1, 1)
            at = (seen["ids"] == self.word).float()
            planted[:, 1] = (at / at.sum(-1, keepdim=True))[:, None, :].expand(-1, size, -1)
            return planted

        def tokens(output: torch.Tensor) -> None:
            table = self.ids.table.weight * self.ids.scale
            seen["ids"] = torch.cdist(output, table[None].expand(len(output), -1, -1)).argmin(-1)

        return {self.weights: weights, self.ids.tokens: tokens}


def test_planted_heads_are_told_apart(toy_translator: Translator) -> None:
    before = toy_translator.translate("the old dog sees a red house today.")
    with hook_outputs(Planted(toy_translator, before.source_ids[2]).functions()):
        found = score_positional_heads(toy_translator, before)
    ranked = found.scores
    scores = {(one.kind, one.layer, one.head): one for one in ranked}
    assert scores["encoder", 0, 0].stays == pytest.approx(1)
    assert scores["encoder", 0, 0].score == pytest.approx(1, abs=0.01)
    assert scores["encoder", 0, 1].score < 0.35
    assert list(ranked) == sorted(ranked, key=lambda one: -one.score)
    assert len(ranked) == 3 * 2 * 2
    assert all(0 <= one.stays <= 1.0001 and 0 <= one.chance <= 1.0001 for one in ranked)
    # The shuffled sentence to look at: the same pieces in another order, and the planted heads as planted.
    encoder = found.shuffled.maps["encoder"]
    assert encoder.key_tokens != before.source_tokens
    assert sorted(encoder.key_tokens) == sorted(before.source_tokens)
    assert encoder.key_tokens[-1] == "</s>"
    assert encoder.weights[0, 0, 1, 0] == 1
    assert encoder.weights[0, 1, :, encoder.key_tokens.index(before.source_tokens[2])].tolist() == [1] * len(
        before.source_tokens
    )
    assert found.shuffled.maps["decoder"].query_tokens[0] == "<s>"
    assert found.shuffled.maps["cross"].query_tokens == before.trace.maps["cross"].query_tokens


def test_the_expected_overlap_is_the_mean_over_all_orders() -> None:
    """Held to every permutation of three allowed keys of five, by hand."""
    weights = np.array([[[[0.5, 0.0, 0.3, 0.0, 0.2]]]])
    mask = np.array([[True, False, True, False, True]])
    allowed = [0.5, 0.3, 0.2]
    overlaps = [sum(map(min, allowed, order)) for order in permutations(allowed)]
    assert compute_expected_overlap(weights, mask).item() == pytest.approx(sum(overlaps) / len(overlaps))
    assert compute_expected_overlap(np.full((1, 1, 1, 4), 0.25), np.ones((1, 4), bool)).item() == pytest.approx(1)


@pytest.mark.parametrize(("sides", "moves"), [("source", False), ("both", False), ("target", True)])
def test_the_order_of_the_words_counts_where_the_sentence_keeps_its_positions(
    sides: ExperimentSides, moves: bool
) -> None:
    translator = Translator.load("preset-annotated", "cpu")
    source = translator.encode("The dog bit the man.").ids
    order = [0, 4, 2, 3, 1, *range(5, len(source))]
    written = torch.tensor([translator.translate("The dog bit the man.").target_ids])
    target = torch.tensor([[2, *written[0, :-1].tolist()]])
    removed = PositionExperiment("remove", sides=sides)
    with apply_position_experiment(translator.model, removed, len(source), target.shape[1]), torch.inference_mode():
        one, other = (
            translator.model(torch.tensor([ids]), target).log_softmax(-1).gather(-1, written[..., None])
            for ids in (source, [source[at] for at in order])
        )
    assert ((one - other).abs().max() > 0.1) == moves
    assert moves or (one - other).abs().max() < 1e-4


def test_without_positions_the_encoder_sees_a_bag_and_the_decoder_does_not(toy_translator: Translator) -> None:
    before = toy_translator.translate("the old dog sees a red house today.")
    source, target = torch.tensor([before.source_ids]), torch.tensor([[2, *before.target_ids[:-1]]])
    swapped = target.clone()
    swapped[0, [1, 2]] = target[0, [2, 1]]
    experiment = PositionExperiment("remove")
    with (
        apply_position_experiment(toy_translator.model, experiment, source.shape[1], target.shape[1]),
        torch.inference_mode(),
    ):
        memory = toy_translator.model.encode(source)
        torch.testing.assert_close(toy_translator.model.encode(source.flip(1)), memory.flip(1), atol=1e-4, rtol=0)
        states, other = (toy_translator.model.decode(ids, memory, None) for ids in (target, swapped))
    assert (states[0, 1] - other[0, 2]).abs().max() > 1e-2  # the same word, after other words
