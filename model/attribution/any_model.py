"""Attribution methods for any model, from its embeddings, captured attention and found blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from ..analysis.flow import compute_rollout
from ..capture.attention import capture_attention
from ..language import join_sentences, say, to_say
from ..network.abstract_model import AutoregressiveModel
from ..network.hooks import record_streams
from ..network.transformer import Transformer
from ..runnable_model import LocalModel, RunnableModel
from ..trace import AttentionTrace, Kind, TraceError
from .alti_and_leave_one_out import AttentionBlock, AttentionPass, BlockStacks, compute_alti_shares, make_attention_pass
from .block_detection import (
    AnyModelLine,
    RepeatablePass,
    compute_row_logits,
    find_attention_blocks,
    find_predicted_target,
    record_repeatable_pass,
)
from .gradients import BASELINE_MESSAGE, integrate_along_line
from .logit import record_pass
from .methods import (
    ATTENTION_X_GRADIENT_METHOD,
    ATTRIBUTION_METHODS,
    BLOCK_METHODS,
    Attribution,
    attribute_target,
    compute_last_self_and_cross_norms,
)
from .target import AttributionError, Target, format_missing_piece_message

# The masks of a model cannot be reached in general, so a piece is removed by making its embedding zero.


ATTENTION_METHODS = {
    **ATTENTION_X_GRADIENT_METHOD,
    "attention": ATTRIBUTION_METHODS["attention"],
    "rollout": ATTRIBUTION_METHODS["rollout"],
}
ANY_MODEL_METHODS = {
    "leave-one-out": to_say("how far the value falls when the piece's embedding is zero"),
    "integrated-gradients": ATTRIBUTION_METHODS["integrated-gradients"],
    "gradient-x-input": ATTRIBUTION_METHODS["gradient-x-input"],
    **ATTENTION_METHODS,
    **{name: ATTRIBUTION_METHODS[name] for name in BLOCK_METHODS},
}
"""Name -> what the score is, a message: those of attention where encoder, decoder and cross-attention are captured, the
last two where the parts of every attention block are found too.
"""
NOT_COMPUTED_MESSAGE = to_say(
    "The masks of this model cannot be reached, so a piece is left out by zero embeddings; its heads are not switched "
    "off here."
)


def attribute_any_model(model: LocalModel, text: str, word: int, method: str) -> tuple[list[Attribution], str]:
    """Return the attribution of piece `word` (from 1), all for the method "all", and what cannot be computed.

    X is the piece predicted at its row. Raises AttributionError for a method that this model cannot have, and
    where its embeddings or logits are not found.
    """
    if method not in (*ANY_MODEL_METHODS, "all"):
        raise AttributionError(say(NOT_COMPUTED_MESSAGE))
    reading = record_repeatable_pass(model, text)
    if not 1 <= word <= len(reading.predicted):
        raise AttributionError(format_missing_piece_message(word, len(reading.predicted)))
    if method != "all":
        return [_METHOD_FUNCTIONS[method](reading, word - 1)], say(NOT_COMPUTED_MESSAGE)
    found = [
        _METHOD_FUNCTIONS[one](reading, word - 1)
        for one in ANY_MODEL_METHODS
        if one not in (*ATTENTION_METHODS, *BLOCK_METHODS)
    ]
    refused: list[str] = []
    for group in (ATTENTION_METHODS, BLOCK_METHODS):
        try:
            found += [_METHOD_FUNCTIONS[one](reading, word - 1) for one in group]
        except AttributionError as error:
            refused.append(str(error))
    return found, join_sentences(say(NOT_COMPUTED_MESSAGE), *dict.fromkeys(refused))


def compute_log_probs_without_pieces(model: LocalModel, text: str, word: int, removed: np.ndarray) -> np.ndarray:
    """Return log p of piece `word` (from 1) with source pieces away: removed (N, S) bool -> (N,), natural logarithm.

    A piece is away as in leave-one-out. Raises AttributionError as :func:`attribute_any_model` does.
    """
    reading = record_repeatable_pass(model, text)
    values = []
    with torch.no_grad():
        target, _ = find_predicted_target(reading, word - 1)
        for row in torch.from_numpy(removed):

            def remove_piece(embedded: Tensor, row: Tensor = row) -> Tensor:
                return embedded.masked_fill(row.to(embedded.device)[None, :, None], 0.0)

            values.append(target.value(compute_row_logits(reading, {0: remove_piece}, word - 1)))
    return torch.cat(values).double().numpy(force=True)


def _attribute_leave_one_out(reading: RepeatablePass, position: int) -> Attribution:
    with torch.no_grad():
        target, value = find_predicted_target(reading, position)
        falls: tuple[list[Tensor], list[Tensor]] = ([], [])
        for side, count in enumerate((len(target.source_ids), position + 1)):
            for piece in range(count):

                def remove_piece(embedded: Tensor, piece: int = piece) -> Tensor:
                    return embedded.index_fill(1, torch.tensor([piece], device=embedded.device), 0.0)

                falls[side].append(value - target.value(compute_row_logits(reading, {side: remove_piece}, position)))
    return _make_attribution("leave-one-out", target, value, torch.cat(falls[0]), torch.cat(falls[1]))


def _attribute_integrated_gradients(reading: RepeatablePass, position: int) -> Attribution:
    line = AnyModelLine(reading, position)
    found = integrate_along_line(line)
    value = torch.tensor([found.value], device="cpu")
    error = found.completeness_error
    return _make_attribution(
        "integrated-gradients", line.target, value, found.source, found.prefix, error, BASELINE_MESSAGE
    )


def _attribute_gradient_x_input(reading: RepeatablePass, position: int) -> Attribution:
    line = AnyModelLine(reading, position)
    scores = line.slopes(torch.ones(1, device="cpu"))[0]
    value = line.values(torch.ones(1, device="cpu"))
    return _make_attribution("gradient-x-input", line.target, value, scores[: line.pieces], scores[line.pieces :])


def _attribute_attention_x_gradient(reading: RepeatablePass, position: int) -> Attribution:
    """The sum over all layers, heads and rows of weights times gradients: source by cross-attention, prefix by own."""
    target, value, weights, gradients = _capture_weights_and_gradients(reading, position)
    by_key = []
    for own, slopes in ((weights.cross, gradients.cross), (weights.decoder, gradients.decoder)):
        assert own is not None
        assert slopes is not None
        by_key.append(torch.from_numpy((own.weights.astype(float) * slopes.weights).sum((0, 1, 2))))
    return _make_attribution("attention-x-gradient", target, value, by_key[0], by_key[1][: position + 1])


def _attribute_last_attention(reading: RepeatablePass, position: int) -> Attribution:
    target, value, weights, _ = _capture_weights_and_gradients(reading, position)
    assert weights.cross is not None
    last = torch.from_numpy(weights.cross.weights[-1].mean(0)[position])
    return _make_attribution("attention", target, value, last, last.new_zeros(0))


def _attribute_rollout(reading: RepeatablePass, position: int) -> Attribution:
    target, value, weights, _ = _capture_weights_and_gradients(reading, position)
    found = compute_rollout(weights)
    assert found.cross is not None
    assert found.decoder is not None
    source, prefix = (torch.from_numpy(one.weights[-1, 0, position]) for one in (found.cross, found.decoder))
    return _make_attribution("rollout", target, value, source, prefix[: position + 1])


def _attribute_by_blocks(
    method: str,
    reading: RepeatablePass,
    position: int,
    scores: Callable[[list[AttentionBlock], list[AttentionBlock]], tuple[Tensor, Tensor]],
) -> Attribution:
    """The attribution by scores of decoder inputs (T, T) and source pieces (T, S) that the blocks of a pass give."""
    with torch.no_grad():
        target, value = find_predicted_target(reading, position)
    own, source = scores(*find_attention_blocks(reading, position))
    return _make_attribution(method, target, value, source[position], own[position, : position + 1])


def _capture_weights_and_gradients(
    reading: RepeatablePass, position: int
) -> tuple[Target, Tensor, AttentionTrace, AttentionTrace]:
    """The target, its value (1,), the weights of the pass and the gradients of the value by each.

    Raises AttributionError where the three kinds of attention are not captured for these pieces.
    """
    leaves = dict.fromkeys((0, 1), lambda embedded: embedded.detach().requires_grad_())
    try:
        target, _ = find_predicted_target(reading, position)
        with torch.enable_grad(), capture_attention(reading.model, detach=False) as capture:
            value = target.value(compute_row_logits(reading, leaves, position))
        weights, gradients = capture.trace, capture.gradients(value.sum())
    except TraceError as error:
        raise AttributionError(say("Its attention says nothing here: {reason}", reason=error)) from error
    pieces, fed = len(target.source_ids), reading.ids[1].shape[1]
    shapes = {kind: one.weights.shape[2:] for kind, one in weights.maps.items()}
    if shapes != {"encoder": (pieces, pieces), "decoder": (fed, fed), "cross": (fed, pieces)}:
        raise AttributionError(say("Its attention says nothing here: it is not one of each kind over these pieces."))
    return target, value.detach(), weights, gradients


def _make_attribution(
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


_METHOD_FUNCTIONS: Mapping[str, Callable[[RepeatablePass, int], Attribution]] = {
    "leave-one-out": _attribute_leave_one_out,
    "integrated-gradients": _attribute_integrated_gradients,
    "gradient-x-input": _attribute_gradient_x_input,
    "attention-x-gradient": _attribute_attention_x_gradient,
    "attention": _attribute_last_attention,
    "rollout": _attribute_rollout,
    "attention-norm": lambda reading, position: _attribute_by_blocks(
        "attention-norm", reading, position, lambda _, decoder: compute_last_self_and_cross_norms(decoder)
    ),
    "alti": lambda reading, position: _attribute_by_blocks("alti", reading, position, compute_alti_shares),
}

# Any runnable model: the parts of ours are known, those of others are looked for in a pass.


DECODER_SUBLAYERS: Mapping[Kind, str] = {"decoder": "self-attention", "cross": "cross-attention"}
"""The attention of a decoder's layer in the order in which it runs."""


