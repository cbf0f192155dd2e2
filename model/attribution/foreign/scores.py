"""The methods of the page Why that need no more of a model than its embeddings and its captured attention.

Its masks cannot be reached in general, so a piece is removed by making its embedding zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from ...analysis.rollout import rollout
from ...capture.attention import capture_attention
from ...language.say import say, sentences, to_say
from ...live.local_model import LocalModel
from ...trace import AttentionTrace, TraceError
from ..alti import alti
from ..attention_scores import norms_of_last
from ..blocks import Block
from ..gradients import BASELINE, integrated
from ..methods import ATTENTION_X_GRADIENT, METHODS, OF_BLOCKS, Attribution
from ..target import AttributionError, Target, no_piece
from .blocks import foreign_blocks
from .line import ForeignLine
from .reading import Reading, logits_of, read, target_of

OF_ATTENTION = {
    **ATTENTION_X_GRADIENT,
    "attention": METHODS["attention"],
    "rollout": METHODS["rollout"],
}
COMPUTED = {
    "leave-one-out": to_say("how far the value falls when the piece's embedding is zero"),
    "integrated-gradients": METHODS["integrated-gradients"],
    "gradient-x-input": METHODS["gradient-x-input"],
    **OF_ATTENTION,
    **{name: METHODS[name] for name in OF_BLOCKS},
}
"""Name -> what the score is, a message: those of attention where encoder, decoder and cross-attention are captured, the
last two where the parts of every attention block are found too.
"""
NOT_COMPUTED = to_say(
    "The masks of this model cannot be reached, so a piece is left out by zero embeddings; its heads are not switched "
    "off here."
)


def foreign_attributions(model: LocalModel, text: str, word: int, method: str) -> tuple[list[Attribution], str]:
    """Return the attribution of piece `word` (from 1), all for the method "all", and what cannot be computed.

    X is the piece predicted at its row. Raises AttributionError for a method that this model cannot have, and
    where its embeddings or logits are not found.
    """
    if method not in (*COMPUTED, "all"):
        raise AttributionError(say(NOT_COMPUTED))
    reading = read(model, text)
    if not 1 <= word <= len(reading.predicted):
        raise AttributionError(no_piece(word, len(reading.predicted)))
    if method != "all":
        return [_EXPLAINED[method](reading, word - 1)], say(NOT_COMPUTED)
    found = [_EXPLAINED[one](reading, word - 1) for one in COMPUTED if one not in (*OF_ATTENTION, *OF_BLOCKS)]
    refused: list[str] = []
    for group in (OF_ATTENTION, OF_BLOCKS):
        try:
            found += [_EXPLAINED[one](reading, word - 1) for one in group]
        except AttributionError as error:
            refused.append(str(error))
    return found, sentences(say(NOT_COMPUTED), *dict.fromkeys(refused))


def values_without(model: LocalModel, text: str, word: int, removed: np.ndarray) -> np.ndarray:
    """Return log p of piece `word` (from 1) with source pieces away: removed (N, S) bool -> (N,), natural logarithm.

    A piece is away as in leave-one-out. Raises AttributionError as :func:`foreign_attributions` does.
    """
    reading = read(model, text)
    values = []
    with torch.no_grad():
        target, _ = target_of(reading, word - 1)
        for row in torch.from_numpy(removed):

            def without(embedded: Tensor, row: Tensor = row) -> Tensor:
                return embedded.masked_fill(row.to(embedded.device)[None, :, None], 0.0)

            values.append(target.value(logits_of(reading, {0: without}, word - 1)))
    return torch.cat(values).double().numpy(force=True)


def _leave_one_out(reading: Reading, position: int) -> Attribution:
    with torch.no_grad():
        target, value = target_of(reading, position)
        falls: tuple[list[Tensor], list[Tensor]] = ([], [])
        for side, count in enumerate((len(target.source_ids), position + 1)):
            for piece in range(count):

                def without(embedded: Tensor, piece: int = piece) -> Tensor:
                    return embedded.index_fill(1, torch.tensor([piece], device=embedded.device), 0.0)

                falls[side].append(value - target.value(logits_of(reading, {side: without}, position)))
    return _attribution("leave-one-out", target, value, torch.cat(falls[0]), torch.cat(falls[1]))


def _integrated_gradients(reading: Reading, position: int) -> Attribution:
    line = ForeignLine(reading, position)
    found = integrated(line)
    value = torch.tensor([found.value], device="cpu")
    error = found.completeness_error
    return _attribution("integrated-gradients", line.target, value, found.source, found.prefix, error, BASELINE)


def _gradient_x_input(reading: Reading, position: int) -> Attribution:
    line = ForeignLine(reading, position)
    scores = line.slopes(torch.ones(1, device="cpu"))[0]
    value = line.values(torch.ones(1, device="cpu"))
    return _attribution("gradient-x-input", line.target, value, scores[: line.pieces], scores[line.pieces :])


def _attention_x_gradient(reading: Reading, position: int) -> Attribution:
    """The sum over all layers, heads and rows of weights times gradients: source by cross-attention, prefix by own."""
    target, value, weights, gradients = _captured(reading, position)
    by_key = []
    for own, slopes in ((weights.cross, gradients.cross), (weights.decoder, gradients.decoder)):
        assert own is not None
        assert slopes is not None
        by_key.append(torch.from_numpy((own.weights.astype(float) * slopes.weights).sum((0, 1, 2))))
    return _attribution("attention-x-gradient", target, value, by_key[0], by_key[1][: position + 1])


def _attention(reading: Reading, position: int) -> Attribution:
    target, value, weights, _ = _captured(reading, position)
    assert weights.cross is not None
    last = torch.from_numpy(weights.cross.weights[-1].mean(0)[position])
    return _attribution("attention", target, value, last, last.new_zeros(0))


def _rollout(reading: Reading, position: int) -> Attribution:
    target, value, weights, _ = _captured(reading, position)
    found = rollout(weights)
    assert found.cross is not None
    assert found.decoder is not None
    source, prefix = (torch.from_numpy(one.weights[-1, 0, position]) for one in (found.cross, found.decoder))
    return _attribution("rollout", target, value, source, prefix[: position + 1])


def _attention_norm(reading: Reading, position: int) -> Attribution:
    return _of_blocks("attention-norm", reading, position, lambda _, decoder: norms_of_last(decoder))


def _alti(reading: Reading, position: int) -> Attribution:
    return _of_blocks("alti", reading, position, alti)


def _of_blocks(
    method: str,
    reading: Reading,
    position: int,
    scores: Callable[[list[Block], list[Block]], tuple[Tensor, Tensor]],
) -> Attribution:
    """The attribution by scores of decoder inputs (T, T) and source pieces (T, S) that the blocks of a pass give."""
    with torch.no_grad():
        target, value = target_of(reading, position)
    own, source = scores(*foreign_blocks(reading, position))
    return _attribution(method, target, value, source[position], own[position, : position + 1])


def _captured(reading: Reading, position: int) -> tuple[Target, Tensor, AttentionTrace, AttentionTrace]:
    """The target, its value (1,), the weights of the pass and the gradients of the value by each.

    Raises AttributionError where the three kinds of attention are not captured for these pieces.
    """
    leaves = dict.fromkeys((0, 1), lambda embedded: embedded.detach().requires_grad_())
    try:
        target, _ = target_of(reading, position)
        with torch.enable_grad(), capture_attention(reading.model, detach=False) as capture:
            value = target.value(logits_of(reading, leaves, position))
        weights, gradients = capture.trace, capture.gradients(value.sum())
    except TraceError as error:
        raise AttributionError(say("Its attention says nothing here: {reason}", reason=error)) from error
    pieces, fed = len(target.source_ids), reading.ids[1].shape[1]
    shapes = {kind: one.weights.shape[2:] for kind, one in weights.maps.items()}
    if shapes != {"encoder": (pieces, pieces), "decoder": (fed, fed), "cross": (fed, pieces)}:
        raise AttributionError(say("Its attention says nothing here: it is not one of each kind over these pieces."))
    return target, value.detach(), weights, gradients


def _attribution(
    method: str,
    target: Target,
    value: Tensor,
    source: Tensor,
    prefix: Tensor,
    error: float | None = None,
    baseline: str | None = None,
) -> Attribution:
    by_source, by_prefix = (one.detach().double().cpu().numpy() for one in (source, prefix))
    total = float(by_source.sum() + by_prefix.sum())
    return Attribution(method, by_source, by_prefix, total, target, float(value), error, baseline)


_EXPLAINED: Mapping[str, Callable[[Reading, int], Attribution]] = {
    "leave-one-out": _leave_one_out,
    "integrated-gradients": _integrated_gradients,
    "gradient-x-input": _gradient_x_input,
    "attention-x-gradient": _attention_x_gradient,
    "attention": _attention,
    "rollout": _rollout,
    "attention-norm": _attention_norm,
    "alti": _alti,
}
