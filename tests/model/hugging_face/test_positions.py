"""Positions of folders read and moved: what transformers computes when its own table is changed by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from attenscope.network.abstract_model import Side, make_decoder_inputs
from attenscope.positions.experiments import (
    POSITION_MOVES,
    ExperimentError,
    PositionExperiment,
    compute_log_prob_curve,
    compute_new_positions,
    run_experiment,
)
from attenscope.positions.table import read_embedding_parts
from tests.folders import SENTENCE

pytest.importorskip("transformers")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TABLES: dict[str, dict[Side, tuple[str, int]]] = {
    "marian": {
        "source": ("model.encoder.embed_positions.weight", 0),
        "target": ("model.decoder.embed_positions.weight", 0),
    },
    "bart": {
        "source": ("model.encoder.embed_positions.weight", 2),
        "target": ("model.decoder.embed_positions.weight", 2),
    },
    "m2m_100": {
        "source": ("model.encoder.embed_positions.weights", 2),
        "target": ("model.decoder.embed_positions.weights", 2),
    },
    "gpt2": {"target": ("transformer.wpe.weight", 0)},
}
"""Where transformers keeps each table and the row of its first position."""
STEPS = 10

Open = Callable[[str], Any]


def tensor_at(model: Any, path: str) -> torch.Tensor:
    owner, _, name = path.rpartition(".")
    found = getattr(model.get_submodule(owner), name)
    assert isinstance(found, torch.Tensor)
    return found


def first_input(alone: Any, found: Any, side: Side) -> np.ndarray:
    """What the first layer of transformers' own model reads, before a norm of the embeddings where it has one."""
    part = alone.get_encoder() if side == "source" else getattr(alone, "transformer", None) or alone.get_decoder()
    ids = list(found.source_ids) if side == "source" else list(make_decoder_inputs(found.target_ids, alone.start))
    if hasattr(alone, "transformer"):
        ids = [*found.source_ids, *found.target_ids[:-1]]
    seen: list[torch.Tensor] = []
    norm = getattr(part, "layernorm_embedding", None)
    if norm is not None:
        norm.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.inference_mode():
        found = part(torch.tensor([ids]), output_hidden_states=True)
    return (seen[0] if norm is not None else found.hidden_states[0])[0].numpy()


@pytest.mark.parametrize("name", TABLES)
def test_the_table_that_is_added_is_found(name: str, opened: Open, reference: Any) -> None:
    live = opened(name)
    assert live.can("positions")
    for side, (path, first) in TABLES[name].items():
        added = live.model.added_positions(side)
        table = tensor_at(reference(name), path)
        assert torch.equal(added.rows, table[first : first + len(added.rows)].detach())
        if name in ("bart", "gpt2"):
            assert added.formula is None
        else:
            again = added.formula(torch.arange(len(added.rows), dtype=torch.float64))
            torch.testing.assert_close(again.float(), added.rows, atol=1e-4, rtol=0)
    assert live.model.added_positions("source") is None or name != "gpt2"


@pytest.mark.parametrize("name", TABLES)
def test_the_parts_of_an_embedding_are_what_the_first_layer_reads(name: str, opened: Open, reference: Any) -> None:
    live, alone = opened(name), copy.deepcopy(reference(name))
    alone.start = live.model.start_id
    found = live.translate(SENTENCE, max_tokens=STEPS)
    for side in TABLES[name]:
        parts = read_embedding_parts(live, found, side)
        np.testing.assert_allclose(parts.total, first_input(alone, found, side), atol=1e-6)
        assert len(parts.pieces) == len(parts.total)
        assert parts.scale == pytest.approx(1.0 if name in ("bart", "gpt2") else 32**0.5)
        assert live.model.added_positions(side).normalised == (name == "bart")


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("move", POSITION_MOVES)
def test_an_experiment_is_the_model_with_another_table(name: str, move: Any, opened: Open, reference: Any) -> None:
    live, alone = opened(name), copy.deepcopy(reference(name))
    before = live.translate(SENTENCE, max_tokens=STEPS)
    amounts = {"shift": 5, "shuffle": 3, "stretch": 0.5, "beyond": 30}
    experiment = PositionExperiment(move, amounts.get(move, 0.0), pair=(0, 3))
    for side, (path, first) in TABLES[name].items():
        added, table = live.model.added_positions(side), tensor_at(alone, path).data
        fed = before.trace.maps["decoder"].query_tokens
        length = len(before.source_ids if side == "source" else fed)
        positions = compute_new_positions(experiment, length, len(added.rows))
        if move == "remove":
            table[first : first + len(added.rows)] = 0
        elif added.formula is None:
            rows = torch.from_numpy(
                np.stack([np.interp(positions, range(len(added.rows)), one) for one in added.rows.T.numpy()])
            )
            table[first : first + len(added.rows)] = rows.T
        else:
            table[first : first + len(added.rows)] = added.formula(torch.from_numpy(positions))
    result = run_experiment(live, before, experiment)
    source, target = torch.tensor([before.source_ids]), torch.tensor([before.target_ids])
    with torch.inference_mode():
        if live.can("translate"):
            fed_ids = torch.tensor([make_decoder_inputs(before.target_ids, live.model.start_id)])
            logits = alone(source, decoder_input_ids=fed_ids).logits[0]
        else:
            logits = alone(torch.cat([source, target[:, :-1]], 1)).logits[0, source.shape[1] - 1 :]
    expected = logits.log_softmax(-1).gather(1, target.T)[:, 0].numpy()
    np.testing.assert_allclose(result.log_probs, expected, atol=1e-4)
    assert np.abs(result.log_prob_drop) > 1e-4
    again = live.translate(SENTENCE, max_tokens=STEPS)
    assert [step.log_prob for step in again.steps] == [step.log_prob for step in before.steps]
    if move == "shift":
        curve = compute_log_prob_curve(live, before, experiment, (0.0, 5.0))
        assert curve[0] == pytest.approx(np.mean([step.log_prob for step in before.steps]), abs=1e-5)
        assert curve[1] == pytest.approx(expected.mean(), abs=1e-5)


def test_a_move_of_no_positions_changes_no_number(opened: Open) -> None:
    live = opened("marian")
    before = live.translate(SENTENCE, max_tokens=STEPS)
    for kind, one in run_experiment(live, before, PositionExperiment("shift", 0)).forced_trace.maps.items():
        np.testing.assert_allclose(one.weights, before.trace.maps[kind].weights, atol=1e-5)


@pytest.mark.parametrize("name", ["t5", "llama"])
def test_a_model_that_adds_no_table_says_so(name: str, opened: Open) -> None:
    live = opened(name)
    assert "No table of positions is added" in live.cannot("positions")
    with pytest.raises(ExperimentError, match="No table of positions"):
        run_experiment(live, live.translate(SENTENCE, max_tokens=2), PositionExperiment("remove"))


def test_a_learned_table_ends_where_it_ends(opened: Open) -> None:
    live = opened("bart")
    before = live.translate(SENTENCE, max_tokens=STEPS)
    with pytest.raises(ExperimentError, match="its table ends at position 95"):
        run_experiment(live, before, PositionExperiment("beyond", 95))