def list_attribution_methods(model: RunnableModel) -> Mapping[str, str]:
    """Return the methods by name, each with what its score is: of our models those that are measured over sentences."""
    return (
        ATTRIBUTION_METHODS
        if isinstance(model.model, Transformer)
        else ATTRIBUTION_METHODS | ATTENTION_X_GRADIENT_METHOD
    )


def run_attention_pass(
    model: AutoregressiveModel, source_ids: Sequence[int], input_ids: Sequence[int]
) -> AttentionPass:
    """Return the attention of a pass over a source (S,) and what the decoder is fed (T,).

    Interventions open in this thread take part, also when the blocks are asked for.
    """
    if isinstance(model, Transformer):
        return make_attention_pass(record_pass(model, source_ids, input_ids))
    reading = make_repeatable_pass(model, source_ids, input_ids)
    with torch.no_grad(), capture_attention(model) as capture:
        reading.run()
    weights = {kind: torch.from_numpy(one.weights).double() for kind, one in capture.trace.maps.items()}
    found: list[BlockStacks] = []

    def stacks() -> BlockStacks:
        if not found:
            found.append(find_attention_blocks(reading, 0))
        return found[0]

    return AttentionPass(weights, stacks, len(source_ids) if model.is_decoder_alone else 0)


def make_repeatable_pass(
    model: AutoregressiveModel, source_ids: Sequence[int], input_ids: Sequence[int]
) -> RepeatablePass:
    """Return a pass over a source (S,) and what the decoder is fed (T,), to be made again with other embeddings."""
    device = next(model.parameters()).device
    source, inputs = (torch.tensor([list(ids)], device=device) for ids in (source_ids, input_ids))
    tables = model.token_embedding("source"), model.token_embedding("target")
    if model.is_decoder_alone:
        whole = torch.cat([source, inputs[:, 1:]], 1)
        return RepeatablePass(model, lambda: model(source, inputs), tables, (whole, whole), (), (), (), one_text=True)
    return RepeatablePass(model, lambda: model(source, inputs), tables, (source, inputs), (), (), ())


