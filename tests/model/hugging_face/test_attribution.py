"""What a word of a folder's model rests on, against autograd on the model that transformers alone loads."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attenscope.analysis.flow import compute_rollout
from attenscope.attribution.any_model import attribute_available_methods, list_attribution_methods
from attenscope.attribution.methods import Attribution
from attenscope.attribution.target import make_piece_target
from attenscope.runnable_model import RunnableModel
from attenscope.trace import AttentionMap, AttentionTrace, Kind
from tests.folders import SENTENCE

pytest.importorskip("transformers")
WORD = 3
"""The piece that is explained, from 1."""
POINTS = 400


class Eager:
    """The same model with eager attention, with other token embeddings, and one of its log-probabilities."""

    def __init__(self, model: Any, found: Attribution, fed: tuple[int, ...]) -> None:
        self.model, self.token = model, found.target.token_ids[0]
        self.ids = [torch.tensor([one]) for one in (found.target.source_ids, fed)]
        self.tables = [part.get_input_embeddings() for part in (model.get_encoder(), model.get_decoder())]
        self.embedded = [table(one).detach() for table, one in zip(self.tables, self.ids, strict=True)]

    def run(self, **how: bool) -> Any:
        return self.model(self.ids[0], decoder_input_ids=self.ids[1], use_cache=False, **how)

    def value_of(self, out: Any) -> Tensor:
        return out.logits[0, WORD - 1].double().log_softmax(-1)[self.token]

    def value(self, embedded: list[Tensor]) -> Tensor:
        """The encoder looks its tokens up first, in a table that may be the decoder's as well."""
        left = list(embedded)
        hooks = [table.register_forward_hook(lambda *_: left.pop(0)) for table in dict.fromkeys(self.tables)]
        try:
            return self.value_of(self.run())
        finally:
            for hook in hooks:
                hook.remove()

    def slopes(self, point: float) -> list[np.ndarray]:
        """Gradient x embedding at a point of the line from zero, of source and prefix."""
        leaves = [(one * point).requires_grad_() for one in self.embedded]
        found = torch.autograd.grad(self.value(leaves), leaves)
        source, fed = ((one * own).sum(-1)[0].numpy() for one, own in zip(found, self.embedded, strict=True))
        return [source, fed[:WORD]]


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("t5", "bart", "m2m_100")]


@pytest.fixture(params=["marian", *SLOW])
def explained(
    request: pytest.FixtureRequest, opened: Callable[[str], RunnableModel], reference: Callable[[str], Any]
) -> tuple[dict[str, Attribution], Eager]:
    live = opened(request.param)
    found = live.translate(SENTENCE, max_tokens=6, capture=False)
    every, refused = attribute_available_methods(live, make_piece_target(live, found, WORD - 1))
    assert refused == ""
    assert list(every) == list(list_attribution_methods(live))
    fed = (live.model.start_id, *(step.token_id for step in found.steps[:-1]))
    return every, Eager(reference(request.param), every["alti"], fed)


def test_scores_are_those_of_autograd(explained: tuple[dict[str, Attribution], Eager]) -> None:
    every, eager = explained
    for one in every.values():
        assert one.target_value == pytest.approx(float(eager.value(eager.embedded).detach()), abs=1e-5)
    own = every["gradient-x-input"]
    for mine, other in zip((own.source, own.prefix), eager.slopes(1.0), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-5, rtol=1e-4)
    out = eager.run(output_attentions=True)
    value = eager.value_of(out)
    for kind, mine in (
        ("cross", every["attention-x-gradient"].source),
        ("decoder", every["attention-x-gradient"].prefix),
    ):
        weights = out[f"{kind}_attentions"]
        gradients = torch.autograd.grad(value, weights, retain_graph=True)
        pairs = zip(weights, gradients, strict=True)
        by_key = sum((one.double() * other).sum((0, 1, 2)) for one, other in pairs)
        assert isinstance(by_key, Tensor)
        np.testing.assert_allclose(mine, by_key.detach()[: len(mine)], atol=1e-5, rtol=1e-4)
    last = out.cross_attentions[-1][0].mean(0)[WORD - 1].detach()
    np.testing.assert_allclose(every["attention"].source, last, atol=1e-5)
    rolled = compute_rollout(AttentionTrace(_map("encoder", out), _map("decoder", out), _map("cross", out)))
    assert rolled.cross is not None
    np.testing.assert_allclose(every["rollout"].source, rolled.cross.weights[-1, 0, WORD - 1], atol=1e-5)


@pytest.mark.slow
def test_integrated_gradients_are_a_fine_sum_and_say_how_far_they_are_off(
    explained: tuple[dict[str, Attribution], Eager],
) -> None:
    every, eager = explained
    one = every["integrated-gradients"]
    ends = [float(eager.value([own * point for own in eager.embedded]).detach()) for point in (0.0, 1.0)]
    error = abs(one.total - (ends[1] - ends[0])) / abs(ends[1] - ends[0])
    assert one.completeness_error == pytest.approx(error, abs=1e-3)
    if error > 0.02:  # random weights are wild near the baseline
        return
    edges = np.linspace(0, 1, POINTS + 1) ** 2
    sums = [np.zeros(len(one.source)), np.zeros(len(one.prefix))]
    for low, high in pairwise(edges):
        for total, slope in zip(sums, eager.slopes(float(low + high) / 2), strict=True):
            total += slope * (high - low)
    gone = float(sum(total.sum() for total in sums))
    if abs(gone - (ends[1] - ends[0])) > 0.02 * abs(ends[1] - ends[0]):  # Wild between the points of the sum itself.
        return
    largest = max(abs(total).max() for total in sums)
    np.testing.assert_allclose(one.scores, np.concatenate(sums), atol=0.05 * largest)


def _map(kind: Kind, out: Any) -> AttentionMap:
    weights = torch.stack(out[f"{kind}_attentions"])[:, 0].detach().numpy()
    rows, keys = (tuple(map(str, range(size))) for size in weights.shape[2:])
    return AttentionMap(kind, weights, rows, keys, np.ones(weights.shape[2:], dtype=bool))