@torch.inference_mode(mode=False)
def compute_decoder_streams(
    model: AutoregressiveModel, source_ids: Sequence[int], input_ids: Sequence[int]
) -> dict[str, Tensor]:
    """Return the decoder's residual stream (1, T, D) behind its embedding and behind each sublayer, by name.

    Raises AttributionError where a part of a block is not found.
    """
    reading = make_repeatable_pass(model, source_ids, input_ids)
    with torch.no_grad(), record_streams(model.streams("target")) as layers:
        reading.run()
    _, blocks = find_attention_blocks(reading, 0)
    embedding = layers["embedding"]
    behind: list[dict[str, Tensor]] = [{} for _ in range(len(layers) - 1)]
    for kind, name in DECODER_SUBLAYERS.items():
        found_blocks = [one for one in blocks if one.kind == kind]
        if not found_blocks:  # a decoder alone
            continue
        if len(found_blocks) != len(behind):
            raise AttributionError(
                say("Not every layer of this model has attention, so its sublayers are not told apart.")
            )
        for own, block in zip(behind, found_blocks, strict=True):
            own[name] = block.after[None].to(embedding)
    found = {"embedding": embedding}
    for number, own in enumerate(behind, start=1):
        names = own | {"feed-forward": layers[f"layer {number}"]}
        found |= {f"layer {number} {name}": stream for name, stream in names.items()}
    return found


def attribute_available_methods(model: RunnableModel, target: Target) -> tuple[dict[str, Attribution], str]:
    """Return the scores of every method that can be computed by its name, and why others cannot, "" where all can.

    Raises AttributionError where the probability of X is zero.
    """
    methods, refused = list(list_attribution_methods(model)), ""
    seen = run_attention_pass(model.model, target.source_ids, target.input_ids)
    try:
        seen.stacks()
    except AttributionError as error:
        methods, refused = [one for one in methods if one not in BLOCK_METHODS], str(error)
    return {method: attribute_target(model, target, method, seen) for method in methods}, refused
